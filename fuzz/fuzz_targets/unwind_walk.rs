//! Any bytes as unwind information, code, registers and memory: every walk ends, and reads nothing but the stack.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nyquist_object::{Avma, Elf};
use nyquist_unwind::{AddressSpace, MAX_FRAMES, Module, Registers, StackCopy, Unwinder};
use std::sync::Arc;

#[path = "../../crates/nyquist-unwind/tests/walks/object.rs"]
#[allow(dead_code)]
mod object;

use object::{BASE, CODE, CODE_LEN, STACK};

/// The next bytes of the input; none are left at its end.
fn take<'a>(bytes: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(len.min(bytes.len()));
    *bytes = rest;
    taken
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes;
    let section_len = word(take(&mut bytes, 2)) as usize;
    let section = take(&mut bytes, section_len);
    let code = take(&mut bytes, CODE_LEN as usize);
    let Ok(elf) = Elf::open(object::file(code, &[(".eh_frame", section)])) else { return };
    let Ok(module) = Module::from_elf(&elf) else { return };
    let mut space = AddressSpace::new();
    space.map(Avma(BASE + CODE), CODE_LEN, Avma(BASE), Arc::new(module));

    // Each register is an address in the code, one on the stack, or anything.
    let mut registers = [0; 17];
    for register in &mut registers {
        let value = word(take(&mut bytes, 3));
        *register = match value & 3 {
            0 => BASE + CODE + (value >> 2) % CODE_LEN,
            1 | 2 => STACK + (value >> 2) % 0x1000,
            _ => word(take(&mut bytes, 8)),
        };
    }
    let memory = StackCopy { start: Avma(STACK), bytes };
    let mut frames = 0;
    Unwinder::new().walk(&space, &Registers::X86_64(registers), &memory, &mut |_| frames += 1);
    assert!(frames <= MAX_FRAMES);
});
