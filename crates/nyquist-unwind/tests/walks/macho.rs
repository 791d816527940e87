//! Steps over a handmade Mach-O file: two functions, one of which calls the other, and a stub.

use crate::object::{GO_PROLOGUE, STACK, bytes, go_table};
use nyquist_object::{Avma, MachO};
use nyquist_unwind::{AddressSpace, FrameAddress, Module, Reason, Registers, StackCopy, Unwinder, WalkEnd};
use std::sync::Arc;

const TEXT: u64 = 0x1_0000_0000;
/// The offset of the code from the image base, and that of the stub after it.
const CODE: u32 = 0x1000;
const STUB: u32 = 0x1100;
/// Where the module is in the process.
const BASE: u64 = 0x1_0420_0000;
/// Code of another library, which called the outer function.
const OUTSIDE: u64 = 0x1_8000_0010;

/// stp x29, x30, [sp, -16]!; mov x29, sp; bl; ldp x29, x30, [sp], 16; ret. Then a leaf: sub sp, sp, 16; str
/// x0, [sp, 8]; add sp, sp, 16; ret.
const INSTRUCTIONS: [u32; 9] = [
    0xa9bf_7bfd,
    0x9100_03fd,
    0x9400_0010,
    0xa8c1_7bfd,
    0xd65f_03c0,
    0xd100_43ff,
    0xf900_07e0,
    0x9100_43ff,
    0xd65f_03c0,
];
/// adrp x16; ldr x16, [x16]; br x16.
const STUB_INSTRUCTIONS: [u32; 3] = [0x9000_0010, 0xf940_0210, 0xd61f_0200];

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Compact unwind information of one regular page: a function with a frame record, and from `frameless` up to
/// `end` a function without one, which has 16 bytes of stack.
fn compact_info(frameless: u32, end: u32) -> Vec<u8> {
    let head = [1, 28, 0, 28, 0, 28, 2];
    let index = [CODE, 52, 0, end, 0, 0];
    let page = [2, 0x0002_0008, CODE, 0x0400_0000, frameless, 0x0200_1000];
    words(&[&head[..], &index, &page].concat())
}

fn section(name: &str, offset: u32, bytes: &[u8], flags: u32) -> Vec<u8> {
    let mut header = [0; 80];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[16..22].copy_from_slice(b"__TEXT");
    header[32..40].copy_from_slice(&(TEXT + u64::from(offset)).to_le_bytes());
    header[40..48].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    header[48..52].copy_from_slice(&offset.to_le_bytes());
    header[64..68].copy_from_slice(&flags.to_le_bytes());
    header.to_vec()
}

/// The file: two functions and a stub, by compact unwind information.
fn file() -> Vec<u8> {
    let code = words(&INSTRUCTIONS);
    let stub = words(&STUB_INSTRUCTIONS);
    let end = CODE + code.len() as u32;
    let info = compact_info(CODE + 20, end);
    file_of(&[
        ("__text", CODE, code, 0x8000_0400),
        ("__stubs", STUB, stub, 0x8000_0408),
        ("__unwind_info", 0x1200, info, 0),
    ])
}

/// A file with these sections: the name, the place, the contents and the flags.
fn file_of(contents: &[(&str, u32, Vec<u8>, u32)]) -> Vec<u8> {
    let sections: Vec<_> =
        contents.iter().map(|(name, at, bytes, flags)| section(name, *at, bytes, *flags)).collect();
    let size = 72 + sections.concat().len() as u32;
    let mut file = words(&[0xfeed_facf, 0x0100_000c, 0, 2, 1, size, 0, 0, 0x19, size]);
    file.extend_from_slice(b"__TEXT\0\0\0\0\0\0\0\0\0\0");
    for long in [TEXT, 0x2000, 0, 0x2000] {
        file.extend_from_slice(&u64::to_le_bytes(long));
    }
    file.extend(words(&[5, 5, sections.len() as u32, 0]));
    file.extend(sections.concat());
    for (_, at, bytes, _) in contents {
        file.resize(*at as usize, 0);
        file.extend(bytes);
    }
    file.resize(0x2000, 0);
    file
}

/// Walks from an instruction of the code with these registers and this stack, and expects the callers.
#[track_caller]
fn check(at: u32, registers: (u64, u64, u64), stack: &[u64], callers: &[u64]) {
    check_file(file(), at, registers, stack, callers);
}

#[track_caller]
fn check_file(file: Vec<u8>, at: u32, (sp, x29, x30): (u64, u64, u64), stack: &[u64], callers: &[u64]) {
    let module = Module::from_macho(&MachO::open(file).unwrap()).unwrap();
    assert_eq!(module.damage().first, None);
    let mut space = AddressSpace::new();
    space.map(Avma(BASE), 0x2000, Avma(BASE), Arc::new(module));
    space.map_code(Avma(OUTSIDE & !0xfff), 0x1000);
    let mut values = [0xdead; 33];
    (values[29], values[30], values[31], values[32]) = (x29, x30, sp, BASE + u64::from(at));
    let stack = bytes(stack);
    let memory = StackCopy { start: Avma(STACK), bytes: &stack };
    let mut frames = Vec::new();
    let mut add = |frame: FrameAddress| frames.push(frame.address().0);
    let end = Unwinder::new().walk(&space, &Registers::Aarch64(values), &memory, &mut add);
    assert_eq!(frames[1..], *callers, "at {at:#x}");
    // The code outside has no frame pointer: this is where the stack ends.
    assert!(matches!(end, WalkEnd::Root | WalkEnd::Truncated(Reason::NoUnwindInfo)), "{end:?}");
}

#[test]
fn every_instruction_has_its_callers() {
    let stack = [0, OUTSIDE, 0, 0];
    let (inside, outside) = ((STACK, STACK, 5), (STACK + 16, 0, OUTSIDE));
    check(CODE, outside, &stack, &[OUTSIDE]);
    check(CODE + 4, (STACK, 0, OUTSIDE), &stack, &[OUTSIDE]);
    check(CODE + 8, inside, &stack, &[OUTSIDE]);
    check(CODE + 12, inside, &stack, &[OUTSIDE]);
    check(CODE + 16, outside, &stack, &[OUTSIDE]);
}

#[test]
fn a_leaf_and_a_stub_return_to_their_caller() {
    let return_address = BASE + u64::from(CODE) + 12;
    let frames = [return_address, OUTSIDE];
    let stack = [1, 2, STACK + 32, 3, 0, OUTSIDE];
    let inside = (STACK, STACK + 32, return_address);
    check(CODE + 24, inside, &stack, &frames);
    for at in [CODE + 20, CODE + 32, STUB, STUB + 4, STUB + 8] {
        check(at, (STACK + 16, STACK + 32, return_address), &stack, &frames);
    }
}

#[test]
fn a_program_of_go_by_its_own_table() {
    let mut code = words(&GO_PROLOGUE);
    code.resize(0x100, 0);
    let table = go_table(TEXT + u64::from(CODE), [0, 0x80, 0x100]);
    // The C code after it is described as usual: a function without a frame record that has 16 bytes of
    // stack.
    let c = words(&INSTRUCTIONS[5..]);
    let (start, end) = (CODE + 0x100, CODE + 0x110);
    let info = compact_info(start, end);
    let code = [code, c].concat();
    let text = ("__text", CODE, code, 0x8000_0400);
    let file = file_of(&[text, ("__unwind_info", 0x1200, info, 0), ("__gopclntab", 0x1300, table, 0)]);
    let (inside, root) = (BASE + u64::from(CODE) + 0x10, BASE + u64::from(CODE) + 0x90);
    let check = |at, registers, stack: &[u64], callers: &[u64]| {
        check_file(file.clone(), at, registers, stack, callers);
    };
    check(CODE, (STACK, 5, root), &[], &[root]);
    check(CODE + 0x10, (STACK, 5, 6), &[root, 1, 2, 3, 4, 5], &[root]);
    // In the body of the C function, called from Go.
    check(start + 4, (STACK, 5, inside), &[1, 2, root, 3, 4, 5, 6, 7], &[inside, root]);
}
