//! Compact unwind encodings of 64-bit x86 (Apple's `mach-o/compact_unwind_encoding.h`), and what they leave
//! out.
//!
//! An encoding describes the body of a function. Its prologue and epilogues are read from the instructions.

use super::instructions::{StackEffect, jumps_by_operand, rule_at, step};
use super::length::decode;
use crate::rule::{CfaKind, Rule, SavedFramePointer};

const MODE: u32 = 0x0f00_0000;
const FRAME: u32 = 0x0100_0000;
const IMMEDIATE: u32 = 0x0200_0000;
const INDIRECT: u32 = 0x0300_0000;
/// Call frame information describes the function.
pub(super) const DWARF: u32 = 0x0400_0000;

/// The frame pointer's number among the registers of encodings.
const RBP: u32 = 6;

/// The most instructions of a prologue or an epilogue.
const MAX_EDGE: usize = 24;

/// The bits of a number from `low` on.
fn bits(number: u32, low: u32, count: u32) -> u32 {
    number >> low & ((1 << count) - 1)
}

/// The rule of the function's body. `None` if the encoding is not supported.
fn body(encoding: u32, code: &[u8]) -> Option<Rule> {
    let size = match encoding & MODE {
        FRAME => return Some(Rule::FRAME_RECORD),
        IMMEDIATE => bits(encoding, 16, 8) * 8,
        INDIRECT => {
            // The size is the operand of the instruction that allocates the stack.
            let at = bits(encoding, 16, 8) as usize;
            let operand = u32::from_le_bytes(*code.get(at..)?.first_chunk()?);
            operand.checked_add(bits(encoding, 13, 3) * 8)?
        }
        _ => return None,
    };
    let (operand, count) = (i32::try_from(size).ok().filter(|size| *size >= 8)?, bits(encoding, 10, 3));
    let saved = saved_registers(count, bits(encoding, 0, 10))?;
    let place = saved.iter().take(count as usize).position(|register| *register == RBP);
    rule_of(operand.into(), place.map(|place| 8 * place as i64 - 8 * i64::from(count) - 8))
}

/// The rule of a CFA above the stack pointer, and of a frame pointer that may be saved at an offset from the
/// CFA.
fn rule_of(cfa: i64, frame_pointer: Option<i64>) -> Option<Rule> {
    let cfa = i32::try_from(cfa).ok()?;
    match frame_pointer {
        Some(offset) => Rule::new(CfaKind::StackPointer, cfa, SavedFramePointer::FromCfa, offset),
        None => Rule::new(CfaKind::StackPointer, cfa, SavedFramePointer::InRegister, 0),
    }
}

/// The saved registers, from the lowest address upwards, given the index of their permutation among all of
/// that length.
fn saved_registers(count: u32, mut permutation: u32) -> Option<[u32; 6]> {
    let mut left = [1, 2, 3, 4, 5, RBP];
    let mut saved = [0; 6];
    let mut remaining = 6;
    if count > 6 {
        return None;
    }
    for (place, register) in saved.iter_mut().enumerate().take(count as usize) {
        // The number of permutations of the remaining registers for each choice of this one.
        let rest = (place as u32 + 1..count).fold(1, |product, taken| product * (6 - taken));
        let choice = (permutation / rest) as usize;
        permutation %= rest;
        if choice >= remaining {
            return None;
        }
        *register = left[choice];
        left.copy_within(choice + 1.., choice);
        remaining -= 1;
    }
    Some(saved)
}

/// Calls `emit` with the offset in the function's code at which each rule begins to hold.
pub(super) fn rows(encoding: u32, code: &[u8], emit: &mut impl FnMut(u32, Rule)) {
    let Some(body) = body(encoding, code) else { return emit(0, Rule::UNCOVERED) };
    let begun = prologue(code, body, emit);
    epilogues(code, begun, body, emit);
}

/// Emits the rules of the prologue and of the body after it, and returns where the body begins.
fn prologue(code: &[u8], body: Rule, emit: &mut impl FnMut(u32, Rule)) -> usize {
    let mut rules = Vec::new();
    let (mut at, mut pushed, mut frame_pointer) = (0, 8_i64, None);
    for _ in 0..MAX_EDGE {
        let rule = rule_of(pushed, frame_pointer);
        let Some((rule, instruction)) = rule.zip(code.get(at..).and_then(decode)) else { break };
        let reached = rule == body || (rule.kind() == body.kind() && rule.operand() == body.operand());
        if !reached {
            rules.push((at as u32, rule));
        }
        let step = step(&instruction);
        if reached || step == StackEffect::SetsFramePointer && body == Rule::FRAME_RECORD {
            let end = if reached { at } else { at + instruction.len };
            for (at, rule) in rules {
                emit(at, rule);
            }
            emit(end as u32, body);
            return end;
        }
        at += instruction.len;
        match step {
            StackEffect::Pushes { frame_pointer: is_frame_pointer } => {
                pushed += 8;
                if is_frame_pointer {
                    frame_pointer = Some(-pushed);
                }
            }
            StackEffect::Lowers(bytes) if bytes > 0 => pushed += bytes,
            StackEffect::Nothing => {}
            _ => break,
        }
    }
    // The prologue is of an unknown kind, so only the encoding is used.
    emit(0, body);
    0
}

/// Emits the rules from the first instruction that raises the stack pointer up to the one that leaves the
/// function, and then the body's rule.
fn epilogues(code: &[u8], begin: usize, body: Rule, emit: &mut impl FnMut(u32, Rule)) {
    let mut at = begin;
    // The ends of the first and the last instruction that raise the stack pointer.
    let (mut first, mut last) = (None, 0);
    while let Some(instruction) = code.get(at..).and_then(decode) {
        let next = at + instruction.len;
        let leaves = match step(&instruction) {
            StackEffect::Pops | StackEffect::Leaves => {
                (first, last) = (first.or(Some(next)), next);
                false
            }
            StackEffect::Lowers(bytes) if bytes < 0 => {
                (first, last) = (first.or(Some(next)), next);
                false
            }
            StackEffect::Returns => true,
            // At other places, such a jump is that of a `switch`.
            StackEffect::Other if jumps_by_operand(&instruction) && first.is_some() && last == at => true,
            StackEffect::Jumps(distance) => {
                let to = next as i64 + distance;
                !usize::try_from(to).is_ok_and(|to| to < code.len()) && first.is_some()
            }
            // Instructions between those of an epilogue do not change the stack.
            StackEffect::Nothing if first.is_some_and(|first| first + 8 * MAX_EDGE > at) => {
                at = next;
                continue;
            }
            _ => {
                first = None;
                false
            }
        };
        if leaves {
            epilogue(code, first.unwrap_or(at), at, emit);
            emit(next as u32, body);
            first = None;
        }
        at = next;
    }
}

/// Emits the rules from `first` on up to the instruction at `end`, which leaves the function.
fn epilogue(code: &[u8], first: usize, end: usize, emit: &mut impl FnMut(u32, Rule)) {
    const RET: u8 = 0xc3;
    // A jump to another function has the same effect on the stack as a return.
    let Some(restoring) = code.get(first..end) else { return };
    let followed = [restoring, &[RET]].concat();
    let mut at = 0;
    while at < followed.len() {
        let Some(rule) = rule_at(&followed, at) else { return };
        emit((first + at) as u32, rule);
        let Some(instruction) = followed.get(at..).and_then(decode) else { return };
        at += instruction.len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(cfa: i64, frame_pointer: Option<i64>) -> Rule {
        rule_of(cfa, frame_pointer).unwrap()
    }

    #[track_caller]
    fn check(encoding: u32, code: &[u8], expected: &[(u32, Rule)]) {
        let mut found = Vec::new();
        rows(encoding, code, &mut |at, rule| found.push((at, rule)));
        assert!(found.is_sorted_by_key(|(at, _)| *at), "{found:x?}");
        for (at, rule) in expected {
            let row = found.iter().rev().find(|row| row.0 <= *at).unwrap();
            assert_eq!(row.1, *rule, "at {at}: {found:?}");
        }
    }

    #[test]
    fn a_frame_has_rules_from_push_to_return() {
        // push rbp; mov rbp, rsp; push rbx; push rax; call; add rsp, 8; pop rbx; pop rbp; ret; nop
        let code = [
            0x55, 0x48, 0x89, 0xe5, 0x53, 0x50, 0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xc4, 8, 0x5b, 0x5d, 0xc3, 0x90,
        ];
        let body = Rule::FRAME_RECORD;
        let rows = [
            (0, rule(8, None)),
            (1, rule(16, Some(-16))),
            (4, body),
            (6, body),
            (11, body),
            (15, rule(24, Some(-16))),
            (16, rule(16, Some(-16))),
            (17, rule(8, None)),
            (18, body),
        ];
        check(0x0101_0001, &code, &rows);
        // The same with a jump to another function.
        let jump = [0x55, 0x48, 0x89, 0xe5, 0x5d, 0xe9, 0, 1, 0, 0];
        check(0x0100_0000, &jump, &[(0, rule(8, None)), (4, body), (5, rule(8, None))]);
        // The same with an indirect jump, jmp rax. Without an epilogue before it, such a jump is that of a
        // `switch`.
        let jump = [0x55, 0x48, 0x89, 0xe5, 0xff, 0xe0, 0x5d, 0xff, 0xe0, 0x90];
        check(0x0100_0000, &jump, &[(4, body), (6, body), (7, rule(8, None)), (9, body)]);
    }

    #[test]
    fn functions_without_a_frame() {
        // push r14; push rbx; push rax; call; add rsp, 8; pop rbx; pop r14; ret
        let code = [0x41, 0x56, 0x53, 0x50, 0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xc4, 8, 0x5b, 0x41, 0x5e, 0xc3];
        let rows = [
            (0, rule(8, None)),
            (2, rule(16, None)),
            (3, rule(24, None)),
            (4, rule(32, None)),
            (13, rule(24, None)),
            (14, rule(16, None)),
            (16, rule(8, None)),
        ];
        check(0x0204_0800, &code, &rows);
        // sub rsp, 0x1008: the size is in the instruction.
        let code = [0x48, 0x81, 0xec, 8, 0x10, 0, 0, 0xe8, 0, 0, 0, 0];
        check(0x0303_2000, &code, &[(0, rule(8, None)), (7, rule(0x1010, None))]);
    }

    #[test]
    fn the_place_of_a_saved_frame_pointer() {
        // rbx and rbp are saved, in both orders.
        let registers =
            |count, permutation| saved_registers(count, permutation).map(|r| r[..count as usize].to_vec());
        assert_eq!(registers(2, 4), Some(vec![1, 6]));
        assert_eq!(registers(2, 25), Some(vec![6, 1]));
        assert_eq!(registers(1, 5), Some(vec![6]));
        assert_eq!(registers(6, 719), Some(vec![6, 5, 4, 3, 2, 1]));
        assert_eq!(registers(6, 720), None);
        assert_eq!(registers(7, 0), None);
        assert_eq!(registers(0, 0), Some(vec![]));
        // A stack of 24 bytes with rbx and rbp below the return address.
        assert_eq!(body(0x0203_0804, &[]), Some(rule(24, Some(-16))));
        assert_eq!(body(0x0203_0819, &[]), Some(rule(24, Some(-24))));
    }

    #[test]
    fn what_is_not_known_says_nothing() {
        check(0x0700_0000, &[0xc3], &[(0, Rule::UNCOVERED)]);
        check(0x0303_0000, &[0xc3], &[(0, Rule::UNCOVERED)]);
        check(0x0100_0000, &[], &[(0, Rule::FRAME_RECORD)]);
    }
}
