//! Steps over handmade call frame information. Each test is one way in which a frame is found.

use crate::object::{
    BASE, CODE, CODE_LEN, Function, INITIAL, SECTIONS, STACK, bytes, code, debug_frame, eh_frame, file,
    make_code, module, registers, space, walk, without_sections,
};
use nyquist_object::{Architecture, Avma, ByteSource, Elf};
use nyquist_unwind::{AddressSpace, FrameAddress, Module, Reason, Registers, StackCopy, Unwinder, WalkEnd};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// `DW_CFA_undefined` of the return address: the outermost function.
const ROOT: &[u8] = &[0x07, 16];
/// The offset in the code of the outermost function of all tests, and of a place in it.
const ROOT_AT: u32 = 0xf00;
const IN_ROOT: u64 = 0xf10;

fn interrupted(address: u64) -> FrameAddress {
    FrameAddress::InstructionPointer(Avma(address))
}

fn returns(address: u64) -> FrameAddress {
    FrameAddress::ReturnAddress(Avma(address))
}

/// A module whose first function, at 0x100, has these instructions, and the outermost one.
fn with(instructions: &[u8]) -> Module {
    with_augmentation("zR", instructions)
}

fn with_augmentation(augmentation: &str, instructions: &[u8]) -> Module {
    let first = Function { start: 0x100, len: 0x100, instructions };
    let root = Function { start: ROOT_AT, len: 0x100, instructions: ROOT };
    let outer = eh_frame(SECTIONS, "zR", &INITIAL, &[root]);
    let inner = eh_frame(SECTIONS + outer.len() as u64, augmentation, &INITIAL, &[first]);
    // A CIE is found by its distance from the FDE, so sections can be concatenated.
    let module = module(file(&[], &[(".eh_frame", &[outer, inner].concat())]));
    assert_eq!(module.damage().first, None);
    module
}

/// Walks from 0x110 in the first function, with the stack given, and expects its caller to be the outermost
/// function.
#[track_caller]
fn check(instructions: &[u8], registers: [u64; 17], stack: &[u64]) {
    let bytes = bytes(stack);
    let memory = StackCopy { start: Avma(STACK), bytes: &bytes };
    let (frames, end) = walk(&space(with(instructions)), registers, &memory);
    assert_eq!(frames, [interrupted(registers[16]), returns(code(IN_ROOT))]);
    assert_eq!(end, WalkEnd::Root);
}

#[test]
fn section_headers_that_were_cut_off() {
    let functions = [(0x100, &[0x0e, 24][..]), (ROOT_AT, ROOT)];
    let functions = functions.map(|(start, instructions)| Function { start, len: 0x100, instructions });
    let section = eh_frame(SECTIONS, "zR", &INITIAL, &functions);
    // The section is followed by its header, which has no table or one of two entries, and then by other
    // bytes.
    let len = section.len() as u64;
    let start = (len as i32 + 4).wrapping_neg();
    let last = section.len() as i32 - 32 - section.len() as i32;
    for (encodings, rest) in
        [([1, 0x1b, 0xff, 0xff], vec![start]), ([1, 0x1b, 3, 0x3b], vec![start, 1, 0, last])]
    {
        let header =
            [encodings.to_vec(), rest.iter().flat_map(|word: &i32| word.to_le_bytes()).collect()].concat();
        let whole = file(&[], &[(".eh_frame", &section), (".eh_frame_hdr", &header)]);
        let cut = without_sections(whole, SECTIONS + len, len + header.len() as u64);
        assert!(Elf::open(&*cut).unwrap().sections().is_empty());
        let stack = bytes(&[1, 2, code(IN_ROOT)]);
        let memory = StackCopy { start: Avma(STACK), bytes: &stack };
        let (frames, end) = walk(&space(module(cut)), registers(code(0x110), STACK, 0), &memory);
        assert_eq!(frames, [interrupted(code(0x110)), returns(code(IN_ROOT))]);
        assert_eq!(end, WalkEnd::Root);
    }
}

#[test]
fn cfa_from_the_stack_pointer() {
    check(&[], registers(code(0x110), STACK, 0), &[code(IN_ROOT)]);
    check(&[0x0e, 24], registers(code(0x110), STACK, 0), &[1, 2, code(IN_ROOT)]);
    // After an advance by 8 bytes, and not after one by 0x20.
    check(&[0x48, 0x0e, 24], registers(code(0x110), STACK, 0), &[1, 2, code(IN_ROOT)]);
    check(&[0x60, 0x0e, 24], registers(code(0x110), STACK, 0), &[code(IN_ROOT)]);
}

#[test]
fn cfa_from_the_frame_pointer() {
    let push_and_move = [0x0e, 16, 0x86, 2, 0x0d, 6];
    check(&push_and_move, registers(code(0x110), STACK, STACK + 8), &[0, 77, code(IN_ROOT)]);
}

/// Swift marks a saved frame pointer beside which an asynchronous context is.
#[test]
fn a_marked_frame_pointer_is_followed() {
    let push_and_move = [0x0e, 16, 0x86, 2, 0x0d, 6];
    // rbx is saved by an expression, which no rule can express.
    let by_all_registers = [&push_and_move[..], &[0x10, 3, 2, 0x76, 0x70]].concat();
    for instructions in [&push_and_move[..], &by_all_registers] {
        let functions = [(0x100, instructions), (0x200, &push_and_move), (ROOT_AT, ROOT)];
        let functions = functions.map(|(start, instructions)| Function { start, len: 0x100, instructions });
        let section = eh_frame(SECTIONS, "zR", &INITIAL, &functions);
        let space = space(module(file(&[], &[(".eh_frame", &section)])));
        let stack = bytes(&[(STACK + 24) | 1 << 60, code(0x210), 5, 0, code(IN_ROOT)]);
        let memory = StackCopy { start: Avma(STACK), bytes: &stack };
        let (frames, end) = walk(&space, registers(code(0x110), STACK, STACK), &memory);
        assert_eq!(frames, [interrupted(code(0x110)), returns(code(0x210)), returns(code(IN_ROOT))]);
        assert_eq!(end, WalkEnd::Root);
    }
}

#[test]
fn cfa_from_any_other_register() {
    let mut values = registers(code(0x110), STACK, 0);
    values[11] = STACK + 16;
    check(&[0x0c, 11, 0], values, &[1, code(IN_ROOT)]);
}

#[test]
fn cfa_by_expressions() {
    // The word at rsp + 8, + 8.
    let at_rsp = [0x0f, 5, 0x77, 8, 0x06, 0x23, 8];
    check(&at_rsp, registers(code(0x110), STACK, 0), &[1, STACK + 16, code(IN_ROOT)]);
    // The word at rbp - 8.
    let at_rbp = [0x0f, 3, 0x76, 0x78, 0x06];
    check(&at_rbp, registers(code(0x110), STACK, STACK + 8), &[STACK + 16, code(IN_ROOT)]);
    // rax * 2, which no rule can express.
    let mut values = registers(code(0x110), STACK, 0);
    values[0] = STACK / 2 + 8;
    check(&[0x0f, 4, 0x70, 0, 0x32, 0x1e], values, &[1, code(IN_ROOT)]);
}

#[test]
fn linkage_stubs_by_the_place_in_them() {
    let stub = [0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
    check(&stub, registers(code(0x110), STACK, 0), &[code(IN_ROOT)]);
    check(&stub, registers(code(0x11a), STACK, 0), &[code(IN_ROOT)]);
    check(&stub, registers(code(0x11b), STACK, 0), &[1, code(IN_ROOT)]);
}

#[test]
fn frames_of_more_than_262_kb() {
    // The largest frame of rustc 1.95, and above it the return address: 522,392 bytes, as LEB128.
    let mut stack = vec![0; 522_384 / 8];
    stack.push(code(IN_ROOT));
    check(&[0x0e, 0x98, 0xf1, 0x1f], registers(code(0x110), STACK, 0), &stack);
}

#[test]
fn a_stale_frame_pointer_rule_leaves_it_alone() {
    // After `pop rbp`: CFA = rsp + 8, rbp still said to be saved at CFA - 16, which is below the stack
    // pointer and not part of the copy. The caller's own CFA is by the frame pointer.
    let first = Function { start: 0x100, len: 0x100, instructions: &[0x86, 2] };
    let second = Function { start: 0x200, len: 0x100, instructions: &[0x0c, 6, 16] };
    let root = Function { start: ROOT_AT, len: 0x100, instructions: ROOT };
    let section = eh_frame(SECTIONS, "zR", &INITIAL, &[first, second, root]);
    let space = space(module(file(&[], &[(".eh_frame", &section)])));
    let stack = bytes(&[code(0x210), 1, 0, code(IN_ROOT)]);
    let memory = StackCopy { start: Avma(STACK), bytes: &stack };
    let (frames, end) = walk(&space, registers(code(0x110), STACK, STACK + 16), &memory);
    assert_eq!(frames, [interrupted(code(0x110)), returns(code(0x210)), returns(code(IN_ROOT))]);
    assert_eq!(end, WalkEnd::Root);
}

/// An unknown frame pointer only ends a walk if a step needs it before a frame has saved it.
#[test]
fn a_needed_unknown_register_ends_the_walk() {
    let known = |register: usize| 1_u32 << register;
    let check = |instructions: &[u8], expected: (usize, WalkEnd)| {
        let first = Function { start: 0x100, len: 0x100, instructions };
        let second = Function { start: 0x200, len: 0x100, instructions: &[0x0e, 16, 0x86, 2, 0x0d, 6] };
        let root = Function { start: ROOT_AT, len: 0x100, instructions: ROOT };
        let section = eh_frame(SECTIONS, "zR", &INITIAL, &[first, second, root]);
        let space = space(module(file(&[], &[(".eh_frame", &section)])));
        let stack = bytes(&[STACK + 16, code(0x210), 0, code(IN_ROOT)]);
        let memory = StackCopy { start: Avma(STACK), bytes: &stack };
        let values = registers(code(0x110), STACK, STACK + 16);
        let registers = nyquist_unwind::Registers::X86_64Partial { values, known: known(7) | known(16) };
        let mut frames = 0;
        let end = nyquist_unwind::Unwinder::new().walk(&space, &registers, &memory, &mut |_| frames += 1);
        assert_eq!((frames, end), expected, "{instructions:?}");
    };
    let unknown = WalkEnd::Truncated(Reason::RegisterUnknown);
    check(&[0x0e, 16, 0x86, 2], (3, WalkEnd::Root));
    check(&[0x0e, 16], (2, unknown));
    // A slow rule: CFA = rbx + 8.
    check(&[0x0c, 3, 8], (1, unknown));
}

/// Stack memory with readable code.
struct WithCode<'a>(StackCopy<'a>, &'a [u8]);

impl nyquist_unwind::StackMemory for WithCode<'_> {
    fn read_u64(&self, address: Avma) -> Option<u64> {
        self.0.read_u64(address)
    }

    fn read_code(&self, address: Avma, out: &mut [u8]) -> usize {
        let code = if address == Avma(code(0x200)) { self.1 } else { &[] };
        let len = code.len().min(out.len());
        out[..len].copy_from_slice(&code[..len]);
        len
    }
}

/// An unknown frame pointer is found by the first instructions of the function that needs it, if the result
/// is plausible.
#[test]
fn a_prologue_finds_an_unknown_frame_pointer() {
    // push rbp; mov rbp, rsp; sub rsp, 16
    let prologue = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10];
    let check = |instructions: &[u8], stack: &[u64], expected: (usize, WalkEnd)| {
        let first = Function { start: 0x100, len: 0x100, instructions: &[] };
        let second = Function { start: 0x200, len: 0x100, instructions: &[0x0e, 16, 0x86, 2, 0x0d, 6] };
        let root = Function { start: ROOT_AT, len: 0x100, instructions: ROOT };
        let section = eh_frame(SECTIONS, "zR", &INITIAL, &[first, second, root]);
        let space = space(module(file(&[], &[(".eh_frame", &section)])));
        let stack = bytes(stack);
        let memory = WithCode(StackCopy { start: Avma(STACK), bytes: &stack }, instructions);
        let values = registers(code(0x110), STACK, 0);
        let registers = nyquist_unwind::Registers::X86_64Partial { values, known: 1 << 7 | 1 << 16 };
        let mut frames = 0;
        let end = nyquist_unwind::Unwinder::new().walk(&space, &registers, &memory, &mut |_| frames += 1);
        assert_eq!((frames, end), expected, "{instructions:x?}");
    };
    let unknown = WalkEnd::Truncated(Reason::RegisterUnknown);
    // The second function also calls itself. Then its caller's frame pointer is known.
    let twice = [code(0x210), 1, 2, STACK + 48, code(0x250), 5, 0, code(IN_ROOT)];
    check(&prologue, &twice, (4, WalkEnd::Root));
    check(&[], &twice, (2, unknown));
    check(&prologue, &[code(0x210), 1, 2, STACK + 48, 77, 5, 0, code(IN_ROOT)], (2, unknown));
}

/// A walk whose second frame needs a register that only a full evaluation of the first one restores.
#[test]
fn repeating_the_walk_gives_outer_registers() {
    // rbx is saved at CFA - 16 in the first frame, and the second one's CFA is rbx + 8.
    let first = Function { start: 0x100, len: 0x100, instructions: &[0x0e, 16, 0x83, 2] };
    let second = Function { start: 0x200, len: 0x100, instructions: &[0x0c, 3, 8] };
    let third = Function { start: 0x300, len: 0x100, instructions: &[0x0e, 16] };
    let root = Function { start: ROOT_AT, len: 0x100, instructions: ROOT };
    let section = eh_frame(SECTIONS, "zR", &INITIAL, &[first, second, third, root]);
    let space = space(module(file(&[], &[(".eh_frame", &section)])));
    let stack = bytes(&[STACK + 32, code(0x310), 1, code(0x210), code(IN_ROOT)]);
    let memory = StackCopy { start: Avma(STACK), bytes: &stack };
    let mut values = registers(code(0x110), STACK, 0);
    values[3] = 0xbad;
    let (frames, end) = walk(&space, values, &memory);
    let expected = [0x310, 0x210, IN_ROOT].map(|at| returns(code(at)));
    assert_eq!(frames[1..], expected);
    assert_eq!(end, WalkEnd::Root);
}

#[test]
fn signal_frames_by_their_registers() {
    // glibc's rules for `__restore_rt`: CFA = *(rsp + 160), rbp at rsp + 120, rip at rsp + 168.
    let rules = [0x0f, 4, 0x77, 0xa0, 1, 6, 0x10, 6, 3, 0x77, 0xf8, 0, 0x10, 16, 3, 0x77, 0xa8, 1];
    let module = with_augmentation("zRS", &rules);
    let space = space(module);
    let mut stack = vec![0; 64];
    // The handler has returned; the context is at the stack pointer.
    stack[0xa0 / 8] = STACK + 0x180;
    stack[0xa8 / 8] = code(ROOT_AT.into());
    let stack = bytes(&stack);
    let memory = StackCopy { start: Avma(STACK), bytes: &stack };
    let (frames, end) = walk(&space, registers(code(0x110), STACK, 0), &memory);
    // The interrupted instruction is the first of its function. One byte earlier is another function.
    assert_eq!(frames, [interrupted(code(0x110)), interrupted(code(ROOT_AT.into()))]);
    assert_eq!(end, WalkEnd::Root);
}

#[test]
fn signal_frames_are_walked_by_instructions() {
    let mut text = vec![0x90; CODE_LEN as usize];
    text[0x300..0x309].copy_from_slice(&[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05]);
    let root = Function { start: ROOT_AT, len: 0x100, instructions: ROOT };
    let handler = Function { start: 0x100, len: 0x100, instructions: &[] };
    let section = eh_frame(SECTIONS, "zR", &INITIAL, &[handler, root]);
    let space = space(module(file(&text, &[(".eh_frame", &section)])));
    let mut stack = vec![0; 64];
    stack[0] = code(0x300);
    stack[1 + 0xa0 / 8] = STACK + 0x180;
    stack[1 + 0xa8 / 8] = code(IN_ROOT);
    let stack = bytes(&stack);
    let memory = StackCopy { start: Avma(STACK), bytes: &stack };
    let (frames, end) = walk(&space, registers(code(0x110), STACK, 0), &memory);
    // No call returns to the function that a handler returns to. Its address is that of its first
    // instruction.
    assert_eq!(frames, [interrupted(code(0x110)), interrupted(code(0x300)), interrupted(code(IN_ROOT))]);
    assert_eq!(end, WalkEnd::Root);
    // The handler's stack, which the signal frame describes as the signal stack.
    let mut stack = vec![0; 64];
    stack[0] = code(0x300);
    stack[1 + 0x10 / 8..][..3].copy_from_slice(&[STACK - 0x1000, 0, 0x2000]);
    stack[1 + 0xa8 / 8] = code(0x110);
    let mut check = |interrupted_sp: u64, expected: Reason| {
        stack[1 + 0xa0 / 8] = interrupted_sp;
        let stack = bytes(&stack);
        let memory = StackCopy { start: Avma(STACK), bytes: &stack };
        let (frames, end) = walk(&space, registers(code(0x110), STACK, 0), &memory);
        assert_eq!(frames[1..], [interrupted(code(0x300)), interrupted(code(0x110))]);
        assert_eq!(end, WalkEnd::Truncated(expected), "{interrupted_sp:#x}");
        let mut unwinder = Unwinder::new();
        let registers = Registers::X86_64(registers(code(0x110), STACK, 0));
        unwinder.walk(&space, &registers, &memory, &mut |_| {});
        // The stack pointer that the test has written is at the place that the unwinder names.
        let left = unwinder.signal_stack().map(|stack| (stack.start.0, stack.end.0, stack.pointer_at.0));
        let expected = (STACK - 0x1000, STACK + 0x1000, STACK + 8 + 0xa0);
        assert_eq!(left, (interrupted_sp != STACK + 0x800).then_some(expected), "{interrupted_sp:#x}");
    };
    check(STACK + 0x10_0000, Reason::OtherStack);
    check(STACK - 0x10_0000, Reason::OtherStack);
    check(STACK + 0x800, Reason::StackCopyEnded);
}

#[test]
fn the_end_of_a_stack_is_no_failure() {
    let check = |instructions: &[u8], ip: u64, stack: &[u64], expected: WalkEnd| {
        let stack = bytes(stack);
        let memory = StackCopy { start: Avma(STACK), bytes: &stack };
        let (_, end) = walk(&space(with(instructions)), registers(ip, STACK, 0), &memory);
        assert_eq!(end, expected, "{instructions:x?}");
    };
    let truncated = WalkEnd::Truncated;
    check(ROOT, code(0x110), &[], WalkEnd::Root);
    check(&[], code(0x110), &[0], WalkEnd::Root);
    check(&[], code(0x110), &[], truncated(Reason::StackCopyEnded));
    check(&[0x0e, 16], code(0x110), &[1], truncated(Reason::StackCopyEnded));
    check(&[0x13, 0], code(0x110), &[1], truncated(Reason::MemoryUnreadable));
    check(&[], code(0x110), &[0x1234], truncated(Reason::NotCode));
    check(&[], code(0x110), &[code(0x500)], WalkEnd::Root);
    check(&[], code(0x500), &[code(0x110)], truncated(Reason::NoUnwindInfo));
    check(&[0x0f, 2, 0x70, 0, 0x0c, 50, 8], code(0x110), &[], truncated(Reason::RegisterUnknown));
    check(&[0x0f, 1, 0x06], code(0x110), &[], truncated(Reason::ExpressionFailed));
}

#[test]
fn a_stack_that_does_not_advance_ends_the_walk() {
    // CFA = rbp + 16 with the frame pointer unchanged, so every frame is the same.
    let space = space(with(&[0x0c, 6, 16]));
    let stack = bytes(&[0, code(0x110), code(0x110)]);
    let memory = StackCopy { start: Avma(STACK), bytes: &stack };
    let (frames, end) = walk(&space, registers(code(0x110), STACK, STACK), &memory);
    assert_eq!(end, WalkEnd::Truncated(Reason::NotAdvancing));
    assert_eq!(frames.len(), 2);
}

#[test]
fn uncovered_code_by_frame_pointers() {
    let mut space = space(with(&[]));
    space.map_code(Avma(0x1000_0000), 0x1000);
    let check = |bp: u64, stack: &[u64], frames: &[u64], end| {
        let stack = bytes(stack);
        let memory = StackCopy { start: Avma(STACK), bytes: &stack };
        let (walked, ended) = walk(&space, registers(0x1000_0010, STACK, bp), &memory);
        let addresses: Vec<_> = walked.iter().skip(1).map(|frame| frame.address().0).collect();
        assert_eq!(addresses, frames);
        assert_eq!(ended, end);
    };
    let no_info = WalkEnd::Truncated(Reason::NoUnwindInfo);
    let in_root = code(IN_ROOT);
    check(STACK + 8, &[1, 2, in_root], &[in_root], WalkEnd::Root);
    let chain = [STACK + 16, 0x1000_0020, 0, 0x1000_0030];
    check(STACK, &chain, &[0x1000_0020, 0x1000_0030], WalkEnd::Root);
    // A return address that is no code, and frame pointers that are not aligned, below or beyond the stack.
    check(STACK, &[1, 0x2000_0000], &[], no_info);
    check(STACK + 1, &[1, 2, in_root], &[], no_info);
    check(STACK - 8, &[in_root], &[], no_info);
    check(STACK + 64, &[1, in_root], &[], no_info);
    check(0, &[1, in_root], &[], no_info);
}

#[test]
fn an_interrupted_function_keeps_its_caller() {
    // The caller, at 0x100, has a frame pointer. It calls 0x830, and itself. No instruction leads from 0x830 to
    // 0x840, where there is `jmp rax`.
    let mut text = vec![0x90; CODE_LEN as usize];
    let mut call = |at: usize, to: i32| {
        text[at] = 0xe8;
        text[at + 1..at + 5].copy_from_slice(&(to - at as i32 - 5).to_le_bytes());
    };
    call(0x150, 0x830);
    call(0x160, 0x100);
    text[0x830] = 0xc3;
    text[0x840..0x842].copy_from_slice(&[0xff, 0xe0]);
    text[IN_ROOT as usize - 2..IN_ROOT as usize].copy_from_slice(&[0xff, 0xd0]);
    let caller = Function { start: 0x100, len: 0x100, instructions: &[0x0c, 6, 16, 0x86, 2] };
    let root = Function { start: ROOT_AT, len: 0x100, instructions: ROOT };
    let section = eh_frame(SECTIONS, "zR", &INITIAL, &[caller, root]);
    let file = file(&text, &[(".eh_frame", &section)]);
    let space = space(Module::from_shared_elf(Elf::open(file).unwrap()).unwrap());
    let check = |stack: &[u64], callers: &[u64], expected: WalkEnd| {
        let record = STACK + 8 * (stack.len() as u64 - 2);
        let bytes = bytes(stack);
        let memory = StackCopy { start: Avma(STACK), bytes: &bytes };
        let (frames, end) = walk(&space, registers(code(0x840), STACK, record), &memory);
        let found: Vec<u64> = frames.iter().skip(1).map(|frame| frame.address().0).collect();
        assert_eq!((found, end), (callers.to_vec(), expected), "{stack:x?}");
    };
    let (returns_here, returns_elsewhere, in_root) = (code(0x155), code(0x165), code(IN_ROOT));
    let no_info = WalkEnd::Truncated(Reason::NoUnwindInfo);
    check(&[returns_here, 7, 0, in_root], &[returns_here, in_root], WalkEnd::Root);
    check(&[1, returns_here, 7, 0, in_root], &[returns_here, in_root], WalkEnd::Root);
    // Left over from an earlier call, or not behind a call.
    check(&[1, returns_elsewhere, 7, 0, in_root], &[in_root], WalkEnd::Root);
    check(&[1, code(0x900), 7, 0, in_root], &[in_root], WalkEnd::Root);
    // A function that was called, and has jumped to this one, may look like this.
    check(&[returns_elsewhere, 7, 0, in_root], &[], no_info);
}

#[test]
fn prologues_and_epilogues_walk_by_instructions() {
    let mut text = vec![0x90; CODE_LEN as usize];
    text[0x300..0x306].copy_from_slice(&[0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3]);
    // The call in the outermost function. Its instructions are also known if nothing covers it.
    let root = Function { start: ROOT_AT, len: 0x100, instructions: ROOT };
    let section = eh_frame(SECTIONS, "zR", &INITIAL, &[root]);
    let space = space(module(file(&text, &[(".eh_frame", &section)])));
    let in_root = code(IN_ROOT);
    let check = |at, bp, stack: &[u64]| {
        let stack = bytes(stack);
        let memory = StackCopy { start: Avma(STACK), bytes: &stack };
        let (frames, end) = walk(&space, registers(code(at), STACK, bp), &memory);
        assert_eq!(frames, [interrupted(code(at)), returns(in_root)], "{at:#x}");
        assert_eq!(end, WalkEnd::Root);
    };
    check(0x300, 0, &[in_root]);
    check(0x301, 0, &[0, in_root]);
    check(0x304, STACK, &[0, in_root]);
    check(0x305, 0, &[in_root]);
}

/// A file that records which of its bytes are read.
#[derive(Clone)]
struct Noted {
    bytes: Arc<Vec<u8>>,
    read: Arc<Mutex<Vec<Range<u64>>>>,
}

impl ByteSource for Noted {
    fn len(&self) -> u64 {
        ByteSource::len(&*self.bytes)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read.lock().unwrap().push(offset..offset + buffer.len() as u64);
        self.bytes.read_exact_at(offset, buffer)
    }
}

#[test]
fn jump_tables_are_read_without_code_around_them() {
    const TABLE: Range<u64> = 0x800..0x820;
    let mut text = vec![0xf4; CODE_LEN as usize];
    // push GOT[1]; jmp *GOT[2]; nopl. And for one function: jmp *GOT[3]; push 0; jmp to the first.
    let first = [0xff, 0x35, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0, 0x0f, 0x1f, 0x40, 0];
    let second = [0xff, 0x25, 0, 0, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0xe0, 0xff, 0xff, 0xff];
    text[0x800..0x820].copy_from_slice(&[first, second].concat());
    let root = Function { start: ROOT_AT, len: 0x100, instructions: ROOT };
    let section = eh_frame(SECTIONS, "zR", &INITIAL, &[root]);
    let mut bytes = file(&text, &[(".eh_frame", &section), (".text", &[]), (".plt", &[])]);
    make_code(&mut bytes, 2, 0, TABLE.start);
    make_code(&mut bytes, 3, TABLE.start, TABLE.end - TABLE.start);
    let noted = Noted { bytes: Arc::new(bytes), read: Arc::default() };
    let space = space(Module::from_shared_elf(Elf::open(noted.clone()).unwrap()).unwrap());
    noted.read.lock().unwrap().clear();
    let in_root = code(IN_ROOT);
    let stack = self::bytes(&[in_root]);
    let memory = StackCopy { start: Avma(STACK), bytes: &stack };
    let (frames, end) = walk(&space, registers(code(0x810), STACK, 0), &memory);
    assert_eq!((frames, end), (vec![interrupted(code(0x810)), returns(in_root)], WalkEnd::Root));
    let read = std::mem::take(&mut *noted.read.lock().unwrap());
    let is_table = |range: &Range<u64>| CODE + TABLE.start <= range.start && range.end <= CODE + TABLE.end;
    assert!(!read.is_empty() && read.iter().all(is_table), "{read:x?}");
}

#[test]
fn a_call_to_nowhere_is_its_callers() {
    let stack = bytes(&[code(IN_ROOT)]);
    let memory = StackCopy { start: Avma(STACK), bytes: &stack };
    let (frames, end) = walk(&space(with(&[])), registers(0, STACK, 0), &memory);
    assert_eq!(frames, [interrupted(0), returns(code(IN_ROOT))]);
    assert_eq!(end, WalkEnd::Root);
}

#[test]
fn a_walk_has_a_most_number_of_frames() {
    // Two words a frame.
    let space = space(with(&[0x0e, 16]));
    let stack = bytes(&[1, code(0x110)].repeat(20_000));
    let memory = StackCopy { start: Avma(STACK), bytes: &stack };
    let (frames, end) = walk(&space, registers(code(0x110), STACK, 0), &memory);
    assert_eq!(end, WalkEnd::Truncated(Reason::TooManyFrames));
    assert_eq!(frames.len(), nyquist_unwind::MAX_FRAMES);
}

/// Other encodings of the same information.
#[test]
fn sections_of_every_kind() {
    let functions = || {
        [
            Function { start: ROOT_AT, len: 0x100, instructions: ROOT },
            Function { start: 0x100, len: 0x100, instructions: &[0x0e, 16] },
            Function { start: 0x400, len: 0, instructions: &[0x0e, 32] },
        ]
    };
    let check = |sections: &[(&str, &[u8])]| {
        let module = module(file(&[], sections));
        assert_eq!(module.damage().first, None, "{sections:x?}");
        let stack = bytes(&[1, code(IN_ROOT)]);
        let memory = StackCopy { start: Avma(STACK), bytes: &stack };
        let (frames, end) = walk(&space(module), registers(code(0x110), STACK, 0), &memory);
        assert_eq!((frames.len(), end), (2, WalkEnd::Root));
    };
    let relative = eh_frame(SECTIONS, "zR", &INITIAL, &functions());
    check(&[(".eh_frame", &relative)]);
    check(&[(".eh_frame", &eh_frame(SECTIONS, "", &INITIAL, &functions()))]);
    check(&[(".debug_frame", &debug_frame(&functions()))]);
    // A terminator at the end, and one in the middle of two linked sections.
    check(&[(".eh_frame", &[relative.clone(), vec![0; 4]].concat())]);
    let [root, first, _] = functions();
    let one = [eh_frame(SECTIONS, "zR", &INITIAL, &[root]), vec![0; 4]].concat();
    let other = eh_frame(SECTIONS + one.len() as u64, "zR", &INITIAL, &[first]);
    check(&[(".eh_frame", &[one.clone(), other].concat())]);
    // The other functions are in the other format.
    let [_, first, empty] = functions();
    check(&[(".eh_frame", &one), (".debug_frame", &debug_frame(&[first, empty]))]);
}

#[test]
fn debug_frame_of_a_separate_file() {
    let root = Function { start: ROOT_AT, len: 0x100, instructions: ROOT };
    let first = Function { start: 0x100, len: 0x100, instructions: &[0x0e, 16] };
    let elf = Elf::open(file(&[], &[(".eh_frame", &eh_frame(SECTIONS, "zR", &INITIAL, &[root]))])).unwrap();
    let debug = Elf::open(file(&[], &[(".debug_frame", &debug_frame(&[first]))])).unwrap();
    let space = space(Module::from_elf_with_debug(&elf, Some(&debug)).unwrap());
    let stack = bytes(&[1, code(IN_ROOT)]);
    let memory = StackCopy { start: Avma(STACK), bytes: &stack };
    let (frames, end) = walk(&space, registers(code(0x110), STACK, 0), &memory);
    assert_eq!((frames.len(), end), (2, WalkEnd::Root));
}

#[test]
fn made_code_by_the_section_behind_it() {
    // The helper writes addresses for code at CODE, so the section must have the same distance from its code.
    let len = 0x40;
    let section = eh_frame(
        CODE + len,
        "zR",
        &INITIAL,
        &[Function { start: 0, len: len as u32, instructions: &[0x0e, 24] }],
    );
    let module = Module::from_made_code(Architecture::X86_64, len as u32, section);
    let mut space = AddressSpace::new();
    let start = 0x7f00_0000_1000;
    space.map(Avma(start), len, Avma(start), Arc::new(module));
    space.map_code(Avma(BASE), 0x1000);
    let stack = bytes(&[1, 2, BASE + 0x10]);
    let memory = StackCopy { start: Avma(STACK), bytes: &stack };
    let (frames, _) = walk(&space, registers(start + 4, STACK, 0), &memory);
    assert_eq!(frames[..2], [interrupted(start + 4), returns(BASE + 0x10)]);
}

#[test]
fn an_undescribed_caller_is_walked_by_its_code() {
    // sub rsp, 8; call rdi; add rsp, 8; ret. Then a call that does not return.
    let trampoline = [0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3, 0xff, 0xd7];
    let start = 0x7f00_0000_1000;
    let mut space = space(with(&[]));
    let module = Arc::new(Module::from_instructions(trampoline.to_vec()));
    space.map(Avma(start), trampoline.len() as u64, Avma(start), module);
    let check = |called: u64, bp: u64, callers: &[u64], end| {
        let stack = bytes(&[start + called, 7, code(IN_ROOT)]);
        let memory = StackCopy { start: Avma(STACK), bytes: &stack };
        let (frames, ended) = walk(&space, registers(code(0x100), STACK, bp), &memory);
        let frames: Vec<_> = frames.iter().skip(1).map(|frame| frame.address().0).collect();
        assert_eq!((frames.as_slice(), ended), (callers, end), "{called} {bp:#x}");
    };
    // The frame pointer does not point to a frame, or it points to an outer frame.
    for bp in [0, 0xdead, STACK + 0x100] {
        check(6, bp, &[start + 6, code(IN_ROOT)], WalkEnd::Root);
    }
    check(13, 0xdead, &[start + 13], WalkEnd::Truncated(Reason::NoUnwindInfo));
}

#[test]
fn made_code_need_not_begin_with_a_function() {
    // push rax; call rdi; call rdi. If this was the start of a function, its caller would be two words
    // further out.
    let piece = [0x50, 0xff, 0xd7, 0xff, 0xd7];
    let start = 0x7f00_0000_1000;
    let mut space = space(with(&[]));
    let module = Arc::new(Module::from_instructions(piece.to_vec()));
    space.map(Avma(start), piece.len() as u64, Avma(start), module);
    let stack = bytes(&[start + 3, 7, code(IN_ROOT)]);
    let memory = StackCopy { start: Avma(STACK), bytes: &stack };
    let (frames, end) = walk(&space, registers(code(0x100), STACK, 0xdead), &memory);
    assert_eq!(frames, [interrupted(code(0x100)), returns(start + 3)]);
    assert_eq!(end, WalkEnd::Truncated(Reason::NoUnwindInfo));
}

#[test]
fn only_code_that_is_met_is_compiled() {
    let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let elf = nyquist_object::Elf::open(bytes).unwrap();
    let module = Module::from_elf(&elf).unwrap();
    let start = elf.entry_point().unwrap().0 - elf.image_base().0;
    let before = module.size();
    module.rule(nyquist_object::RelativeAddress(u32::try_from(start).unwrap()));
    let with_one = module.size();
    assert!(module.tables().count() > 10);
    let with_all = module.size();
    assert!(
        before < with_one && (with_one - before) * 10 < with_all - before,
        "{before} {with_one} {with_all}"
    );
}

#[test]
fn damage_in_one_entry_costs_that_entry() {
    // `DW_CFA_restore_state` without a state, after a good row.
    let bad = Function { start: 0x200, len: 0x100, instructions: &[0x0e, 16, 0x50, 0x0b] };
    let good = Function { start: 0x100, len: 0x100, instructions: &[0x0e, 16] };
    let section = eh_frame(SECTIONS, "zR", &INITIAL, &[bad, good]);
    let module = module(file(&[], &[(".eh_frame", &section)]));
    assert_eq!((module.tables().count(), module.damage().count), (1, 1));
    let kind = |at: u32| module.rule(nyquist_object::RelativeAddress(CODE as u32 + at)).kind();
    assert_eq!(kind(0x110), nyquist_unwind::rule::CfaKind::StackPointer);
    assert_eq!(kind(0x20f), nyquist_unwind::rule::CfaKind::StackPointer);
    assert_eq!(kind(0x210), nyquist_unwind::rule::CfaKind::Uncovered);
}

/// Modules that come and go at the same addresses have their own rules, whatever has been cached.
#[test]
fn a_cached_rule_belongs_to_its_module() {
    let one = Arc::new(with(&[0x0e, 16]));
    let other = Arc::new(with(&[0x0e, 24]));
    let mut unwinder = nyquist_unwind::Unwinder::new();
    let mut frames_with = |module: &Arc<Module>| {
        let mut space = AddressSpace::new();
        space.map(Avma(BASE + CODE), CODE_LEN, Avma(BASE), module.clone());
        let stack = bytes(&[1, code(IN_ROOT), code(IN_ROOT + 1)]);
        let memory = StackCopy { start: Avma(STACK), bytes: &stack };
        let registers = nyquist_unwind::Registers::X86_64(registers(code(0x110), STACK, 0));
        let mut last = None;
        unwinder.walk(&space, &registers, &memory, &mut |frame| last = Some(frame));
        last.unwrap()
    };
    for _ in 0..2 {
        assert_eq!(frames_with(&one), returns(code(IN_ROOT)));
        assert_eq!(frames_with(&other), returns(code(IN_ROOT + 1)));
    }
}

/// Walks from a function of this length, whose return address is the start of the next function. `above` is
/// the word above it.
fn walk_to_beginning(len: u32, above: u64) -> (Vec<FrameAddress>, WalkEnd) {
    let functions = [(0x100, len), (0x200, 0x20)];
    let functions = functions.map(|(start, len)| Function { start, len, instructions: &[] });
    let module = module(file(&[], &[(".eh_frame", &eh_frame(SECTIONS, "zR", &INITIAL, &functions))]));
    let bytes = bytes(&[code(0x200), above]);
    let memory = StackCopy { start: Avma(STACK), bytes: &bytes };
    walk(&space(module), registers(code(0x110), STACK, 0), &memory)
}

/// The stack that `makecontext` makes: the start of `__start_context`, and above it a pointer that does not
/// point to code.
#[test]
fn a_beginning_nothing_returns_to_is_the_bottom() {
    for above in [0, 0x1234] {
        let (frames, end) = walk_to_beginning(0xf8, above);
        assert_eq!(frames, [interrupted(code(0x110)), returns(code(0x200))], "{above:#x}");
        assert_eq!(end, WalkEnd::Bottom, "{above:#x}");
    }
}

#[test]
fn a_call_at_a_functions_end_is_no_bottom() {
    let (frames, end) = walk_to_beginning(0x100, 0x1234);
    assert_eq!(frames, [interrupted(code(0x110)), returns(code(0x200))]);
    assert_eq!(end, WalkEnd::Truncated(Reason::NotCode));
}
