//! The rows of a Go function for 64-bit ARM. If it has a frame, the return address is at the stack pointer,
//! and the caller's frame pointer is in the word below ("Go internal ABI specification", "arm64
//! architecture", "Stack layout").

use super::functions::{GoFunctionEntry, RuleRows};
use crate::aarch64::instructions::{is_call, is_signal_return, word};
use crate::rule::{CfaKind, Rule};
use std::ops::Range;

/// The largest offset in a function at which its frame pointer is stored, which is after the check of the
/// stack's size.
const MAX_PROLOGUE_LEN: usize = 96;

/// The bytes that the runtime puts between the stack of interrupted code and the frame of the function that
/// it makes this code call. They contain the link register (`pushCall` in `runtime/signal_arm64.go`).
const INJECTED: u32 = 16;

/// `stur x29, [sp, -8]`, after the frame is allocated; or `stp x29, x30, [x20, -8]` before a large one is.
const STORES_FRAME_POINTER: [u32; 2] = [0xf81f_83fd, 0xa93f_fa9d];

/// The rows of a function.
pub(super) fn rows(entry: &GoFunctionEntry<'_>, code: &[u8]) -> RuleRows {
    if entry.is_top {
        return vec![(0, Rule::END)];
    }
    if is_signal_return(code, 0) {
        return vec![(0, Rule::SIGNAL_FRAME)];
    }
    let stored = frame_pointer_stored(code);
    let mut rows = Vec::new();
    let mut depths = entry.depths().peekable();
    while let Some((start, depth)) = depths.next() {
        let end = depths.peek().map_or(u32::MAX, |(next, _)| *next);
        rows.push((start, rule(entry, depth, stored.is_some_and(|stored| stored <= start))));
        if let Some(stored) = stored.filter(|stored| (start + 1..end).contains(stored)) {
            rows.push((stored, rule(entry, depth, true)));
        }
    }
    // The next instruction can be `mov sp, x20`, which allocates a large frame.
    let prologue = stored.map_or(0, |stored| stored + 4);
    if let Some(elsewhere) = elsewhere(code, prologue).filter(|_| entry.writes_stack_pointer) {
        end_within(&mut rows, elsewhere);
    }
    rows.dedup_by_key(|(_, rule)| *rule);
    rows
}

fn rule(entry: &GoFunctionEntry<'_>, depth: Option<u32>, is_stored: bool) -> Rule {
    let Some(depth) = depth else { return Rule::UNCOVERED };
    let below = if entry.is_injected { INJECTED } else { 0 };
    let return_address = (depth > 0).then(|| -i64::from(depth) - i64::from(below));
    let frame_pointer = return_address.filter(|_| is_stored).map(|place| place - 8);
    let cfa = i32::try_from(depth.saturating_add(below)).ok();
    cfa.and_then(|cfa| Rule::with_saved(CfaKind::StackPointer, cfa, frame_pointer, return_address))
        .unwrap_or(Rule::UNCOVERED)
}

/// The offset in the function from which on the caller's frame pointer has been stored.
fn frame_pointer_stored(code: &[u8]) -> Option<u32> {
    let mut places = (0..MAX_PROLOGUE_LEN).step_by(4);
    places.find_map(|at| STORES_FRAME_POINTER.contains(&word(code, at)?).then_some(at as u32 + 4))
}

/// In a function that switches stacks, the part that runs on another stack. It begins after the prologue,
/// when the function first sets the stack pointer from another register. It ends when it does so the last
/// time, or at its last call. `None` if the function neither switches back nor calls, because it then jumps
/// to another function.
fn elsewhere(code: &[u8], prologue: u32) -> Option<Range<u32>> {
    let (words, _) = code.as_chunks();
    let words = words.iter().map(|word| u32::from_le_bytes(*word)).zip((4..).step_by(4));
    let words = words.skip_while(|(_, end)| *end <= prologue);
    let first = words.clone().find(|(word, _)| is_switch(*word))?.1;
    let last = words.filter(|(word, _)| is_switch(*word) || is_call(*word)).last()?.1;
    (first < last).then_some(first..last)
}

/// `mov sp, x`.
fn is_switch(word: u32) -> bool {
    word & 0xffff_fc1f == 0x9100_001f && word >> 5 & 31 != 31
}

/// Makes a function the outermost one of the stack that it has switched to.
fn end_within(rows: &mut RuleRows, range: Range<u32>) {
    let first = rows.partition_point(|(at, _)| *at < range.start);
    let after = rows.partition_point(|(at, _)| *at <= range.end);
    let going_on = after.checked_sub(1).and_then(|last| rows.get(last)).map_or(Rule::UNCOVERED, |row| row.1);
    rows.splice(first..after, [(range.start, Rule::END), (range.end, going_on)]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::go::functions::tests::table;
    use crate::go::functions::{GoFunctionEntry, GoFunctions};

    const STR_PRE: u32 = 0xf81d_0ffe; // str x30, [sp, -48]!
    const STUR_FP: u32 = 0xf81f_83fd; // stur x29, [sp, -8]
    const SUB_FP: u32 = 0xd100_23fd; // sub x29, sp, 8
    const LDP: u32 = 0xa97f_fbfd; // ldp x29, x30, [sp, -8]
    const ADD: u32 = 0x9100_c3ff; // add sp, sp, 48
    const RET: u32 = 0xd65f_03c0;
    const BLR: u32 = 0xd63f_0060;
    const NOP: u32 = 0xd503_201f;
    const MOV_SP: u32 = 0x9100_007f; // mov sp, x3

    /// Depths of 0 for one instruction, 48 for six, and 0.
    const DEPTHS: &[u8] = &[2, 1, 96, 6, 95, 1, 0];

    #[track_caller]
    fn check(flags: u8, depths: &[u8], code: &[u32], expected: &[(u32, Rule)]) {
        check_entry(flags, depths, code, expected, |_| {});
    }

    #[track_caller]
    fn check_entry(
        flags: u8,
        depths: &[u8],
        code: &[u32],
        expected: &[(u32, Rule)],
        change: impl FnOnce(&mut GoFunctionEntry<'_>),
    ) {
        let bytes = table(0xffff_fff1, 4, flags, depths);
        let functions = GoFunctions::new(&bytes, 4).unwrap();
        let mut entry = functions.entries().next().unwrap();
        change(&mut entry);
        let code: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(rows(&entry, &code), expected, "{code:x?}");
    }

    /// The CFA above the stack pointer, and the offsets of the frame pointer and the return address from the
    /// CFA.
    fn saved(cfa: i32, frame_pointer: Option<i64>, return_address: Option<i64>) -> Rule {
        Rule::with_saved(CfaKind::StackPointer, cfa, frame_pointer, return_address).unwrap()
    }

    #[test]
    fn the_return_address_is_at_the_frames_bottom() {
        let code = [STR_PRE, STUR_FP, SUB_FP, NOP, BLR, LDP, ADD, RET];
        let (leaf, whole) = (Rule::LINK_REGISTER, saved(48, Some(-56), Some(-48)));
        check(0, DEPTHS, &code, &[(0, leaf), (4, saved(48, None, Some(-48))), (8, whole), (28, leaf)]);
        // sub x20, sp, 48; stp x29, x30, [x20, -8]; mov sp, x20: both are stored before the stack pointer
        // moves.
        let code = [0xd100_c3f4, 0xa93f_fa9d, 0x9100_029f, SUB_FP, NOP, BLR, LDP, ADD, RET];
        check(0, &[2, 3, 96, 5, 95, 1, 0], &code, &[(0, leaf), (12, whole), (32, leaf)]);
        // A leaf.
        check(0, &[2, 2, 0], &[NOP, RET], &[(0, leaf)]);
    }

    #[test]
    fn outermost_functions_end_the_stack() {
        check(1, DEPTHS, &[STR_PRE, STUR_FP, SUB_FP, NOP, BLR, LDP, ADD, RET], &[(0, Rule::END)]);
        // mov x8, 139; svc 0
        check(0, &[2, 2, 0], &[0xd280_1168, 0xd400_0001], &[(0, Rule::SIGNAL_FRAME)]);
    }

    #[test]
    fn a_function_on_another_stack_ends_the_walk() {
        let (leaf, whole) = (Rule::LINK_REGISTER, saved(48, Some(-56), Some(-48)));
        // To another stack and back.
        let code = [STR_PRE, STUR_FP, SUB_FP, MOV_SP, BLR, MOV_SP, ADD, RET];
        let before = [(0, leaf), (4, saved(48, None, Some(-48))), (8, whole)];
        let after = [(16, Rule::END), (24, whole), (28, leaf)];
        check(2, DEPTHS, &code, &[&before[..], &after[..]].concat());
        // In a function without the flag, stack switches are ignored.
        check(0, DEPTHS, &code, &[&before[..], &[(28, leaf)]].concat());
        // To another stack and back, by the register that allocates large frames, in a function with a large
        // frame.
        let code = [0xd100_c3f4, 0xa93f_fa9d, 0x9100_029f, MOV_SP, NOP, 0x9100_029f, LDP, ADD, RET];
        let expected = [(0, leaf), (12, whole), (16, Rule::END), (24, whole), (32, leaf)];
        check(2, &[2, 3, 96, 5, 95, 1, 0], &code, &expected);
        // On another stack up to the last call.
        check(2, &[2, 4, 0], &[NOP, MOV_SP, BLR, NOP], &[(0, leaf), (8, Rule::END), (12, leaf)]);
        // To another stack, and on without a call.
        check(2, &[2, 3, 0], &[MOV_SP, NOP, 0xd61f_00c0], &[(0, leaf)]);
    }

    #[test]
    fn below_an_injected_call_is_the_link_register() {
        let code = [STR_PRE, STUR_FP, SUB_FP, NOP, BLR, LDP, ADD, RET];
        let leaf = saved(16, None, None);
        let expected = [(0, leaf), (4, saved(64, None, Some(-64))), (8, saved(64, Some(-72), Some(-64)))];
        let expected = [&expected[..], &[(28, leaf)]].concat();
        check_entry(0, DEPTHS, &code, &expected, |entry| entry.is_injected = true);
    }
}
