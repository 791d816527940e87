//! Walking a hostile stack over one module.

use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use nyquist_object::Avma;
use nyquist_unwind::{AddressSpace, MAX_FRAMES, Module, Registers, StackCopy, Unwinder};

/// Where the module is mapped.
const BASE: u64 = 0x5555_0000_0000;
/// Where the stack is.
const STACK: u64 = 0x7ffc_0000_0000;

/// Walks with registers and a stack from `input`, and expects the walk to end within its bounds. A word that is
/// small stands for an address in the module, so that a mutation finds its code.
pub fn walk(module: &Arc<Module>, size: u64, input: &mut Unstructured<'_>) -> Result<()> {
    let mut space = AddressSpace::new();
    space.map(Avma(BASE), size, Avma(BASE), Arc::clone(module));
    let mut registers = [0; 17];
    for register in &mut registers {
        *register = place(u64::from(input.arbitrary::<u32>()?));
    }
    registers[7] = STACK + u64::from(input.arbitrary::<u8>()?);
    let mut stack = Vec::new();
    while input.len() >= 4 {
        stack.extend(place(u64::from(input.arbitrary::<u32>()?)).to_le_bytes());
    }
    let memory = StackCopy { start: Avma(STACK), bytes: &stack };
    let mut frames = 0;
    Unwinder::new().walk(&space, &Registers::X86_64(registers), &memory, &mut |_| frames += 1);
    assert!((1..=MAX_FRAMES).contains(&frames));
    Ok(())
}

/// What 32 bits stand for: a place in the module, a place on the stack, or themselves, by their highest bits.
fn place(bits: u64) -> u64 {
    match bits >> 30 {
        0 => BASE + bits,
        1 => STACK + (bits & 0xffff),
        2 => bits & 0xffff,
        _ => bits << 32 | bits,
    }
}
