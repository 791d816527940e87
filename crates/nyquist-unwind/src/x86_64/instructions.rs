//! Derives the frame at an address from the instructions around it, for code without unwind information.
//!
//! Opcodes as in Intel's Software Developer's Manual, volume 2.

use super::length::{DecodedInstruction, OpcodeMap, decode, operand_len};
use crate::call_instruction::CallInstruction;
use crate::rule::{CfaKind, Rule, SavedFramePointer};
use std::ops::Range;

/// `mov eax, 15; syscall`, in the two encodings in use: the return from a signal handler's frame.
const SIGRETURN: [&[u8]; 2] =
    [&[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05], &[0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05]];

/// The most instructions that are followed.
const MAX_FOLLOWED: usize = 64;

/// The ModRM byte of `jmp [rip + displacement]`.
const JUMP_BY_POINTER: u8 = 0x25;

/// The registers' numbers in instructions.
pub(super) const RSP: u8 = 4;
pub(super) const RBP: u8 = 5;

/// The rule for the instruction at `offset` of `code`, where a thread was interrupted.
///
/// Follows the instructions that will be executed if no branch is taken. If they come to a return without a
/// call, they show how far above the stack pointer the return address is. This handles leaf functions and
/// epilogues. If they come to `mov rbp, rsp`, the frame pointer is being set up.
///
/// `None` if they come to anything else, such as a call. A function that calls has its frame pointer set up
/// outside of its prologue and epilogue, if it has one at all.
pub(super) fn rule_at(code: &[u8], offset: usize) -> Option<Rule> {
    let mut at = offset;
    let mut stack = StackChanges::default();
    for _ in 0..MAX_FOLLOWED {
        let instruction = decode(code.get(at..)?)?;
        at += instruction.len;
        match effect(&instruction, &mut stack)? {
            InstructionEffect::Next => {}
            InstructionEffect::Jump(distance) => {
                at = at.checked_add_signed(isize::try_from(distance).ok()?)?;
            }
            InstructionEffect::Return => return stack.rule(1),
            InstructionEffect::SetsFramePointer => return stack.rule_at_frame_pointer(),
        }
    }
    None
}

/// How many bytes above the stack pointer a function's frame pointer is while it makes a call. This is
/// derived from its instructions from the first one on, as far as they are given.
///
/// Follows them beyond `mov rbp, rsp` up to the first call or branch. The stack pointer does not change after
/// that. `None` if no frame pointer is set up before, or if the stack pointer is aligned or computed.
pub(super) fn frame_pointer_above(code: &[u8]) -> Option<u64> {
    let mut at = 0;
    let mut stack = StackChanges::default();
    let mut frame_pointer = None;
    for _ in 0..MAX_FOLLOWED {
        let Some(instruction) = code.get(at..).and_then(decode) else { break };
        at += instruction.len;
        if ends_prologue(&instruction) {
            break;
        }
        match effect(&instruction, &mut stack)? {
            InstructionEffect::Next => {}
            InstructionEffect::SetsFramePointer => frame_pointer = Some(stack.words),
            InstructionEffect::Jump(_) | InstructionEffect::Return => return None,
        }
    }
    let words = frame_pointer?.checked_sub(stack.words)?;
    u64::try_from(words).ok()?.checked_mul(8)
}

/// Whether an instruction calls or branches.
fn ends_prologue(instruction: &DecodedInstruction) -> bool {
    match instruction.map {
        OpcodeMap::One => {
            let leads_away = |modrm: u8| matches!(modrm >> 3 & 7, 2..=5);
            (instruction.opcode == 0xff && instruction.modrm.is_some_and(leads_away))
                || matches!(instruction.opcode, 0x70..=0x7f | 0xe0..=0xe3 | 0xe8 | 0xe9 | 0xeb)
        }
        OpcodeMap::Two => matches!(instruction.opcode, 0x05 | 0x80..=0x8f),
        OpcodeMap::Other => false,
    }
}

/// The effect of an instruction on the stack, as far as it matters for prologues and epilogues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StackEffect {
    /// No effect.
    Nothing,
    /// Pushes a word, which can be the frame pointer.
    Pushes { frame_pointer: bool },
    /// Pops a word.
    Pops,
    /// Lowers the stack pointer by bytes, or raises it if they are negative.
    Lowers(i64),
    /// Sets the frame pointer to the stack pointer.
    SetsFramePointer,
    /// `leave`.
    Leaves,
    /// Returns.
    Returns,
    /// Jumps to a distance from its end.
    Jumps(i64),
    /// Anything else, such as a call.
    Other,
}

/// The effect of an instruction on the stack.
pub(super) fn step(instruction: &DecodedInstruction) -> StackEffect {
    if instruction.map == OpcodeMap::One && instruction.opcode == 0xc9 {
        return StackEffect::Leaves;
    }
    let mut stack = StackChanges::default();
    match effect(instruction, &mut stack) {
        None => StackEffect::Other,
        Some(InstructionEffect::Return) => StackEffect::Returns,
        Some(InstructionEffect::Jump(distance)) => StackEffect::Jumps(distance),
        Some(InstructionEffect::SetsFramePointer) => StackEffect::SetsFramePointer,
        Some(InstructionEffect::Next) => match (instruction.map, instruction.opcode) {
            (OpcodeMap::One, 0x50..=0x57) => {
                let frame_pointer = instruction.opcode & 7 == RBP && instruction.rex & 1 == 0;
                StackEffect::Pushes { frame_pointer }
            }
            (OpcodeMap::One, 0x58..=0x5f) => StackEffect::Pops,
            _ if stack.words != 0 => StackEffect::Lowers(-8 * stack.words),
            _ => StackEffect::Nothing,
        },
    }
}

/// Whether an instruction jumps to an address in a register or in memory.
pub(super) fn jumps_by_operand(instruction: &DecodedInstruction) -> bool {
    instruction.map == OpcodeMap::One
        && instruction.opcode == 0xff
        && instruction.modrm.is_some_and(|modrm| modrm >> 3 & 7 == 4)
}

/// The changes of the stack by the followed instructions.
#[derive(Clone, Default)]
pub(super) struct StackChanges {
    /// How far the stack pointer has risen, in words. Negative if it has fallen.
    words: i64,
    /// The word from which the caller's frame pointer has been popped.
    frame_pointer: Option<i64>,
}

/// The effect of an instruction.
pub(super) enum InstructionEffect {
    /// It continues at the next instruction.
    Next,
    /// It jumps to a distance from its end.
    Jump(i64),
    /// It returns to the caller.
    Return,
    /// It sets the frame pointer to the stack pointer.
    SetsFramePointer,
}

impl StackChanges {
    fn pop(&mut self, is_frame_pointer: bool) {
        if is_frame_pointer {
            // If the followed instructions themselves have pushed the value, it still is in the register.
            self.frame_pointer = (self.words >= 0).then_some(self.words);
        }
        self.words += 1;
    }

    fn raise(&mut self, bytes: i64) -> Option<()> {
        self.words = self.words.checked_add((bytes % 8 == 0).then_some(bytes / 8)?)?;
        Some(())
    }

    /// How far the stack pointer has risen, in words. Negative if it has fallen.
    pub(super) fn words(&self) -> i64 {
        self.words
    }

    /// The rule of a frame whose frame pointer is being set up. The stack pointer is at the caller's frame pointer,
    /// which has been pushed before.
    pub(super) fn rule_at_frame_pointer(&mut self) -> Option<Rule> {
        self.frame_pointer = (self.words >= 0).then_some(self.words);
        self.rule(2)
    }

    /// The rule before a jump out of the function, for which the caller's frame pointer has been restored.
    pub(super) fn rule_of_tail_call(&self) -> Option<Rule> {
        self.frame_pointer.and_then(|_| self.rule(1))
    }

    /// The rule of a frame whose return address ends `words` words above where the stack pointer is now.
    pub(super) fn rule(&self, words: i64) -> Option<Rule> {
        let cfa =
            i32::try_from(self.words.checked_add(words)?.checked_mul(8)?).ok().filter(|&cfa| cfa >= 8)?;
        match self.frame_pointer {
            None => Rule::new(CfaKind::StackPointer, cfa, SavedFramePointer::InRegister, 0),
            Some(saved) => {
                let offset = saved * 8 - i64::from(cfa);
                Rule::new(CfaKind::StackPointer, cfa, SavedFramePointer::FromCfa, offset)
            }
        }
    }
}

/// Applies an instruction. `None` if execution cannot be followed after it.
pub(super) fn effect(
    instruction: &DecodedInstruction,
    stack: &mut StackChanges,
) -> Option<InstructionEffect> {
    match (instruction.map, instruction.opcode) {
        (OpcodeMap::One, 0x50..=0x57 | 0x68 | 0x6a) => stack.words -= 1,
        (OpcodeMap::One, 0x58..=0x5f) => {
            let register = instruction.opcode & 7;
            if instruction.rex & 1 == 0 && register == RSP {
                return None;
            }
            stack.pop(instruction.rex & 1 == 0 && register == RBP);
        }
        (OpcodeMap::One, 0xc2 | 0xc3) => return Some(InstructionEffect::Return),
        (OpcodeMap::One, 0xe9 | 0xeb) => return Some(InstructionEffect::Jump(instruction.immediate)),
        // Exchanges with or moves to the stack pointer.
        (OpcodeMap::One, 0x94 | 0xbc) if instruction.rex & 1 == 0 => return None,
        // Interrupts, `enter`, `leave`, calls, `hlt`, pushing and popping of flags and memory.
        (OpcodeMap::One, 0xc8 | 0xc9 | 0xcc | 0xcd | 0xe8 | 0xf1 | 0xf4 | 0x9c | 0x9d | 0x8f)
        | (OpcodeMap::Two, 0x0b | 0xa0 | 0xa1 | 0xa8 | 0xa9) => return None,
        (OpcodeMap::One, opcode) => return with_modrm(instruction, opcode, stack),
        _ => {}
    }
    Some(InstructionEffect::Next)
}

/// Applies an instruction of the one-byte map whose ModRM byte can name the stack pointer.
fn with_modrm(
    instruction: &DecodedInstruction,
    opcode: u8,
    stack: &mut StackChanges,
) -> Option<InstructionEffect> {
    let Some(modrm) = instruction.modrm else { return Some(InstructionEffect::Next) };
    let is_register = modrm >> 6 == 3;
    let (reg, rm) = (modrm >> 3 & 7, modrm & 7);
    let reg_is_sp = reg == RSP && instruction.rex & 4 == 0;
    let rm_is_sp = is_register && rm == RSP && instruction.rex & 1 == 0;
    let rm_is_bp = is_register && rm == RBP && instruction.rex & 1 == 0;
    let reg_is_bp = reg == RBP && instruction.rex & 4 == 0;
    match opcode {
        0x89 if reg_is_sp && rm_is_bp => return Some(InstructionEffect::SetsFramePointer),
        0x8b if reg_is_bp && rm_is_sp => return Some(InstructionEffect::SetsFramePointer),
        0x81 | 0x83 if rm_is_sp => match reg {
            0 => stack.raise(instruction.immediate)?,
            5 => stack.raise(-instruction.immediate)?,
            7 => {}
            _ => return None,
        },
        // `cmp` and `test` change nothing.
        0x38..=0x3b | 0x84 | 0x85 => {}
        // A jump by a pointer relative to the code, as in linkers' stubs, is a tail call.
        0xff if modrm == JUMP_BY_POINTER => return Some(InstructionEffect::Return),
        // Other jumps and calls through a pointer, and pushes.
        0xff if reg >= 2 => return None,
        _ => {
            let (writes_rm, writes_reg) = written(opcode);
            if (writes_rm && rm_is_sp) || (writes_reg && reg_is_sp) {
                return None;
            }
        }
    }
    Some(InstructionEffect::Next)
}

/// Whether an instruction of the one-byte map writes to the register that its ModRM byte names as an operand,
/// and to the one that it names as a register. Operations on bytes, whose opcodes are even, use the same
/// numbers for other registers.
pub(super) fn written(opcode: u8) -> (bool, bool) {
    match opcode {
        0x00..=0x33 => (opcode & 7 == 1, opcode & 7 == 3),
        0x87 => (true, true),
        _ => (
            matches!(opcode, 0x81 | 0x83 | 0x89 | 0xc1 | 0xc7 | 0xd1 | 0xd3),
            matches!(opcode, 0x63 | 0x69 | 0x6b | 0x8b | 0x8d),
        ),
    }
}

/// Whether the code at `offset` is the kernel's or the C library's return from a signal handler.
pub(crate) fn is_signal_return(code: &[u8], offset: usize) -> bool {
    code.get(offset..).is_some_and(|after| SIGRETURN.iter().any(|bytes| after.starts_with(bytes)))
}

/// Whether the first instruction of 64-bit x86 code, after an optional `endbr64`, copies another register to
/// the stack pointer.
pub fn begins_with_stack_switch(code: &[u8]) -> bool {
    const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
    const MOV_STORE: u8 = 0x89;
    const MOV_LOAD: u8 = 0x8b;
    const SP: u8 = 4;
    let first = decode(code.strip_prefix(ENDBR64).unwrap_or(code));
    let Some(DecodedInstruction { map: OpcodeMap::One, opcode, rex, modrm: Some(modrm), .. }) = first else {
        return false;
    };
    let (is_wide, of_registers) = (rex & 8 != 0, modrm >> 6 == 3);
    // The number and extension bit of the written operand: of `r/m`, or of `reg`.
    let written = match opcode {
        MOV_STORE => (modrm & 7) | (rex & 1) << 3,
        MOV_LOAD => (modrm >> 3 & 7) | (rex & 4) << 1,
        _ => return false,
    };
    is_wide && of_registers && written == SP
}

/// Whether the code is only padding between functions: instructions that do nothing, and breakpoints.
pub(crate) fn is_filling(code: &[u8]) -> bool {
    const NO_OPERATION: u8 = 0x1f;
    let mut rest = code;
    while let Some(&first) = rest.first() {
        let len = match first {
            0x90 | 0xcc => 1,
            _ => match decode(rest) {
                Some(
                    DecodedInstruction { len, map: OpcodeMap::Two, opcode: NO_OPERATION, .. }
                    | DecodedInstruction { len, map: OpcodeMap::One, opcode: 0x90, rex: 0, .. },
                ) => len,
                _ => return false,
            },
        };
        rest = rest.get(len..).unwrap_or_default();
    }
    true
}

/// The call that the last instruction of `before` can be.
pub(crate) fn call_at_end(before: &[u8]) -> Option<CallInstruction> {
    let at = |back: usize| before.len().checked_sub(back).and_then(|at| before.get(at)).copied();
    // `call r/m64` is ff /2: two bytes, and up to five of addressing after them.
    let indirect = (2..=7).any(|len| {
        at(len) == Some(0xff)
            && at(len - 1)
                .is_some_and(|modrm| modrm & 0x38 == 0x10 && operand_len(modrm, at(len - 2)) == len - 2)
    });
    if indirect {
        return Some(CallInstruction::Indirect);
    }
    let distance = before.last_chunk::<4>().filter(|_| at(5) == Some(0xe8))?;
    Some(CallInstruction::Direct(i32::from_le_bytes(*distance)))
}

/// The calls among the instructions, up to an unknown instruction.
pub(crate) fn calls(code: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    let instructions = std::iter::from_fn(move || {
        let instruction = decode(code.get(at..)?)?;
        let start = at;
        at += instruction.len;
        Some((start..at, instruction))
    });
    let is_call = |instruction: &DecodedInstruction| match (instruction.map, instruction.opcode) {
        (OpcodeMap::One, 0xe8) => true,
        (OpcodeMap::One, 0xff) => instruction.modrm.is_some_and(|modrm| modrm & 0x38 == 0x10),
        _ => false,
    };
    instructions.filter(move |(_, instruction)| is_call(instruction)).map(|(range, _)| range)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected rule is the distances in words from the stack pointer to the return address, and to the
    /// caller's frame pointer.
    fn check(code: &[u8], offset: usize, expected: Option<(i64, Option<i64>)>) {
        let rule = |(words, frame_pointer)| StackChanges { words, frame_pointer }.rule(1);
        assert_eq!(rule_at(code, offset), expected.and_then(rule), "{code:x?} at {offset}");
    }

    #[test]
    fn prologues_give_the_distance_to_the_caller() {
        // push rbp; mov rbp, rsp; push rbx; call
        let frame = [0x55, 0x48, 0x89, 0xe5, 0x53, 0xe8, 0, 0, 0, 0];
        check(&frame, 0, Some((0, None)));
        check(&frame, 1, Some((1, Some(0))));
        check(&frame, 4, None);
        check(&[0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x8b, 0xec], 0, Some((0, None)));
        // push rbp; movsx edi, byte [rdi]; mov r9, rsi; mov rbp, rsp
        let scheduled = [0x55, 0x0f, 0xbe, 0x3f, 0x49, 0x89, 0xf1, 0x48, 0x89, 0xe5];
        check(&scheduled, 1, Some((1, Some(0))));
        check(&scheduled, 4, Some((1, Some(0))));
    }

    #[test]
    fn a_stack_switch_comes_before_all_else() {
        let begins = |code: &[&[u8]]| begins_with_stack_switch(&code.concat());
        let (endbr, load): (&[u8], &[u8]) = (&[0xf3, 0x0f, 0x1e, 0xfa], &[0x48, 0x8b, 0x3c, 0x24]);
        // mov rsp, rbx in both of its encodings; mov rsp, r12 in both
        for moved in [[0x48, 0x89, 0xdc], [0x48, 0x8b, 0xe3], [0x4c, 0x89, 0xe4], [0x49, 0x8b, 0xe4]] {
            assert!(begins(&[&moved, load]) && begins(&[endbr, &moved, load]), "{moved:x?}");
            assert!(!begins(&[load, &moved]), "{moved:x?}");
        }
        // mov rbp, rsp; mov rbx, rsp; mov r12, rsp; mov [rsp], rbx; mov esp, ebx
        let others: [&[u8]; 5] = [
            &[0x48, 0x89, 0xe5],
            &[0x48, 0x8b, 0xdc],
            &[0x49, 0x89, 0xe4],
            &[0x48, 0x89, 0x1c, 0x24],
            &[0x89, 0xdc],
        ];
        assert!(others.iter().all(|other| !begins(&[other, load])));
        assert!(!begins(&[]));
    }

    #[test]
    fn a_prologue_shows_where_the_frame_pointer_is() {
        let check =
            |code: &[&[u8]], expected| assert_eq!(frame_pointer_above(&code.concat()), expected, "{code:x?}");
        let (push, moved, call): (&[u8], &[u8], &[u8]) = (&[0x55], &[0x48, 0x89, 0xe5], &[0xe8, 0, 0, 0, 0]);
        let endbr: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
        check(&[push, moved, call], Some(0));
        check(&[endbr, push, moved, &[0x53, 0x41, 0x54], call], Some(16));
        // sub rsp, 0x18; then `mov edi, eax`, cut off before the call.
        check(&[push, moved, &[0x53], &[0x48, 0x83, 0xec, 0x18], &[0x89, 0xc7]], Some(32));
        // sub rsp, 0x1000 twice, touching the pages; jz.
        let probe: &[u8] = &[0x48, 0x81, 0xec, 0, 0x10, 0, 0, 0x48, 0x83, 0x0c, 0x24, 0];
        check(&[push, moved, probe, probe, &[0x74, 0x10], &[0x53]], Some(0x2000));
        // call [rax], and no frame pointer.
        check(&[push, moved, &[0xff, 0x10], &[0x53]], Some(0));
        check(&[push, &[0x48, 0x83, 0xec, 0x18], call], None);
        // and rsp, -32; ret; nothing.
        check(&[push, moved, &[0x48, 0x83, 0xe4, 0xe0], call], None);
        check(&[push, moved, &[0xc3]], None);
        check(&[], None);
    }

    #[test]
    fn epilogues_give_the_distance_to_the_caller() {
        check(&[0xc3], 0, Some((0, None)));
        check(&[0xf3, 0xc3], 0, Some((0, None)));
        check(&[0xc2, 8, 0], 0, Some((0, None)));
        check(&[0x5d, 0xc3], 0, Some((1, Some(0))));
        // add rsp, 0x18; pop rbx; pop r12; pop r15; pop rbp; ret
        let pops = [0x48, 0x83, 0xc4, 0x18, 0x5b, 0x41, 0x5c, 0x41, 0x5f, 0x5d, 0xc3];
        check(&pops, 0, Some((7, Some(6))));
        check(&pops, 4, Some((4, Some(3))));
        // pop rbp; mov edx, eax; ret
        check(&[0x5d, 0x89, 0xc2, 0xc3], 1, Some((0, None)));
        // A tail call: pop rbp; jmp over a byte; and the function that it jumps to.
        check(&[0x5d, 0xeb, 0x01, 0xcc, 0x53, 0x5b, 0xc3], 0, Some((1, Some(0))));
        // or ah, 12; mov ah, al; ret: byte registers other than the stack pointer.
        check(&[0x80, 0xcc, 0x0c, 0x88, 0xc4, 0xc3], 0, Some((0, None)));
        // leave; ret: the rule of the frame pointer is enough.
        check(&[0xc9, 0xc3], 0, None);
    }

    #[test]
    fn leaf_functions_have_a_rule_without_a_frame() {
        // xor esi, esi; add eax, esi; sub edx, 1; jne; mov eax, esi; ret
        let leaf = [0x31, 0xf6, 0x01, 0xf0, 0x83, 0xea, 0x01, 0x75, 0xf9, 0x89, 0xf0, 0xc3];
        check(&leaf, 0, Some((0, None)));
        check(&leaf, 4, Some((0, None)));
        // push rbp; mov [rsp - 8], rdi; pop rbp; ret: pushed and popped again.
        check(&[0x55, 0x48, 0x89, 0x7c, 0x24, 0xf8, 0x5d, 0xc3], 0, Some((0, None)));
    }

    #[test]
    fn import_stubs_have_a_rule_but_switches_none() {
        check(&[0xff, 0x25, 0, 0x10, 0, 0], 0, Some((0, None))); // jmp [rip + 0x1000]
        check(&[0xff, 0x24, 0xc5, 0, 0x10, 0, 0], 0, None); // jmp [0x1000 + 8 * rax], as switches do
    }

    #[test]
    fn what_cannot_be_followed_says_nothing() {
        check(&[0x5c, 0xc3], 0, None); // pop rsp
        check(&[0x48, 0x83, 0xe4, 0xf0, 0xc3], 0, None); // and rsp, -16
        check(&[0x48, 0x8d, 0x65, 0xd8, 0xc3], 0, None); // lea rsp, [rbp - 40]
        check(&[0x48, 0x89, 0xec, 0xc3], 0, None); // mov rsp, rbp
        check(&[0x53, 0xc3], 0, None); // more pushed than popped
        check(&[0xff, 0xe0, 0xc3], 0, None); // jmp rax
        check(&[0xe8, 0, 0, 0, 0, 0xc3], 0, None); // call
        check(&[0xeb, 0xfe], 0, None); // jmp to itself
        check(&[0xeb, 0x80], 0, None); // jmp out of the code
        check(&[0x48, 0x81, 0xc4, 0xf8, 0xff, 0xff, 0x7f].repeat(64), 0, None); // add rsp, 2 GiB
        check(&[0x06], 0, None);
        check(&[], 0, None);
        check(&[], 1, None);
    }

    #[test]
    fn knows_what_precedes_a_return_address() {
        let check = |code: &[u8], expected| assert_eq!(call_at_end(code).is_some(), expected, "{code:x?}");
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

    #[test]
    fn filling_does_nothing() {
        let check = |code: &[u8], expected| assert_eq!(is_filling(code), expected, "{code:x?}");
        check(&[], true);
        // xchg ax, ax; data16 cs nop word [rax + rax]; nop dword [rax]; nop; int3
        check(&[0x66, 0x90], true);
        check(&[0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x0f, 0x1f, 0, 0x90, 0xcc], true);
        // nop; ret; and a truncated nop.
        check(&[0x90, 0xc3], false);
        check(&[0x0f, 0x1f, 0x84], false);
        // xchg r8, rax; pause; endbr64
        check(&[0x49, 0x90], false);
        check(&[0xf3, 0x0f, 0x1e, 0xfa], false);
    }

    #[test]
    fn a_call_says_where_to() {
        let check = |before: &[u8], expected| assert_eq!(call_at_end(before), expected, "{before:x?}");
        check(&[0x90, 0xe8, 0x10, 0, 0, 0], Some(CallInstruction::Direct(16)));
        check(&[0xe8, 0xf0, 0xff, 0xff, 0xff], Some(CallInstruction::Direct(-16)));
        check(&[0xff, 0xd0], Some(CallInstruction::Indirect));
        check(&[0xff, 0x15, 1, 2, 3, 4], Some(CallInstruction::Indirect));
        check(&[0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90], None);
        check(&[0x10, 0, 0, 0], None);
        check(&[], None);
    }
}
