//! Steps of 64-bit ARM over handmade call frame information and code, and random walks.

use crate::object::{
    BASE, CODE, CODE_LEN, Function, GO_PROLOGUE, SECTIONS, STACK, bytes, code, eh_frame, file, go_table,
    module, space,
};
use nyquist_object::Avma;
use nyquist_unwind::{
    AddressSpace, FrameAddress, MAX_FRAMES, Module, Reason, Registers, StackCopy, StackMemory, Unwinder,
    WalkEnd,
};

/// The initial instructions of every compiler: CFA = sp, all registers unchanged.
const INITIAL: [u8; 3] = [0x0c, 31, 0];
/// The return address is undefined: the outermost function.
const ROOT: &[u8] = &[0x07, 30];
/// CFA = sp + 32, x29 and x30 at its bottom.
const RECORD_BELOW: &[u8] = &[0x0e, 32, 0x9d, 4, 0x9e, 3];

/// A file for 64-bit ARM with functions of 0x100 bytes from 0x100 on. The outermost function is at 0xf00.
fn arm_file(instructions: &[u8], functions: &[&[u8]]) -> Vec<u8> {
    let mut all: Vec<_> = functions
        .iter()
        .zip(1..)
        .map(|(instructions, number)| Function { start: 0x100 * number, len: 0x100, instructions })
        .collect();
    all.push(Function { start: 0xf00, len: 0x100, instructions: ROOT });
    let mut section = eh_frame(SECTIONS, "zR", &INITIAL, &all);
    // The column of the return address, behind the entry's head, the version, "zR" and the two factors.
    assert_eq!(section[14], 16);
    section[14] = 30;
    let mut file = file(instructions, &[(".eh_frame", &section)]);
    // EM_AARCH64.
    file[18] = 183;
    file
}

fn arm(instructions: &[u8], functions: &[&[u8]]) -> Module {
    let module = module(arm_file(instructions, functions));
    assert_eq!(module.damage().first, None);
    module
}

/// Registers with these values of the instruction pointer, the stack pointer, x29 and x30, and all others
/// 0xdead.
fn registers(pc: u64, sp: u64, x29: u64, x30: u64) -> [u64; 33] {
    let mut values = [0xdead; 33];
    (values[29], values[30], values[31], values[32]) = (x29, x30, sp, pc);
    values
}

fn walk(space: &AddressSpace, registers: &[u64; 33], memory: &impl StackMemory) -> (Vec<u64>, WalkEnd) {
    let mut frames = Vec::new();
    let mut add = |frame: FrameAddress| frames.push(frame.address().0);
    let end = Unwinder::new().walk(space, &Registers::Aarch64(*registers), memory, &mut add);
    (frames, end)
}

#[track_caller]
fn check(space: &AddressSpace, registers: &[u64; 33], stack: &[u64], expected: &[u64], end: WalkEnd) {
    let bytes = bytes(stack);
    let memory = StackCopy { start: Avma(STACK), bytes: &bytes };
    assert_eq!(walk(space, registers, &memory), (expected.to_vec(), end));
}

const IN_ROOT: u64 = 0xf10;

#[test]
fn a_leafs_return_address_is_in_link_register() {
    let space = space(arm(&[], &[&[]]));
    let (pc, root) = (code(0x110), code(IN_ROOT));
    check(&space, &registers(pc, STACK, 0, root), &[], &[pc, root], WalkEnd::Root);
    // Only the innermost function can be a leaf.
    let lost = WalkEnd::Truncated(Reason::RegisterUnknown);
    check(&space, &registers(pc, STACK, 0, code(0x120)), &[], &[pc, code(0x120)], lost);
}

#[test]
fn saved_registers_and_signed_addresses() {
    let space = space(arm(&[], &[RECORD_BELOW, RECORD_BELOW]));
    let (pc, caller, root) = (code(0x110), code(0x210), code(IN_ROOT));
    let stack = [STACK + 32, caller, 1, 2, 0, root, 3, 4];
    check(&space, &registers(pc, STACK, STACK, 5), &stack, &[pc, caller, root], WalkEnd::Root);
    let signed = [STACK + 32, caller | 0x2a80 << 48, 1, 2, 0, root | 0x7f12 << 48, 3, 4];
    check(&space, &registers(pc, STACK, STACK, 5), &signed, &[pc, caller, root], WalkEnd::Root);
}

/// Swift marks a saved frame pointer beside which an asynchronous context is.
#[test]
fn a_marked_frame_pointer_is_followed() {
    // CFA = x29 + 16, x29 and x30 at its bottom.
    let by_record: &[u8] = &[0x0c, 29, 16, 0x9d, 2, 0x9e, 1];
    let space = space(arm(&[], &[by_record, by_record]));
    let (pc, caller, root) = (code(0x110), code(0x210), code(IN_ROOT));
    let stack = [(STACK + 24) | 1 << 60, caller, 5, 0, root];
    check(&space, &registers(pc, STACK, STACK, 5), &stack, &[pc, caller, root], WalkEnd::Root);
}

#[test]
fn a_frame_ends_behind_its_return_address() {
    // As in the C library's resolver: CFA = sp, and the return address is above it, after the word that a
    // stub has pushed.
    let above_cfa: &[u8] = &[0x11, 30, 0x7f];
    let space = space(arm(&[], &[above_cfa, RECORD_BELOW]));
    let (pc, caller, root) = (code(0x110), code(0x210), code(IN_ROOT));
    let stack = [7, caller, 0, root, 1, 2];
    check(&space, &registers(pc, STACK, STACK, 5), &stack, &[pc, caller, root], WalkEnd::Root);
}

#[test]
fn the_callers_mask_is_used() {
    let mut space = space(arm(&[], &[RECORD_BELOW]));
    let (pc, root) = (code(0x110), code(IN_ROOT));
    let signed = [0, root | 1 << 47, 1, 2];
    check(&space, &registers(pc, STACK, STACK, 5), &signed, &[pc, root], WalkEnd::Root);
    space.set_address_mask((1 << 48) - 1);
    let outside = WalkEnd::Truncated(Reason::NotCode);
    check(&space, &registers(pc, STACK, STACK, 5), &signed, &[pc], outside);
}

#[test]
fn the_stack_pointer_is_found_after_unknown_code() {
    let mut space = space(arm(&[], &[RECORD_BELOW]));
    let made = 0x7000_0000;
    space.map_code(Avma(made), 0x1000);
    let root = code(IN_ROOT);
    // Code without tables, whose frame is larger than its record, and a caller whose rule uses the stack
    // pointer.
    let stack = [STACK + 48, code(0x110), 7, 7, 7, 7, 0, root, 1, 2];
    let frames = [made + 8, code(0x110), root];
    check(&space, &registers(made + 8, STACK, STACK, 5), &stack, &frames, WalkEnd::Root);
}

#[test]
fn go_keeps_frame_pointers_below_stack_pointers() {
    let mut instructions = vec![0; CODE_LEN as usize];
    instructions[0x100..0x10c].copy_from_slice(&GO_PROLOGUE.map(u32::to_le_bytes).concat());
    let mut file = file(&instructions, &[(".gopclntab", &go_table(CODE, [0x100, 0xf00, 0x1000]))]);
    file[18] = 183;
    let module = module(file);
    assert_eq!(module.damage().first, None);
    let mut space = space(module);
    let (made, root) = (0x7000_0000, code(IN_ROOT));
    space.map_code(Avma(made), 0x1000);
    // Before the first instruction, the return address is in the link register.
    check(&space, &registers(code(0x100), STACK, 5, root), &[], &[code(0x100), root], WalkEnd::Root);
    // Two frames, and code without tables. The second frame has stored the address of this code's frame
    // record. The first frame's own word below the stack pointer was not copied.
    let record = STACK + 112;
    let stack = [code(0x120), 1, 2, 3, 4, record, made + 8, 1, 2, 3, 4, 5, 6, 7, 0, root];
    let frames = [code(0x110), code(0x120), made + 8, root];
    check(&space, &registers(code(0x110), STACK, 5, 6), &stack, &frames, WalkEnd::Root);
    // Between two instructions of the prologue, the return address is stored and the frame pointer is not.
    let stack = [made + 8, 1, 2, 3, 4, 5, 6, 7, 0, root];
    let frames = [code(0x104), made + 8, root];
    check(&space, &registers(code(0x104), STACK, STACK + 64, 6), &stack, &frames, WalkEnd::Root);
}

/// A stack that begins with the kernel's signal frame, which contains these registers.
fn signal_stack(saved: &[u64; 33]) -> Vec<u64> {
    let mut words = vec![0; 39];
    words.extend(saved);
    words.extend([0, 0, 0x0210_4650_8001]);
    words.resize(100, 0);
    words
}

#[test]
fn signal_frames_by_their_memory() {
    let mut space = space(arm(&[], &[RECORD_BELOW]));
    // No byte is mapped before it, as in emulators.
    let trampoline = 0x7000_0000;
    space.map_code(Avma(trampoline), 0x1000);
    let (pc, leaf, root) = (code(0x110), code(0x180), code(IN_ROOT));
    let interrupted = registers(leaf, STACK + 0x500, 0, root);
    let mut stack = vec![0, trampoline, 1, 2];
    stack.extend(signal_stack(&interrupted));
    stack.resize(0x500 / 8, 0);
    stack.extend([0, root, 1, 2]);
    check(&space, &registers(pc, STACK, STACK, 5), &stack, &[pc, trampoline, leaf, root], WalkEnd::Root);
}

#[test]
fn instructions_where_nothing_is_described() {
    // stp x29, x30, [sp, -32]!; mov x29, sp; ...; ldp x29, x30, [sp], 32; ret
    let words: [u32; 5] = [0xa9be_7bfd, 0x9100_03fd, 0xd503_201f, 0xa8c2_7bfd, 0xd65f_03c0];
    let instructions: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let space = space(arm(&instructions, &[]));
    let root = code(IN_ROOT);
    let stack = [0, root, 1, 2];
    for (at, sp, x30) in [(0, STACK + 32, root), (4, STACK, 5), (12, STACK, 5), (16, STACK + 32, root)] {
        check(&space, &registers(code(at), sp, 7, x30), &stack, &[code(at), root], WalkEnd::Root);
    }
}

#[test]
fn return_addresses_in_other_registers() {
    // x30 is in x15 (DW_CFA_register).
    let space = space(arm(&[], &[&[0x09, 30, 15, 0x0e, 16]]));
    let mut values = registers(code(0x110), STACK, 0, 5);
    values[15] = code(IN_ROOT);
    check(&space, &values, &[1, 2], &[code(0x110), code(IN_ROOT)], WalkEnd::Root);
}

/// A generator of numbers that is the same in every run (xorshift, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Memory in which every address can be read, and whose contents are a function of the address.
struct Everywhere(u64);

impl StackMemory for Everywhere {
    fn read_u64(&self, address: Avma) -> Option<u64> {
        let mut random = Random((address.0 ^ self.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        Some(match random.next() % 8 {
            0..=2 => code(random.next() % CODE_LEN),
            3..=5 => address.0.wrapping_add(random.next() % 0x1000 / 8 * 8),
            6 => 0x0210_4650_8001,
            _ => random.next(),
        })
    }
}

#[test]
fn every_walk_ends() {
    let mut random = Random(7);
    let mut most = 0;
    for _ in 0..200 {
        let functions: Vec<Vec<u8>> = (0..8)
            .map(|_| match random.next() % 4 {
                0 => RECORD_BELOW.to_vec(),
                1 => vec![0x0c, 29, 16, 0x9d, 2, 0x9e, 1, 0x2d],
                2 => vec![0x0e, (random.next() % 128) as u8, 0x9e, (random.next() % 64) as u8],
                _ => (0..random.next() % 12).map(|_| random.next() as u8).collect(),
            })
            .collect();
        let functions: Vec<_> = functions.iter().map(Vec::as_slice).collect();
        let instructions: Vec<u8> = (0..0x100).map(|_| random.next() as u8).collect();
        let mut space = space(module(arm_file(&instructions, &functions)));
        space.map_code(Avma(BASE + CODE + CODE_LEN), 0x1000);
        for _ in 0..50 {
            let mut values = [0; 33];
            for value in &mut values {
                *value = STACK + random.next() % 0x1000;
            }
            values[32] = code(random.next() % CODE_LEN);
            let (frames, _) = walk(&space, &values, &Everywhere(random.next()));
            assert!(frames.len() <= MAX_FRAMES);
            most = most.max(frames.len());
        }
    }
    // If no walk got anywhere, this would be no test of long ones.
    assert!(most > 5, "at most {most} frames");
}

/// Stack memory with code in which only the given call instructions can be read.
struct CallsBefore<'a>(StackCopy<'a>, &'a [(u64, u32)]);

impl StackMemory for CallsBefore<'_> {
    fn read_u64(&self, address: Avma) -> Option<u64> {
        self.0.read_u64(address)
    }

    fn read_code(&self, address: Avma, out: &mut [u8]) -> usize {
        let instruction = self.1.iter().find(|(at, _)| *at == address.0);
        let bytes = instruction.map(|(_, word)| word.to_le_bytes()).unwrap_or_default();
        let len = if instruction.is_some() { out.len().min(4) } else { 0 };
        out[..len].copy_from_slice(&bytes[..len]);
        len
    }
}

/// A waiting function's return address was in a register that is not reported. Its caller is found by the
/// caller's saved registers.
#[test]
fn a_lost_return_address_is_found_by_its_callers() {
    const BLR: u32 = 0xd63f_0000;
    // The second function's record is at the bottom of its frame, as GCC has it; the third one's at the top,
    // as LLVM has it.
    let at_top: &[u8] = &[0x0e, 48, 0x9d, 2, 0x9e, 1];
    let space = space(arm(&[], &[&[], RECORD_BELOW, at_top]));
    let (pc, root) = (code(0x110), code(IN_ROOT));
    let bl = |to: u64| 0x9400_0000 | ((to.wrapping_sub(root - 4) as i64 / 4) as u32 & 0x03ff_ffff);
    let mut values = [0; 33];
    (values[31], values[32]) = (STACK, pc);
    let registers = Registers::Aarch64Partial { values, known: 0b11 << 31 };
    let check = |call: u32, stack: &[u64], expected: &[u64], end: WalkEnd| {
        let bytes = bytes(stack);
        let calls = [(root - 4, call), (code(0x21c), BLR)];
        let memory = CallsBefore(StackCopy { start: Avma(STACK), bytes: &bytes }, &calls);
        let mut frames = Vec::new();
        let mut add = |frame: FrameAddress| frames.push(frame.address().0);
        let found = Unwinder::new().walk(&space, &registers, &memory, &mut add);
        assert_eq!((frames, found), (expected.to_vec(), end), "{call:#x} {stack:x?}");
    };
    let unknown = WalkEnd::Truncated(Reason::RegisterUnknown);
    let signed = root | 0x2a80 << 48;
    check(bl(code(0x200)), &[0, signed, 1, 2], &[pc, code(0x200), root], WalkEnd::Root);
    check(bl(code(0x300)), &[7, 7, 7, 7, 0, root], &[pc, code(0x300), root], WalkEnd::Root);
    // The remains of another call do not fit.
    check(bl(code(0x200)), &[7, 7, 0, root, 1, 2], &[pc], unknown);
    check(bl(code(0x204)), &[7, 7, 0, root, 1, 2], &[pc], unknown);
    // A function that was called through a pointer has no name. The record at the bottom of its frame is
    // trusted if it leads to another record.
    check(BLR, &[STACK + 16, root, 0, 0], &[pc, root], WalkEnd::Root);
    check(BLR, &[STACK + 16, root, 0, 5], &[pc], unknown);
    check(BLR, &[STACK, root, 0, 0], &[pc], unknown);
    check(0, &[STACK + 16, root, 0, 0], &[pc], unknown);
    check(BLR, &[], &[pc], unknown);
}
