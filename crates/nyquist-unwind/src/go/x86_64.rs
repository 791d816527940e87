//! The rows of a Go function for 64-bit x86.

use super::functions::{GoFunctionEntry, RuleRows};
use crate::rule::{CfaKind, Rule, SavedFramePointer};
use crate::x86_64::instructions::{calls, is_signal_return};

/// The largest offset in a function at which its frame pointer is set up, which is after the check of the
/// stack's size.
const MAX_PROLOGUE_LEN: usize = 96;

/// Where a function sets up its frame pointer. From the first offset on, the caller's frame pointer is
/// stored, always in the word below the return address. From the second offset on, the register points to
/// that word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FramePointer {
    stored: u32,
    set: u32,
}

/// The rows of a function.
pub(super) fn rows(entry: &GoFunctionEntry<'_>, code: &[u8]) -> RuleRows {
    if entry.is_top {
        return vec![(0, Rule::END)];
    }
    // This is the function that signal handlers return to.
    if is_signal_return(code, 0) {
        return vec![(0, Rule::SIGNAL_FRAME)];
    }
    let frame_pointer = frame_pointer(code);
    let mut rows = Vec::new();
    let mut depths = entry.depths().peekable();
    while let Some((start, depth)) = depths.next() {
        let end = depths.peek().map_or(u32::MAX, |(next, _)| *next);
        rows.push((start, rule(entry, depth, frame_pointer, start)));
        let places = frame_pointer.map(|found| [found.stored, found.set]).unwrap_or_default();
        for place in places.into_iter().filter(|place| (start + 1..end).contains(place)) {
            rows.push((place, rule(entry, depth, frame_pointer, place)));
        }
    }
    rows.dedup_by_key(|(_, rule)| *rule);
    if entry.writes_stack_pointer && frame_pointer.is_none() {
        end_at_calls(&mut rows, code);
    }
    rows
}

fn rule(
    entry: &GoFunctionEntry<'_>,
    depth: Option<u32>,
    frame_pointer: Option<FramePointer>,
    at: u32,
) -> Rule {
    let Some(depth) = depth.and_then(|depth| i32::try_from(depth).ok()) else { return Rule::UNCOVERED };
    let is_stored = depth > 0 && frame_pointer.is_some_and(|found| found.stored <= at);
    // A function that temporarily switches to another stack switches back by its frame pointer.
    if is_stored && entry.writes_stack_pointer && frame_pointer.is_some_and(|found| found.set <= at) {
        return Rule::FRAME_RECORD;
    }
    let (saved, offset) =
        if is_stored { (SavedFramePointer::FromCfa, -16) } else { (SavedFramePointer::InRegister, 0) };
    Rule::new(CfaKind::StackPointer, depth.saturating_add(8), saved, offset).unwrap_or(Rule::UNCOVERED)
}

/// If a function without a frame switches to another stack (`mcall`, `systemstack`, `morestack`,
/// `asmcgocall`), the function that it calls there is the outermost one.
fn end_at_calls(rows: &mut RuleRows, code: &[u8]) {
    for call in calls(code) {
        let (start, end) = (call.start as u32, call.end as u32);
        let first = rows.partition_point(|(at, _)| *at < start);
        let after = rows.partition_point(|(at, _)| *at <= end);
        let going_on =
            after.checked_sub(1).and_then(|last| rows.get(last)).map_or(Rule::UNCOVERED, |row| row.1);
        rows.splice(first..after, [(start, Rule::END), (end, going_on)]);
    }
}

/// Finds `push rbp; mov rbp, rsp`, or `mov [rsp + n], rbp; lea rbp, [rsp + n]`.
fn frame_pointer(code: &[u8]) -> Option<FramePointer> {
    let places = 0..code.len().min(MAX_PROLOGUE_LEN);
    places.into_iter().find_map(|at| {
        let (stored, set) = match code.get(at..)? {
            [0x55, 0x48, 0x89, 0xe5, ..] => (1, 4),
            [0x48, 0x89, 0x6c, 0x24, _, 0x48, 0x8d, 0x6c, 0x24, ..] => (5, 10),
            [0x48, 0x89, 0xac, 0x24, _, _, _, _, 0x48, 0x8d, 0xac, 0x24, ..] => (8, 16),
            _ => return None,
        };
        Some(FramePointer { stored: (at + stored) as u32, set: (at + set) as u32 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::go::functions::GoFunctions;
    use crate::go::functions::tests::table;

    /// The rows of a function with these flags, depths and instructions: the CFA above the stack pointer, and
    /// whether the frame pointer was stored.
    #[track_caller]
    fn check(flags: u8, depths: &[u8], code: &[u8], expected: &[(u32, Rule)]) {
        let bytes = table(0xffff_fff1, 1, flags, depths);
        let functions = GoFunctions::new(&bytes, 1).unwrap();
        let found = functions.entries().next().map(|entry| rows(&entry, code)).unwrap();
        assert_eq!(found, expected, "{code:x?}");
    }

    fn retained(cfa: i32) -> Rule {
        Rule::new(CfaKind::StackPointer, cfa, SavedFramePointer::InRegister, 0).unwrap()
    }

    fn stored(cfa: i32) -> Rule {
        Rule::new(CfaKind::StackPointer, cfa, SavedFramePointer::FromCfa, -16).unwrap()
    }

    /// sub rsp, 24; mov [rsp + 16], rbp; lea rbp, [rsp + 16]; ...; mov rbp, [rsp + 16]; add rsp, 24; ret
    const FRAME: &[u8] = &[
        0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x6c, 0x24, 0x10, 0x48, 0x8d, 0x6c, 0x24, 0x10, 0x90, 0x48, 0x8b,
        0x6c, 0x24, 0x10, 0x48, 0x83, 0xc4, 0x18, 0xc3,
    ];
    const FRAME_DEPTHS: &[u8] = &[2, 4, 48, 20, 47, 24, 0];

    #[test]
    fn the_frame_pointer_is_stored_with_the_frame() {
        check(
            0,
            FRAME_DEPTHS,
            FRAME,
            &[(0, retained(8)), (4, retained(32)), (9, stored(32)), (24, retained(8))],
        );
        // push rbp; mov rbp, rsp; sub rsp, 16; ...; add rsp, 16; pop rbp; ret
        let code = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0x90, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3];
        let depths = [2, 1, 16, 7, 32, 5, 31, 1, 15, 1, 0];
        let expected =
            [(0, retained(8)), (1, stored(16)), (8, stored(32)), (13, stored(16)), (14, retained(8))];
        check(0, &depths, &code, &expected);
    }

    #[test]
    fn outermost_functions_end_the_stack() {
        check(1, FRAME_DEPTHS, FRAME, &[(0, Rule::END)]);
        // mov rax, 15; syscall
        let code = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
        check(0, &[2, 9, 0], &code, &[(0, Rule::SIGNAL_FRAME)]);
    }

    #[test]
    fn functions_that_go_to_another_stack() {
        let record = Rule::FRAME_RECORD;
        check(
            2,
            FRAME_DEPTHS,
            FRAME,
            &[(0, retained(8)), (4, retained(32)), (9, stored(32)), (14, record), (24, retained(8))],
        );
        // mov rsp, [r14 + 56]; push rax; mov r12, [rdx]; call r12; pop rax; ret
        let code = [0x49, 0x8b, 0x66, 0x38, 0x50, 0x4c, 0x8b, 0x22, 0x41, 0xff, 0xd4, 0x58, 0xc3];
        let expected =
            [(0, retained(8)), (5, retained(16)), (8, Rule::END), (11, retained(16)), (12, retained(8))];
        check(2, &[2, 5, 16, 7, 15, 1, 0], &code, &expected);
    }
}
