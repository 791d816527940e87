//! Finds the frame of a function that HotSpot has compiled by its prologue, for loops that the compiler has left no
//! way out of: it compiles no path that was never taken.
//!
//! Such a function first writes far below the stack pointer, to find out whether the stack is exhausted ("stack
//! bang", `MacroAssembler::verified_entry` and `build_frame` in HotSpot's sources). The instruction is so rare
//! elsewhere that it marks the beginning of a function.

use super::length::decode;
use crate::rule::{CfaKind, Rule, SavedFramePointer};

/// `mov [rsp + displacement], eax`, before the displacement.
const STORE: [u8; 3] = [0x89, 0x84, 0x24];

/// The least distance of the write from the stack pointer, in bytes.
const MIN_DISTANCE: i32 = 4096;

/// `push rbp`, and `sub rsp` with an operand of one or four bytes.
const PUSH: u8 = 0x55;
const SUBTRACTIONS: [[u8; 3]; 2] = [[0x48, 0x83, 0xec], [0x48, 0x81, 0xec]];

/// How far before an instruction its function's prologue is looked for, in bytes.
const MAX_DISTANCE: usize = 1 << 15;

/// The rule in the body of the function whose prologue is the last one before `offset`, and within 32 kB.
pub(super) fn rule_by_prologue(code: &[u8], offset: usize) -> Option<Rule> {
    let before = code.get(offset.saturating_sub(MAX_DISTANCE)..offset)?;
    let size = (0..before.len()).rev().find_map(|at| frame_size(before.get(at..)?))?;
    // The caller's frame pointer and the return address are above.
    let cfa = size.checked_add(16)?;
    Rule::new(CfaKind::StackPointer, cfa, SavedFramePointer::FromCfa, -16)
}

/// The size of the frame that a prologue makes, in bytes.
fn frame_size(code: &[u8]) -> Option<i32> {
    let (displacement, rest) = code.strip_prefix(&STORE)?.split_first_chunk::<4>()?;
    let (PUSH, rest) = rest.split_first().map(|(first, rest)| (*first, rest))? else { return None };
    let is_bang = i32::from_le_bytes(*displacement) <= -MIN_DISTANCE;
    let is_frame = is_bang && SUBTRACTIONS.iter().any(|subtraction| rest.starts_with(subtraction));
    let size = i32::try_from(decode(rest).filter(|_| is_frame)?.immediate).ok()?;
    (size > 0 && size % 8 == 0).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(size: i32) -> Option<Rule> {
        Rule::new(CfaKind::StackPointer, size + 16, SavedFramePointer::FromCfa, -16)
    }

    #[test]
    fn the_last_prologue_is_that_of_the_function() {
        let bang = [0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff];
        // push rbp; sub rsp, 0x50, and push rbp; sub rsp, 0x120.
        let small = [&bang[..], &[0x55, 0x48, 0x83, 0xec, 0x50]].concat();
        let large = [&bang[..], &[0x55, 0x48, 0x81, 0xec, 0x20, 1, 0, 0]].concat();
        let code = [&small[..], &[0x90; 20], &large, &[0x90; 20]].concat();
        assert_eq!(rule_by_prologue(&code, 12), frame(0x50));
        assert_eq!(rule_by_prologue(&code, 31), frame(0x50));
        assert_eq!(rule_by_prologue(&code, code.len()), frame(0x120));
        assert_eq!(rule_by_prologue(&code, 11), None, "the frame is not there yet");
        assert_eq!(rule_by_prologue(&code, code.len() + 1), None);
    }

    #[test]
    fn other_stores_are_no_prologues() {
        // A store above the stack pointer, and one without a frame.
        let above = [0x89, 0x84, 0x24, 0x00, 0x40, 0, 0, 0x55, 0x48, 0x83, 0xec, 0x50];
        let alone = [0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xc4, 0x50];
        for code in [above, alone] {
            assert_eq!(rule_by_prologue(&code, code.len()), None);
        }
    }
}
