//! Walks through code that is compiled at run time and uses the frame pointer for other values, as HotSpot's does.

use crate::object::{
    Function, INITIAL, SECTIONS, STACK, bytes, code, eh_frame, file, module, registers, space,
};
use nyquist_object::Avma;
use nyquist_unwind::{AddressSpace, FrameAddress, Module, Registers, StackCopy, Unwinder, WalkEnd};
use std::sync::Arc;

/// Where the code is, and the offset of a place in the outermost function, which is in a file.
const START: u64 = 0x7f00_0000_1000;
const IN_ROOT: u64 = 0xf10;

/// Behind a call in a function with a frame of four words, and a jump by a register in an interpreter.
const BEHIND_CALL: u64 = START + 17;
const IN_INTERPRETER: u64 = START + 27;

/// mov [rsp - 0x14000], eax; push rbp; sub rsp, 0x20; call 0; add rsp, 0x20; pop rbp; ret; nop; nop; nop; jmp rax.
const INSTRUCTIONS: &[&[u8]] = &[
    &[0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xec, 0x20, 0xe8, 0xef, 0xff, 0xff, 0xff],
    &[0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe0],
];

fn outermost() -> Module {
    let root = Function { start: 0xf00, len: 0x100, instructions: &[0x07, 16] };
    module(file(&[], &[(".eh_frame", &eh_frame(SECTIONS, "zR", &INITIAL, &[root]))]))
}

/// The addresses of the frames of a stack, and the code that the walk doubts.
fn walk(space: &AddressSpace, ip: u64, fp: u64, stack: &[u64]) -> (Vec<u64>, WalkEnd, Option<Avma>) {
    let (bytes, mut unwinder, mut frames) = (bytes(stack), Unwinder::new(), Vec::new());
    let memory = StackCopy { start: Avma(STACK), bytes: &bytes };
    let registers = Registers::X86_64(registers(ip, STACK, fp));
    let mut push = |frame: FrameAddress| frames.push(frame.address().0);
    let end = unwinder.walk(space, &registers, &memory, &mut push);
    (frames, end, unwinder.doubtful_code())
}

/// The address space with the code, whose instructions are known.
fn with_instructions() -> AddressSpace {
    let mut space = space(outermost());
    let instructions = INSTRUCTIONS.concat();
    let len = instructions.len() as u64;
    space.map(Avma(START), len, Avma(START), Arc::new(Module::from_instructions(instructions)));
    space
}

#[test]
fn a_frame_pointer_may_be_another_value() {
    // Two calls of the function. What it has saved as the caller's frame pointer is a number.
    let stack = [1, 2, 3, 4, 0xbad, BEHIND_CALL, 5, 6, 7, 8, 0xbad, code(IN_ROOT)];
    // The frame pointer leads beyond a caller, or nowhere.
    for fp in [STACK + 10 * 8, 7] {
        let (frames, end, doubtful) = walk(&with_instructions(), BEHIND_CALL, fp, &stack);
        assert_eq!((frames, end), (vec![BEHIND_CALL, BEHIND_CALL, code(IN_ROOT)], WalkEnd::Root), "{fp:#x}");
        assert_eq!(doubtful, None);
    }
}

#[test]
fn an_interpreter_has_its_callers_stack_pointer() {
    // The interpreter's frame record is at the third word. Two arguments are between it and the caller's frame.
    let caller = STACK + 6 * 8;
    let stack = [1, caller, 0xbad, BEHIND_CALL, 9, 9, 1, 2, 3, 4, 0xbad, code(IN_ROOT)];
    let (frames, end, _) = walk(&with_instructions(), IN_INTERPRETER, STACK + 2 * 8, &stack);
    assert_eq!((frames, end), (vec![IN_INTERPRETER, BEHIND_CALL, code(IN_ROOT)], WalkEnd::Root));
    // Without arguments, a number there means nothing.
    let stack = [1, STACK + 7 * 8, 0xbad, BEHIND_CALL, 1, 2, 3, 4, 0xbad, code(IN_ROOT), 0, 0];
    let (frames, end, _) = walk(&with_instructions(), IN_INTERPRETER, STACK + 2 * 8, &stack);
    assert_eq!((frames, end), (vec![IN_INTERPRETER, BEHIND_CALL, code(IN_ROOT)], WalkEnd::Root));
}

#[test]
fn a_walk_says_which_code_it_needs() {
    // The frame pointer leads beyond a caller. Only the instructions could show that.
    let stack = [1, 2, 3, 4, 0xbad, BEHIND_CALL, 5, 6, 7, 8, 0xbad, code(IN_ROOT)];
    let mut space = space(outermost());
    space.map_code(Avma(START), 0x1000);
    let (frames, end, doubtful) = walk(&space, BEHIND_CALL, STACK + 10 * 8, &stack);
    assert_eq!((frames, end), (vec![BEHIND_CALL, code(IN_ROOT)], WalkEnd::Root));
    assert_eq!(doubtful, Some(Avma(BEHIND_CALL)));
    // The return address is in code that was read before it was made.
    let other = START + 0x100_0000;
    let module = Arc::new(Module::from_instructions(vec![0x90; 0x1000]));
    let mut space = with_instructions();
    space.map(Avma(other), 0x1000, Avma(other), module);
    let stack = [1, 2, 3, 4, 0xbad, other + 0x100, 5, 6, 7, 8, 0xbad, code(IN_ROOT)];
    let (_, end, doubtful) = walk(&space, BEHIND_CALL, 7, &stack);
    assert!(matches!(end, WalkEnd::Truncated(_)), "{end:?}");
    assert_eq!(doubtful, Some(Avma(other + 0xff)));
}
