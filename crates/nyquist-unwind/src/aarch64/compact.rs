//! Compact unwind encodings of 64-bit ARM (Apple's `mach-o/compact_unwind_encoding.h`), and what they leave
//! out.
//!
//! An encoding describes the body of a function. Its prologue and epilogues are read from the instructions.

use super::instructions::{InstructionEffect, effect, is_return, rule_at, word};
use super::registers::{X29, X30};
use crate::rule::{CfaKind, Rule};

const MODE: u32 = 0x0f00_0000;
const FRAMELESS: u32 = 0x0200_0000;
/// Call frame information describes the function.
pub(super) const DWARF: u32 = 0x0300_0000;
const FRAME: u32 = 0x0400_0000;

/// The most instructions of a prologue or an epilogue.
const MAX_EDGE: usize = 32;

/// The rule of the function's body. `None` if the encoding is not supported.
fn body(encoding: u32) -> Option<Rule> {
    match encoding & MODE {
        FRAMELESS => {
            let size = (encoding >> 12 & 0xfff) * 16;
            Rule::with_saved(CfaKind::StackPointer, size as i32, None, None)
        }
        FRAME => Rule::with_saved(CfaKind::FramePointer, 16, Some(-16), Some(-8)),
        _ => None,
    }
}

/// Calls `emit` with the offset in the function's code at which each rule begins to hold.
pub(super) fn rows(encoding: u32, code: &[u8], emit: &mut impl FnMut(u32, Rule)) {
    let Some(body) = body(encoding) else { return emit(0, Rule::UNCOVERED) };
    let begun = prologue(encoding, code, body, emit);
    let mut after = begun;
    for (number, instruction) in code.as_chunks::<4>().0.iter().enumerate().skip(begun / 4) {
        let at = 4 * number;
        let leaves = match effect(u32::from_le_bytes(*instruction)) {
            InstructionEffect::Leaves => true,
            InstructionEffect::Jump(distance) => {
                usize::try_from(at as i64 + distance).map_or(true, |to| to >= code.len())
            }
            _ => false,
        };
        if leaves && epilogue(code, after, at, emit) {
            after = at + 4;
            emit(after as u32, body);
        }
    }
}

/// Emits the rules of the prologue and of the body after it, and returns where the body begins.
fn prologue(encoding: u32, code: &[u8], body: Rule, emit: &mut impl FnMut(u32, Rule)) -> usize {
    let mut rules = Vec::new();
    let (mut lowered, mut saved) = (0_i64, [None, None]);
    for at in (0..code.len()).step_by(4).take(MAX_EDGE) {
        let cfa = i32::try_from(lowered).ok();
        let place = |saved: Option<i64>| saved.map(|saved: i64| -saved);
        let rule = cfa
            .and_then(|cfa| Rule::with_saved(CfaKind::StackPointer, cfa, place(saved[0]), place(saved[1])));
        let Some((rule, word)) = rule.zip(word(code, at)) else { break };
        if encoding & MODE == FRAMELESS && rule == body {
            break;
        }
        rules.push((at as u32, rule));
        match effect(word) {
            InstructionEffect::Nothing => {}
            InstructionEffect::Moves(bytes) if bytes < 0 => lowered -= bytes,
            InstructionEffect::Access(access) if !access.loads && access.moves <= 0 => {
                for (register, number) in access.registers.into_iter().zip(0..) {
                    let place = lowered - access.offset - 8 * number;
                    match register as usize {
                        X29 => saved[0] = Some(place),
                        X30 => saved[1] = Some(place),
                        _ => {}
                    }
                }
                lowered -= access.moves;
            }
            InstructionEffect::SetsFramePointer(_) if encoding & MODE == FRAME => {
                for (at, rule) in rules {
                    emit(at, rule);
                }
                emit(at as u32 + 4, body);
                return at + 4;
            }
            _ => break,
        }
        if encoding & MODE == FRAMELESS
            && Rule::with_saved(CfaKind::StackPointer, lowered as i32, None, None) == Some(body)
        {
            for (at, rule) in rules {
                emit(at, rule);
            }
            emit(at as u32 + 4, body);
            return at + 4;
        }
    }
    // The prologue is of an unknown kind, so only the encoding is used.
    emit(0, body);
    0
}

/// Emits the rules after the first instruction that restores registers, up to the instruction at `end`, which
/// leaves the function. Returns whether there are any.
fn epilogue(code: &[u8], begin: usize, end: usize, emit: &mut impl FnMut(u32, Rule)) -> bool {
    let mut first = None;
    for at in (begin..end).rev().filter(|at| at % 4 == 0).take(MAX_EDGE) {
        match word(code, at).map(effect) {
            Some(InstructionEffect::Access(access)) if access.loads => {
                let frame =
                    access.registers.iter().any(|register| [X29, X30].contains(&(*register as usize)));
                if frame || access.moves > 0 {
                    first = Some(at + 4);
                }
            }
            Some(InstructionEffect::Moves(bytes)) if bytes > 0 => first = Some(at + 4),
            Some(InstructionEffect::Nothing) => {}
            _ => break,
        }
    }
    // A branch over the prologue can lead to a return that has nothing to restore.
    let returns = word(code, end).is_some_and(is_return);
    let Some(first) = first.or(returns.then_some(end)) else { return false };
    let Some(code) = code.get(..end + 4) else { return false };
    let rows = (first..=end).step_by(4).map_while(|at| Some((at as u32, rule_at(code, at)?)));
    rows.map(|(at, rule)| emit(at, rule)).count() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The rules of a function's instructions: the CFA's offset from the stack pointer, or `None` from the
    /// frame pointer, and the offsets of the frame pointer and the return address from the CFA.
    #[track_caller]
    fn check(encoding: u32, code: &[u32], expected: &[(Option<i32>, Option<i64>, Option<i64>)]) {
        let mut rows = Vec::new();
        rows_of(encoding, code, &mut rows);
        for (number, &(cfa, fp, lr)) in expected.iter().enumerate() {
            let kind = if cfa.is_some() { CfaKind::StackPointer } else { CfaKind::FramePointer };
            let rule = rows.iter().rev().find(|(at, _)| *at as usize <= 4 * number).map(|(_, rule)| *rule);
            assert_eq!(rule, Rule::with_saved(kind, cfa.unwrap_or(16), fp, lr), "at {number}");
        }
    }

    fn rows_of(encoding: u32, code: &[u32], rows: &mut Vec<(u32, Rule)>) {
        super::rows(encoding, &words(code), &mut |at, rule| rows.push((at, rule)));
        assert!(rows.is_sorted_by_key(|(at, _)| *at), "{rows:x?}");
    }

    const BL: u32 = 0x9400_0010;
    const RET: u32 = 0xd65f_03c0;
    const BODY: (Option<i32>, Option<i64>, Option<i64>) = (None, Some(-16), Some(-8));

    #[test]
    fn a_frame_with_saved_registers() {
        // stp x20, x19, [sp, -32]!; stp x29, x30, [sp, 16]; add x29, sp, 16; bl; ldp x29, x30, [sp, 16];
        // ldp x20, x19, [sp], 32; ret
        let code = [0xa9be_4ff4, 0xa901_7bfd, 0x9100_43fd, BL, 0xa941_7bfd, 0xa8c2_4ff4, RET];
        let saved = (Some(32), Some(-16), Some(-8));
        let expected = [
            (Some(0), None, None),
            (Some(32), None, None),
            saved,
            BODY,
            BODY,
            (Some(32), None, None),
            (Some(0), None, None),
        ];
        check(0x0400_0001, &code, &expected);
    }

    #[test]
    fn tail_calls_and_early_returns_have_no_frame() {
        // cbz x0, +24; stp x29, x30, [sp, -16]!; mov x29, sp; bl; ldp x29, x30, [sp], 16; b out; ret
        let code = [0xb400_00c0, 0xa9bf_7bfd, 0x9100_03fd, BL, 0xa8c1_7bfd, 0x1400_1000, RET];
        let start = (Some(0), None, None);
        check(0x0400_0000, &code, &[start, start, (Some(16), Some(-16), Some(-8)), BODY, BODY, start, start]);
    }

    #[test]
    fn functions_without_a_frame() {
        // sub sp, sp, 32; str x0, [sp, 8]; add sp, sp, 32; ret
        let code = [0xd100_83ff, 0xf900_07e0, 0x9100_83ff, RET];
        let body = (Some(32), None, None);
        check(0x0200_2000, &code, &[(Some(0), None, None), body, body, (Some(0), None, None)]);
        check(0x0200_0000, &[0x0b01_0000, RET], &[(Some(0), None, None); 2]);
    }

    #[test]
    fn an_unknown_prologue_leaves_the_encoding() {
        check(0x0400_0000, &[BL, RET], &[BODY]);
        check(0x0400_0000, &[], &[BODY]);
        let mut rows = Vec::new();
        rows_of(0x0700_0000, &[RET], &mut rows);
        assert_eq!(rows, [(0, Rule::UNCOVERED)]);
    }
}
