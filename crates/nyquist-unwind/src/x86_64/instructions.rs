//! What the instructions around an address say about its frame, where no unwind information does.
//!
//! Opcodes as in Intel's Software Developer's Manual, volume 2.

use crate::rule::{Kind, Rule, SavedFramePointer};

/// `endbr64`, which may begin a function.
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
/// `push rbp`.
const PUSH_RBP: u8 = 0x55;
/// `mov rbp, rsp` in its two encodings.
const MOV_RBP_RSP: [[u8; 3]; 2] = [[0x48, 0x89, 0xe5], [0x48, 0x8b, 0xec]];
/// `mov eax, 15; syscall`, in the two encodings in use: how a signal handler's frame returns.
const SIGRETURN: [&[u8]; 2] =
    [&[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05], &[0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05]];

/// The most instructions of an epilogue that are read: six registers, the stack pointer, the return.
const MAX_EPILOGUE: usize = 10;

/// The rule for the instruction at `offset` of `code`, where a thread was interrupted; `None` where the
/// instructions say nothing, so that the frame pointer is the best guess.
pub(crate) fn rule_at(code: &[u8], offset: usize) -> Option<Rule> {
    let (before, after) = code.split_at_checked(offset)?;
    prologue(before, after).or_else(|| epilogue(after))
}

/// Whether the code at `offset` is the kernel's or the C library's return from a signal handler.
pub(crate) fn is_signal_return(code: &[u8], offset: usize) -> bool {
    code.get(offset..).is_some_and(|after| SIGRETURN.iter().any(|bytes| after.starts_with(bytes)))
}

/// Whether the instruction that ends at `offset` of `code` can be a call.
pub(crate) fn follows_call(code: &[u8], offset: usize) -> bool {
    let Some(before) = code.get(..offset) else { return false };
    let at = |back: usize| before.len().checked_sub(back).and_then(|at| before.get(at)).copied();
    let relative = at(5) == Some(0xe8);
    // `call r/m64` is ff /2: two bytes, and up to five of addressing after them.
    let indirect = (2..=7).any(|len| {
        at(len) == Some(0xff)
            && at(len - 1)
                .is_some_and(|modrm| modrm & 0x38 == 0x10 && operand_len(modrm, at(len - 2)) == len - 2)
    });
    relative || indirect
}

/// How many bytes follow a ModRM byte, given the next byte.
fn operand_len(modrm: u8, next: Option<u8>) -> usize {
    let has_sib = modrm >> 6 != 3 && modrm & 7 == 4;
    let base_is_none = has_sib && next.is_some_and(|sib| sib & 7 == 5);
    let displacement = match modrm >> 6 {
        0 if modrm & 7 == 5 || base_is_none => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    usize::from(has_sib) + displacement
}

/// At the first instructions of a function that will set up a frame pointer.
fn prologue(before: &[u8], after: &[u8]) -> Option<Rule> {
    let begins_frame = |code: &[u8]| {
        code.strip_prefix(&[PUSH_RBP]).is_some_and(|rest| MOV_RBP_RSP.iter().any(|mov| rest.starts_with(mov)))
    };
    if begins_frame(after) || after.strip_prefix(&ENDBR64).is_some() {
        return from_stack_pointer(0, None);
    }
    let moves = MOV_RBP_RSP.iter().any(|mov| after.starts_with(mov));
    if moves && before.last() == Some(&PUSH_RBP) {
        return from_stack_pointer(1, Some(0));
    }
    None
}

/// In the instructions that take a frame down: pops, an addition to the stack pointer, a return.
fn epilogue(mut after: &[u8]) -> Option<Rule> {
    let (mut words, mut saved) = (0, None);
    for _ in 0..MAX_EPILOGUE {
        after = match *after {
            [0xc3 | 0xc2, ..] | [0xf2 | 0xf3, 0xc3, ..] => return from_stack_pointer(words, saved),
            [0x5d, ref rest @ ..] => {
                saved = Some(words);
                words += 1;
                rest
            }
            // `pop rsp` is no part of an epilogue.
            [0x58..=0x5b | 0x5e | 0x5f, ref rest @ ..] | [0x41, 0x58..=0x5f, ref rest @ ..] => {
                words += 1;
                rest
            }
            [0x48, 0x83, 0xc4, bytes, ref rest @ ..] if bytes < 0x80 && bytes % 8 == 0 => {
                words += i64::from(bytes) / 8;
                rest
            }
            [0x48, 0x81, 0xc4, a, b, c, d, ref rest @ ..] => {
                let bytes = i64::from(i32::from_le_bytes([a, b, c, d]));
                words += (bytes > 0 && bytes % 8 == 0).then_some(bytes / 8)?;
                rest
            }
            _ => return None,
        };
    }
    None
}

/// The rule of a frame whose return address is `words` words above the stack pointer, and whose caller's
/// frame pointer is `saved` words above it.
fn from_stack_pointer(words: i64, saved: Option<i64>) -> Option<Rule> {
    let cfa = i32::try_from((words + 1) * 8).ok()?;
    match saved {
        None => Rule::new(Kind::StackPointer, cfa, SavedFramePointer::InRegister, 0),
        Some(saved) => {
            let offset = saved * 8 - i64::from(cfa);
            Rule::new(Kind::StackPointer, cfa, SavedFramePointer::FromCfa, offset)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_prologues_and_epilogues() {
        let check = |code: &[u8], offset, expected: Option<(i64, Option<i64>)>| {
            let expected = expected.and_then(|(words, saved)| from_stack_pointer(words, saved));
            assert_eq!(rule_at(code, offset), expected, "{code:x?} at {offset}");
        };
        let frame = [0x90, 0x55, 0x48, 0x89, 0xe5, 0x53, 0x50];
        check(&frame, 1, Some((0, None)));
        check(&frame, 2, Some((1, Some(0))));
        check(&frame, 5, None);
        check(&[0x55, 0x48, 0x8b, 0xec], 1, Some((1, Some(0))));
        check(&[0xf3, 0x0f, 0x1e, 0xfa, 0x55], 0, Some((0, None)));
        check(&[0xc3], 0, Some((0, None)));
        check(&[0xf3, 0xc3], 0, Some((0, None)));
        check(&[0x5d, 0xc3], 0, Some((1, Some(0))));
        let pops = [0x48, 0x83, 0xc4, 0x18, 0x5b, 0x41, 0x5c, 0x41, 0x5f, 0x5d, 0xc3];
        check(&pops, 0, Some((7, Some(6))));
        check(&pops, 4, Some((4, Some(3))));
        check(&[0x48, 0x81, 0xc4, 0x00, 0x01, 0, 0, 0xc3], 0, Some((32, None)));
        check(&[0x48, 0x81, 0xc4, 0, 0, 0, 0xf0, 0xc3], 0, None);
        check(&[0x5c, 0xc3], 0, None);
        check(&[0x48, 0x81, 0xc4, 0xf8, 0xff, 0xff, 0x7f].repeat(9), 0, None);
        check(&[0x90, 0xc3], 0, None);
        check(&[], 0, None);
        check(&[], 1, None);
    }

    #[test]
    fn knows_what_precedes_a_return_address() {
        let check = |code: &[u8], expected| assert_eq!(follows_call(code, code.len()), expected, "{code:x?}");
        check(&[0xe8, 0, 0, 0, 0], true);
        check(&[0xff, 0xd0], true);
        check(&[0x41, 0xff, 0xd3], true);
        check(&[0xff, 0x10], true);
        check(&[0xff, 0x14, 0x24], true);
        check(&[0xff, 0x53, 0x18], true);
        check(&[0xff, 0x54, 0x24, 0x18], true);
        check(&[0xff, 0x15, 1, 2, 3, 4], true);
        check(&[0xff, 0x93, 1, 2, 3, 4], true);
        check(&[0xff, 0x94, 0x24, 1, 2, 3, 4], true);
        check(&[0xff, 0x14, 0xc5, 1, 2, 3, 4], true);
        check(&[0xff, 0xe0], false);
        check(&[0xff, 0x53], false);
        check(&[0x90, 0x90, 0x90, 0x90, 0x90], false);
        check(&[], false);
    }

    #[test]
    fn knows_the_return_from_a_signal() {
        assert!(is_signal_return(&[0x90, 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05], 1));
        assert!(!is_signal_return(&[0x90, 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05], 0));
        assert!(!is_signal_return(&[], 1));
    }
}
