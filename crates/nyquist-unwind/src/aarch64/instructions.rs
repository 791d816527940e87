//! Derives the frame at an address from the instructions around it, for code without unwind information.
//!
//! Encodings as in the Arm Architecture Reference Manual for A-profile, chapter C4.

use crate::CallInstruction;
use crate::rule::{CfaKind, Rule};

/// `mov x8, 139; svc 0`: the return from the frame that the kernel makes for a signal handler.
const SIGRETURN: [u32; 2] = [0xd280_1168, 0xd400_0001];

/// The most instructions that are followed, in either direction.
const MAX_FOLLOWED: usize = 64;

/// The registers' numbers in instructions.
const FRAME_POINTER: u32 = 29;
const LINK: u32 = 30;
const STACK_POINTER: u32 = 31;

/// The effect of an instruction on a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstructionEffect {
    /// No relevant effect.
    Nothing,
    /// Changes the stack pointer by bytes.
    Moves(i64),
    /// Stores or loads registers at an offset from the stack pointer.
    Access(StackAccess),
    /// Makes the frame pointer point to this many bytes above the stack pointer.
    SetsFramePointer(i64),
    /// Jumps to a distance from itself, and leaves the link register unchanged.
    Jump(i64),
    /// Jumps to the address in a register, and leaves the link register unchanged: a return, or a tail call.
    Leaves,
    /// Calls.
    Calls,
    /// An unknown effect on the frame.
    Unknown,
}

/// A store or a load of one register or two, relative to the stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StackAccess {
    /// Whether it loads.
    pub(super) loads: bool,
    /// The general registers. If the instruction has only one, the second is the zero register.
    pub(super) registers: [u32; 2],
    /// The offset of the first one from the stack pointer before the instruction.
    pub(super) offset: i64,
    /// How the stack pointer changes.
    pub(super) moves: i64,
}

/// The little-endian word at an offset.
pub(crate) fn word(code: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*code.get(offset..)?.first_chunk()?))
}

/// The bits of a word from `low` on, as a signed number of `count` bits.
fn signed(word: u32, low: u32, count: u32) -> i64 {
    i64::from((word << (32 - low - count)) as i32 >> (32 - count))
}

/// The effect of an instruction.
pub(super) fn effect(word: u32) -> InstructionEffect {
    match word >> 25 & 0xf {
        0b1000 | 0b1001 => immediate(word),
        0b1010 | 0b1011 => branch(word),
        0b0101 | 0b1101 => match word & 31 {
            FRAME_POINTER | LINK => InstructionEffect::Unknown,
            // Of these instructions, only additions of an extended register can use the stack pointer.
            STACK_POINTER if word & 0x3fe0_0000 == 0x0b20_0000 => InstructionEffect::Unknown,
            _ => InstructionEffect::Nothing,
        },
        0b0111 | 0b1111 => InstructionEffect::Nothing,
        0b0100 | 0b0110 | 0b1100 | 0b1110 => memory(word),
        _ => InstructionEffect::Unknown,
    }
}

/// Data processing with an immediate operand.
fn immediate(word: u32) -> InstructionEffect {
    let (to, from) = (word & 31, word >> 5 & 31);
    if matches!(word & 0xff80_0000, 0x9100_0000 | 0xd100_0000) {
        let shift = if word & 1 << 22 == 0 { 0 } else { 12 };
        let bytes = i64::from(word >> 10 & 0xfff) << shift;
        let bytes = if word & 1 << 30 == 0 { bytes } else { -bytes };
        match (to, from) {
            (STACK_POINTER, STACK_POINTER) => return InstructionEffect::Moves(bytes),
            (FRAME_POINTER, STACK_POINTER) => return InstructionEffect::SetsFramePointer(bytes),
            _ => {}
        }
    }
    // Additions and logical instructions that set no flags write the stack pointer. In others, the same
    // number means the zero register.
    let is_addition = word & 0x1f80_0000 == 0x1100_0000 && word & 1 << 29 == 0;
    let is_logical = word & 0x1f80_0000 == 0x1200_0000 && word >> 29 & 3 != 3;
    match to {
        FRAME_POINTER | LINK => InstructionEffect::Unknown,
        STACK_POINTER if is_addition || is_logical => InstructionEffect::Unknown,
        _ => InstructionEffect::Nothing,
    }
}

/// Branches, hints and system instructions.
fn branch(word: u32) -> InstructionEffect {
    match word {
        _ if word & 0xfc00_0000 == 0x1400_0000 => InstructionEffect::Jump(signed(word, 0, 26) * 4),
        _ if is_call(word) => InstructionEffect::Calls,
        // Conditional branches: `b.cond`, `cbz`, `tbz`.
        _ if word & 0xff00_0000 == 0x5400_0000 || word & 0x7c00_0000 == 0x3400_0000 => {
            InstructionEffect::Nothing
        }
        // `ret`, `br`, and their variants with authentication.
        _ if matches!(word & 0xfedf_f000, 0xd61f_0000 | 0xd65f_0000) => InstructionEffect::Leaves,
        // Hints, barriers, and system registers that are written.
        _ if word & 0xffff_f01f == 0xd503_201f || word & 0xfff0_0000 == 0xd500_0000 => {
            InstructionEffect::Nothing
        }
        // System registers that are read.
        _ if word & 0xfff0_0000 == 0xd530_0000 && word & 31 < FRAME_POINTER => InstructionEffect::Nothing,
        _ => InstructionEffect::Unknown,
    }
}

/// `bl`, `blr`, and their variants with authentication.
pub(crate) fn is_call(word: u32) -> bool {
    word & 0xfc00_0000 == 0x9400_0000 || word & 0xfeff_f000 == 0xd63f_0000
}

/// The call that is the last instruction.
pub(crate) fn call_at_end(code: &[u8]) -> Option<CallInstruction> {
    let word = u32::from_le_bytes(*code.last_chunk()?);
    // The distance of the call target from the return address.
    let distance = call_target(word, 0).and_then(|target| i32::try_from(target.cast_signed() - 4).ok());
    is_call(word).then(|| distance.map_or(CallInstruction::Indirect, CallInstruction::Direct))
}

/// The target of a call instruction at an address, if it is direct (`bl`).
pub(super) fn call_target(word: u32, address: u64) -> Option<u64> {
    let is_named = word & 0xfc00_0000 == 0x9400_0000;
    is_named.then(|| address.wrapping_add_signed(signed(word, 0, 26) * 4))
}

/// How many bytes above the stack pointer a function's frame pointer is while it makes a call. Uses its
/// instructions from the first one on. `None` if no frame pointer is set up before the first call or branch,
/// or if the stack pointer is computed.
pub(super) fn frame_pointer_above(code: &[u8]) -> Option<u64> {
    let mut above = None;
    for instruction in code.as_chunks::<4>().0.iter().take(MAX_FOLLOWED) {
        let moves = match effect(u32::from_le_bytes(*instruction)) {
            InstructionEffect::Nothing => 0,
            InstructionEffect::Moves(bytes) => bytes,
            InstructionEffect::Access(access) if !access.loads => access.moves,
            InstructionEffect::SetsFramePointer(bytes) => {
                above = Some(bytes);
                continue;
            }
            _ => break,
        };
        above = above.map(|above| above - moves);
    }
    u64::try_from(above?).ok()
}

/// `ret`, and its variants with authentication.
pub(super) fn is_return(word: u32) -> bool {
    word & 0xffff_f000 == 0xd65f_0000
}

/// Loads and stores.
fn memory(word: u32) -> InstructionEffect {
    let base = word >> 5 & 31;
    let is_vector = word & 1 << 26 != 0;
    let loads = word & 1 << 22 != 0;
    let (first, second) = (word & 31, word >> 10 & 31);
    let on_stack = |registers: [u32; 2], offset: i64, moves: i64| {
        let registers = if is_vector { [STACK_POINTER; 2] } else { registers };
        InstructionEffect::Access(StackAccess { loads, registers, offset, moves })
    };
    // Pairs.
    if word & 0x3a00_0000 == 0x2800_0000 {
        let unit = match (is_vector, word >> 30) {
            (_, 0) => 4,
            (_, 1) | (false, _) => 8,
            (true, _) => 16,
        };
        let immediate = signed(word, 15, 7) * unit;
        if base == STACK_POINTER {
            return match word >> 23 & 3 {
                1 => on_stack([first, second], 0, immediate),
                3 => on_stack([first, second], immediate, immediate),
                _ => on_stack([first, second], immediate, 0),
            };
        }
        let overwrites =
            loads && !is_vector && [first, second].iter().any(|r| matches!(*r, FRAME_POINTER | LINK));
        return if overwrites { InstructionEffect::Unknown } else { InstructionEffect::Nothing };
    }
    // Single registers.
    if word & 0x3a00_0000 == 0x3800_0000 && base == STACK_POINTER {
        let scale = if is_vector && word & 1 << 23 != 0 { 4 } else { word >> 30 };
        if word & 1 << 24 != 0 {
            return on_stack([first, STACK_POINTER], i64::from(word >> 10 & 0xfff) << scale, 0);
        }
        if word & 1 << 21 == 0 {
            let immediate = signed(word, 12, 9);
            return match word >> 10 & 3 {
                1 => on_stack([first, STACK_POINTER], 0, immediate),
                3 => on_stack([first, STACK_POINTER], immediate, immediate),
                _ => on_stack([first, STACK_POINTER], immediate, 0),
            };
        }
    }
    // Loads and stores of structures that move the stack pointer, and all other loads into the frame pointer
    // or the link register.
    let moves = word & 0xbe80_0000 == 0x0c80_0000 && base == STACK_POINTER;
    let overwrites = !is_vector && matches!(first, FRAME_POINTER | LINK);
    if moves || overwrites { InstructionEffect::Unknown } else { InstructionEffect::Nothing }
}

/// The registers that were restored by the instructions from an interrupted one on, and where from.
#[derive(Clone, Copy, Debug, Default)]
struct RestoredRegisters {
    /// How far the stack pointer has risen.
    sp: i64,
    /// The place from which the frame pointer was loaded, above the interrupted stack pointer.
    frame_pointer: Option<i64>,
    /// The place from which the link register was loaded.
    link: Option<i64>,
}

impl RestoredRegisters {
    fn load(&mut self, access: StackAccess) {
        for (register, offset) in access.registers.into_iter().zip([access.offset, access.offset + 8]) {
            // A register that the followed instructions themselves have stored still has its value.
            let place = Some(self.sp + offset).filter(|place| *place >= 0);
            match register {
                FRAME_POINTER => self.frame_pointer = place,
                LINK => self.link = place,
                _ => {}
            }
        }
    }

    fn rule(self) -> Option<Rule> {
        let from_cfa = |place: i64| place - self.sp;
        let cfa = i32::try_from(self.sp).ok().filter(|cfa| *cfa >= 0)?;
        Rule::with_saved(
            CfaKind::StackPointer,
            cfa,
            self.frame_pointer.map(from_cfa),
            self.link.map(from_cfa),
        )
    }
}

/// The rule for the instruction at `offset` of `code`, where a thread was interrupted.
///
/// Follows the instructions that will be executed if no branch is taken. If they come to a return without a
/// call, they show where the return address is. This handles leaf functions, stubs and epilogues. If they
/// store the link register or set up the frame pointer, the thread is in a prologue. The instructions before
/// `offset` then show how far it has come.
///
/// `None` if they come to anything else.
pub(super) fn rule_at(code: &[u8], offset: usize) -> Option<Rule> {
    let mut at = offset;
    let mut restored = RestoredRegisters::default();
    for _ in 0..MAX_FOLLOWED {
        match effect(word(code, at)?) {
            InstructionEffect::Nothing => {}
            InstructionEffect::Moves(bytes) => restored.sp += bytes,
            InstructionEffect::Access(access) if access.loads => {
                restored.load(access);
                restored.sp += access.moves;
            }
            InstructionEffect::Access(access) if access.registers.contains(&LINK) => {
                return Rule::with_saved(CfaKind::StackPointer, lowered_before(code, offset)?, None, None);
            }
            InstructionEffect::Access(access) => restored.sp += access.moves,
            InstructionEffect::SetsFramePointer(above) => {
                let (cfa, record) = (lowered_before(code, offset)?, restored.sp + above);
                let from_cfa = record - i64::from(cfa);
                return Rule::with_saved(CfaKind::StackPointer, cfa, Some(from_cfa), Some(from_cfa + 8));
            }
            // A jump out of this code is a tail call.
            InstructionEffect::Jump(distance) => match at.checked_add_signed(isize::try_from(distance).ok()?)
            {
                Some(to) if to < code.len() => {
                    at = to;
                    continue;
                }
                _ => return restored.rule(),
            },
            InstructionEffect::Leaves => return restored.rule(),
            InstructionEffect::Calls | InstructionEffect::Unknown => return None,
        }
        at += 4;
    }
    None
}

/// How far the stack pointer has been lowered since the function's first instruction, according to the
/// instructions before `offset`.
fn lowered_before(code: &[u8], offset: usize) -> Option<i32> {
    let mut lowered = 0;
    let mut at = offset;
    for _ in 0..MAX_FOLLOWED {
        let Some(before) = at.checked_sub(4) else { break };
        match effect(word(code, before)?) {
            InstructionEffect::Nothing | InstructionEffect::SetsFramePointer(_) => {}
            InstructionEffect::Moves(bytes) if bytes < 0 => lowered -= bytes,
            InstructionEffect::Access(access) if !access.loads && access.moves <= 0 => {
                lowered -= access.moves;
            }
            // The end of another function, or padding.
            _ => break,
        }
        at = before;
    }
    i32::try_from(lowered).ok()
}

/// Whether the code at `offset` is the kernel's return from a signal handler.
pub(crate) fn is_signal_return(code: &[u8], offset: usize) -> bool {
    SIGRETURN.iter().zip(0..).all(|(expected, number)| word(code, offset + 4 * number) == Some(*expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The expected rule is the CFA above the stack pointer, and the offsets of the frame pointer and the
    /// return address from the CFA.
    #[track_caller]
    fn check(words: &[u32], at: usize, expected: Option<(i32, Option<i64>, Option<i64>)>) {
        let rule = |(cfa, fp, lr)| Rule::with_saved(CfaKind::StackPointer, cfa, fp, lr).unwrap();
        assert_eq!(rule_at(&code(words), 4 * at), expected.map(rule), "{words:x?} at {at}");
    }

    const STP_PRE: u32 = 0xa9be_7bfd; // stp x29, x30, [sp, -32]!
    const MOV_FP: u32 = 0x9100_03fd; // mov x29, sp
    const BL: u32 = 0x9400_0010;
    const LDP_POST: u32 = 0xa8c2_7bfd; // ldp x29, x30, [sp], 32
    const RET: u32 = 0xd65f_03c0;
    const PACIASP: u32 = 0xd503_233f;
    const AUTIASP: u32 = 0xd503_23bf;

    #[test]
    fn calls_tell_what_they_call() {
        let check = |word: u32, expected| assert_eq!(call_at_end(&word.to_le_bytes()), expected, "{word:#x}");
        // bl 16 bytes ahead, and to itself; blr x0; b; ret.
        check(0x9400_0004, Some(CallInstruction::Direct(12)));
        check(0x9400_0000, Some(CallInstruction::Direct(-4)));
        check(0x97ff_ffff, Some(CallInstruction::Direct(-8)));
        check(0xd63f_0000, Some(CallInstruction::Indirect));
        check(0x1400_0004, None);
        check(0xd65f_03c0, None);
        assert_eq!(call_at_end(&[0, 0, 0]), None);
        // stp x29, x30, [sp, -32]!; mov x29, sp; bl. sub sp, sp, 48; stp x29, x30, [sp, 32]; add x29, sp, 32;
        // bl.
        let above = |words: &[u32]| {
            let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            frame_pointer_above(&code)
        };
        assert_eq!(above(&[0xa9be_7bfd, 0x9100_03fd, 0x9400_0004]), Some(0));
        assert_eq!(above(&[0xd100_c3ff, 0xa902_7bfd, 0x9100_83fd, 0x9400_0004]), Some(32));
        // sub sp, sp, 16 behind that; nothing.
        assert_eq!(above(&[0xa9be_7bfd, 0x9100_03fd, 0xd100_43ff]), Some(16));
        assert_eq!(above(&[0x9400_0004, 0x9100_03fd]), None);
    }

    #[test]
    fn a_frame_record_at_the_bottom() {
        let function = [RET, PACIASP, STP_PRE, MOV_FP, 0xf900_0bf3, BL, 0xf940_0bf3, LDP_POST, AUTIASP, RET];
        check(&function, 1, Some((0, None, None)));
        check(&function, 2, Some((0, None, None)));
        check(&function, 3, Some((32, Some(-32), Some(-24))));
        // str x19, [sp, 16] and then the call: the frame is set up.
        check(&function, 4, None);
        check(&function, 5, None);
        check(&function, 6, Some((32, Some(-32), Some(-24))));
        check(&function, 7, Some((32, Some(-32), Some(-24))));
        check(&function, 8, Some((0, None, None)));
        check(&function, 9, Some((0, None, None)));
    }

    #[test]
    fn a_frame_record_at_the_top() {
        // sub sp, sp, 64; stp x20, x19, [sp, 32]; stp x29, x30, [sp, 48]; add x29, sp, 48; bl;
        // ldp x29, x30, [sp, 48]; ldp x20, x19, [sp, 32]; add sp, sp, 64; ret
        let function = [
            0xd101_03ff,
            0xa902_4ff4,
            0xa903_7bfd,
            0x9100_c3fd,
            BL,
            0xa943_7bfd,
            0xa942_4ff4,
            0x9101_03ff,
            RET,
        ];
        check(&function, 0, Some((0, None, None)));
        check(&function, 1, Some((64, None, None)));
        check(&function, 2, Some((64, None, None)));
        check(&function, 3, Some((64, Some(-16), Some(-8))));
        check(&function, 4, None);
        check(&function, 5, Some((64, Some(-16), Some(-8))));
        check(&function, 6, Some((64, None, None)));
        check(&function, 7, Some((64, None, None)));
        check(&function, 8, Some((0, None, None)));
    }

    #[test]
    fn leaf_functions_and_stubs() {
        // add w0, w0, w1; cbz w0, +8; ret
        check(&[0x0b01_0000, 0x3400_0040, RET], 0, Some((0, None, None)));
        // adrp x16; ldr x17, [x16, 8]; add x16, x16, 8; br x17
        check(&[0x9000_0110, 0xf940_0611, 0x9100_2210, 0xd61f_0220], 1, Some((0, None, None)));
        // b out of the code, and braaz x16.
        check(&[0x1400_1000], 0, Some((0, None, None)));
        check(&[0xd61f_0a1f], 0, Some((0, None, None)));
        // sub sp, sp, 16; str x0, [sp, 8]; add sp, sp, 16; ret
        let function = [0xd100_43ff, 0xf900_07e0, 0x9100_43ff, RET];
        check(&function, 0, Some((0, None, None)));
        check(&function, 1, Some((16, None, None)));
        check(&function, 3, Some((0, None, None)));
        // str x30, [sp, -16]!; bl; ldr x30, [sp], 16; ret
        let function = [0xf81f_0ffe, BL, 0xf841_07fe, RET];
        check(&function, 0, Some((0, None, None)));
        check(&function, 2, Some((16, None, Some(-16))));
        check(&function, 3, Some((0, None, None)));
    }

    #[test]
    fn what_cannot_be_followed_says_nothing() {
        check(&[0x9100_03bf, RET], 0, None); // mov sp, x29
        check(&[0x8b20_63ff, RET], 0, None); // add sp, sp, x0
        check(&[0x927c_ec1f, RET], 0, None); // and sp, x0, -16
        check(&[0xaa13_03fe, RET], 0, None); // mov x30, x19
        check(&[0xf940_001e, RET], 0, None); // ldr x30, [x0]
        check(&[0xa940_7bfd & !(31 << 5), RET], 0, None); // ldp x29, x30, [x0]
        check(&[0xd400_0001, RET], 0, None); // svc 0
        check(&[0, RET], 0, None); // udf
        check(&[0x1400_0000], 0, None); // b to itself
        check(&[], 0, None);
        assert_eq!(rule_at(&code(&[RET]), 2), None);
        assert_eq!(rule_at(&code(&[RET]), 5), None);
    }

    #[test]
    fn knows_what_precedes_a_return_address() {
        let is_call = |code: &[u8]| call_at_end(code).is_some();
        let check = |word: u32, expected| assert_eq!(is_call(&code(&[word])), expected, "{word:#x}");
        check(BL, true);
        check(0xd63f_0100, true); // blr x8
        check(0xd63f_091f, true); // blraaz x8
        check(0xd73f_0911, true); // blraa x8, x17
        check(0xd61f_0220, false); // br x17
        check(0x1400_0010, false); // b
        check(RET, false);
        assert!(!is_call(&code(&[BL])[..3]));
    }

    #[test]
    fn knows_the_return_from_a_signal() {
        let trampoline = code(&[0xd503_201f, 0xd280_1168, 0xd400_0001]);
        assert!(is_signal_return(&trampoline, 4));
        assert!(!is_signal_return(&trampoline, 0));
        assert!(!is_signal_return(&trampoline, 8));
    }
}
