//! Tests of the rows that are derived from instructions.

use super::*;
use crate::rule::{CfaKind, SavedFramePointer};

fn sp(words: i32, saved: Option<i64>) -> Rule {
    FrameState { above_sp: Some(words.into()), above_fp: None, saved, ..FrameState::ENTRY }.rule()
}

fn fp(words: i64, saved: i64) -> Rule {
    FrameState { above_sp: None, above_fp: Some(words), saved: Some(saved), ..FrameState::ENTRY }.rule()
}

/// The rows of code that begins with a function, and the outside places that it refers to.
fn follow(code: &[u8]) -> (Vec<(u32, Rule)>, OutsideStates) {
    let mut flow = CodeFlow::new(code, true);
    flow.add(0, FrameState::ENTRY);
    let outside = [flow.follow(), flow.follow_tables()].concat();
    (flow.into_rows(), outside.into_iter().filter(|(to, _)| *to > 0).collect())
}

fn check(code: &[&[u8]], expected: &[(u32, Rule)]) {
    let code = code.concat();
    assert_eq!(follow(&code).0, expected, "{code:x?}");
}

const CALL: &[u8] = &[0xe8, 0, 1, 0, 0];
const RET: &[u8] = &[0xc3];
const NOPS: &[u8] = &[0x0f, 0x1f, 0x00];

#[test]
fn what_start_files_leave_is_followed_alone() {
    // As GCC's start files end a library: nop; cmpb $0, [rip]; jne to the ret; push rbp; mov rbp, rsp;
    // call __cxa_finalize; call the function behind; movb $1, [rip]; pop rbp; ret; and there: lea rdi,
    // [rip]; ret.
    let first: &[u8] = &[0x90, 0x80, 0x3d, 0, 0, 0, 0, 0, 0x75, 22, 0x55, 0x48, 0x89, 0xe5, 0xe8, 0, 1, 0, 0];
    let second: &[u8] =
        &[0xe8, 9, 0, 0, 0, 0xc6, 5, 0, 0, 0, 0, 1, 0x5d, 0xc3, 0x48, 0x8d, 0x3d, 0, 0, 0, 0, 0xc3];
    let code = [first, second].concat();
    let cfa = |offset| rule_at(&code, offset).map(Rule::operand);
    assert_eq!([1, 10, 11, 14, 18, 23, 31, 32].map(cfa), [8, 8, 16, 16, 16, 16, 16, 8].map(Some));
    assert_eq!([33, 40].map(cfa), [Some(8); 2]);
    assert_eq!(cfa(41), None);
    assert_eq!(rule_at(&[0xcc, 0xc3], 1), None, "nothing leads there");
}

#[test]
fn frames_are_followed_along_branches() {
    // push rbp; push rbx; sub rsp, 0x18; call; test eax, eax; je; add rsp, 0x18; pop rbx; pop rbp; ret
    let (pushes, lower, test): (&[u8], &[u8], &[u8]) =
        (&[0x55, 0x53], &[0x48, 0x83, 0xec, 0x18], &[0x85, 0xc0, 0x74, 0x0a]);
    let ends: &[u8] = &[0x48, 0x83, 0xc4, 0x18, 0x5b, 0x5d, 0xc3];
    // The target of `je`, after padding: mov eax, 1; jmp back to `add`.
    let other: &[u8] = &[0xb8, 1, 0, 0, 0, 0xeb, 0xef];
    let expected = [
        (0, sp(1, None)),
        (1, sp(2, Some(2))),
        (2, sp(3, Some(2))),
        (6, sp(6, Some(2))),
        (19, sp(3, Some(2))),
        (20, sp(2, Some(2))),
        (21, sp(1, None)),
        (22, Rule::UNCOVERED),
        (25, sp(6, Some(2))),
    ];
    check(&[pushes, lower, CALL, test, ends, NOPS, other], &expected);
}

#[test]
fn frame_pointers_find_computed_stack_pointers() {
    // push rbp; mov rbp, rsp; push rbx; sub rsp, rax; call; lea rsp, [rbp - 8]; pop rbx; pop rbp; ret
    let begin: &[u8] = &[0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x29, 0xc4];
    let end: &[u8] = &[0x48, 0x8d, 0x65, 0xf8, 0x5b, 0x5d, 0xc3];
    let expected = [
        (0, sp(1, None)),
        (1, sp(2, Some(2))),
        (5, sp(3, Some(2))),
        (8, fp(2, 2)),
        (17, sp(3, Some(2))),
        (18, sp(2, Some(2))),
        (19, sp(1, None)),
    ];
    check(&[begin, CALL, end], &expected);
    // The same, but it aligns the stack and ends with `leave`.
    let begin: &[u8] = &[0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xf0];
    let expected = [(0, sp(1, None)), (1, sp(2, Some(2))), (8, fp(2, 2)), (14, sp(1, None))];
    check(&[begin, CALL, &[0xc9, 0xc3]], &expected);
    // Without the frame pointer nothing is known: mov rbp, rax.
    let expected = [(0, sp(1, None)), (1, sp(2, Some(2))), (11, Rule::UNCOVERED)];
    check(&[&[0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xc5], &[0x48, 0x83, 0xe4, 0xf0], CALL], &expected);
}

#[test]
fn arguments_are_pushed_and_taken_away() {
    // push 5; push [rsp + 8]; call; add rsp, 16; lea rsp, [rsp - 8]; pop rbp as an unneeded word; ret
    let (begin, end): (&[u8], &[u8]) = (
        &[0x6a, 5, 0xff, 0x74, 0x24, 8],
        &[0x48, 0x83, 0xc4, 0x10, 0x48, 0x8d, 0x64, 0x24, 0xf8, 0x5d, 0xc3],
    );
    let expected = [
        (0, sp(1, None)),
        (2, sp(2, None)),
        (6, sp(3, None)),
        (15, sp(1, None)),
        (20, sp(2, None)),
        (21, sp(1, None)),
    ];
    check(&[begin, CALL, end], &expected);
    // Byte registers with the stack pointer's number: or ah, 12; mov ah, al.
    check(&[&[0x80, 0xcc, 0x0c, 0x88, 0xc4], RET], &[(0, sp(1, None))]);
}

#[test]
fn a_tables_target_has_the_frame_of_its_jump() {
    // push rbx; jmp rax; nops; xor eax, eax; pop rbx; ret; mov eax, ebx; pop rbx; ret
    let cases: &[u8] = &[0x31, 0xc0, 0x5b, 0xc3, 0x89, 0xd8, 0x5b, 0xc3];
    let expected = [
        (0, sp(1, None)),
        (1, sp(2, None)),
        (3, Rule::UNCOVERED),
        (6, sp(2, None)),
        (9, sp(1, None)),
        (10, sp(2, None)),
        (13, sp(1, None)),
    ];
    check(&[&[0x53, 0xff, 0xe0], NOPS, cases], &expected);
    // Without a jump by a table, unreached code has no rule.
    check(&[RET, NOPS, cases], &[(0, sp(1, None)), (1, Rule::UNCOVERED)]);
}

#[test]
fn code_behind_a_noreturn_call_is_followed() {
    // push rbx; test eax, eax; jne over; pop rbx; push rdi; push rsi; call abort; over: pop rbx; ret
    let code: &[&[u8]] = &[&[0x53, 0x85, 0xc0, 0x75, 0x08, 0x5b, 0x57, 0x56], CALL, &[0x5b, 0xc3]];
    let expected = [
        (0, sp(1, None)),
        (1, sp(2, None)),
        (6, sp(1, None)),
        (7, sp(2, None)),
        (8, sp(3, None)),
        (13, sp(2, None)),
        (14, sp(1, None)),
    ];
    check(code, &expected);
}

#[test]
fn places_elsewhere_are_reported() {
    // push rbx; call; lea rdi, [rip + 0x200]; je far; pop rbx; jmp far
    let code: &[&[u8]] = &[
        &[0x53],
        CALL,
        &[0x48, 0x8d, 0x3d, 0, 2, 0, 0],
        &[0x0f, 0x84, 0, 3, 0, 0],
        &[0x5b],
        &[0xe9, 0, 4, 0, 0],
    ];
    let inside = FrameState { above_sp: Some(2), ..FrameState::ENTRY };
    let expected =
        [(0x106, FrameState::ENTRY), (0x20d, FrameState::ENTRY), (0x313, inside), (0x419, FrameState::ENTRY)];
    assert_eq!(follow(&code.concat()).1, expected);
}

#[test]
fn places_are_called_or_have_their_address_taken() {
    // call; lea rdi, [rip + 0x200]; mov rdi, [rip + 0x200]; jmp; call; no instruction; call
    let code: &[&[u8]] = &[
        CALL,
        &[0x48, 0x8d, 0x3d, 0, 2, 0, 0],
        &[0x48, 0x8b, 0x3d, 0, 2, 0, 0],
        &[0xeb, 0x10],
        CALL,
        &[0x06],
        CALL,
    ];
    let code = code.concat();
    assert_eq!(CodeFlow::places(&code).collect::<Vec<_>>(), [0x105, 0x20c, 0x11a]);
}

#[test]
fn functions_follow_each_other() {
    // push rbx; call the second one; pop rbx; jmp to the third one; ret; push rbx; push rbx: a part of
    // the second one
    let first: &[u8] = &[0x53, 0xe8, 3, 0, 0, 0, 0x5b, 0xeb, 0x08];
    let second: &[u8] = &[0x53, 0x85, 0xc0, 0x74, 0x05, 0x5b, 0xc3, 0xcc];
    let (third, part): (&[u8], &[u8]) = (&[0xc3, 0xcc], &[0x53, 0x5b, 0x5b, 0xc3]);
    let expected = [
        (0, sp(1, None)),
        (1, sp(2, None)),
        (7, sp(1, None)),
        (10, sp(2, None)),
        (15, sp(1, None)),
        (16, Rule::UNCOVERED),
        (17, sp(1, None)),
        (18, Rule::UNCOVERED),
        (19, sp(2, None)),
        (20, sp(3, None)),
        (21, sp(2, None)),
        (22, sp(1, None)),
    ];
    check(&[first, second, third, part], &expected);
}

#[test]
fn bytes_that_are_no_instructions_have_no_rows() {
    assert_eq!(CodeFlow::new(&[], true).into_rows(), []);
    check(&[&[0x06, 0x06]], &[(0, Rule::UNCOVERED)]);
    check(&[&[0x53, 0x06]], &[(0, sp(1, None)), (1, Rule::UNCOVERED)]);
    check(&[&[0xeb, 0xfe]], &[(0, sp(1, None))]);
    check(&[&[0x5b, 0x5b, 0xc3]], &[(0, sp(1, None)), (1, Rule::UNCOVERED)]);
    check(
        &[&[0x48, 0x81, 0xc4, 0xf8, 0xff, 0xff, 0x7f].repeat(64)],
        &[(0, sp(1, None)), (7, Rule::UNCOVERED)],
    );
}

#[test]
fn an_aligned_stack_is_left_by_the_kept_pointer() {
    let saved_sp = |kind, low, high, saved: Option<i64>| {
        let operand = Rule::halves(low, high).unwrap();
        match saved {
            None => Rule::new(kind, operand, SavedFramePointer::InRegister, 0).unwrap(),
            Some(words) => Rule::new(kind, operand, SavedFramePointer::FromCfa, -8 * words).unwrap(),
        }
    };
    // mov rax, rsp; sub rsp, 256; and rsp, -64; mov [rsp + 192], rax; call; mov rsp, [rsp + 192]; ret
    let save: &[u8] = &[0x48, 0x89, 0xe0];
    let (lower, align): (&[u8], &[u8]) = (&[0x48, 0x81, 0xec, 0, 1, 0, 0], &[0x48, 0x83, 0xe4, 0xc0]);
    let (store, load): (&[u8], &[u8]) =
        (&[0x48, 0x89, 0x84, 0x24, 0xc0, 0, 0, 0], &[0x48, 0x8b, 0xa4, 0x24, 0xc0, 0, 0, 0]);
    check(
        &[save, lower, align, store, CALL, load, RET],
        &[
            (0, sp(1, None)),
            (10, sp(33, None)),
            (14, saved_sp(CfaKind::Register, 8, 0, None)),
            (22, saved_sp(CfaKind::AtStackPointer, 192, 8, None)),
            (35, sp(1, None)),
        ],
    );
    // push rbp; mov r11, rsp; and rsp, -32; sub rsp, 64; xor eax, eax; mov rsp, r11; pop rbp; ret
    let (copy, align): (&[u8], &[u8]) = (&[0x55, 0x49, 0x89, 0xe3], &[0x48, 0x83, 0xe4, 0xe0]);
    let (lower, end): (&[u8], &[u8]) = (&[0x48, 0x83, 0xec, 64, 0x31, 0xc0], &[0x4c, 0x89, 0xdc, 0x5d, 0xc3]);
    check(
        &[copy, align, lower, end],
        &[
            (0, sp(1, None)),
            (1, sp(2, Some(2))),
            (8, saved_sp(CfaKind::Register, 16, 11, Some(2))),
            (17, sp(2, Some(2))),
            (18, sp(1, None)),
        ],
    );
}
