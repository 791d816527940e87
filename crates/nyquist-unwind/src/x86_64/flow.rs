//! Derives rows from the instructions of whole functions, as a compiler would have written them, by following
//! all branches from the first instruction on.
//!
//! Opcodes are those of Intel's Software Developer's Manual, volume 2. That a function preserves its caller's
//! frame pointer is in System V's ABI for AMD64, section 3.2.1.

use super::instructions::{RBP, RSP, written};
use super::length::{DecodedInstruction, OpcodeMap, decode};
use crate::rule::{CfaKind, Rule, SavedFramePointer};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a word.
const WORD: i64 = 8;

/// The SIB byte of an operand at the stack pointer and a displacement.
const SIB_RSP: u8 = 0x24;

/// The state of a function's frame before one of its instructions. Distances are in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameState {
    /// The distance from the stack pointer to the CFA, unless the stack pointer was computed.
    above_sp: Option<i64>,
    /// The distance from the frame pointer to the CFA, if the frame pointer is set up.
    above_fp: Option<i64>,
    /// How far below the CFA the caller's frame pointer is saved. If `None`, it is still in its register.
    saved: Option<i64>,
}

impl FrameState {
    /// The state at a function's first instruction.
    pub(crate) const ENTRY: Self = Self { above_sp: Some(1), above_fp: None, saved: None };

    /// Whether only the return address is on the stack.
    fn is_entered(self) -> bool {
        self.above_sp == Self::ENTRY.above_sp
    }

    fn rule(self) -> Rule {
        let cfa = match (self.above_sp, self.above_fp) {
            (Some(words), _) => Some((CfaKind::StackPointer, words)),
            (None, Some(words)) => Some((CfaKind::FramePointer, words)),
            (None, None) => None,
        };
        let rule = cfa.filter(|(_, words)| *words > 0).and_then(|(kind, words)| {
            let operand = i32::try_from(words.checked_mul(WORD)?).ok()?;
            match self.saved {
                None => Rule::new(kind, operand, SavedFramePointer::InRegister, 0),
                Some(words) => {
                    Rule::new(kind, operand, SavedFramePointer::FromCfa, words.checked_mul(-WORD)?)
                }
            }
        });
        rule.unwrap_or(Rule::UNCOVERED)
    }

    /// Lowers the stack pointer by bytes, or raises it if they are negative.
    fn lower(&mut self, bytes: i64) {
        let words = (bytes % WORD == 0).then_some(bytes / WORD);
        self.above_sp = self.above_sp.zip(words).and_then(|(above, words)| above.checked_add(words));
    }

    fn push(&mut self, is_fp: bool) {
        self.lower(WORD);
        if is_fp && self.saved.is_none() && self.above_fp.is_none() {
            self.saved = self.above_sp;
        }
    }

    fn pop(&mut self, is_fp: bool) {
        // A pop at another place only removes an unused word.
        if is_fp && (self.above_sp.is_none() || self.above_sp == self.saved) {
            (self.saved, self.above_fp) = (None, None);
        }
        self.lower(-WORD);
    }

    /// Sets the stack pointer to the frame pointer plus a displacement.
    fn sp_from_fp(&mut self, displacement: i64) {
        self.above_sp = self.above_fp;
        self.lower(-displacement);
    }
}

/// Where execution continues after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Successor {
    /// At the next instruction.
    On,
    /// At this distance from the instruction's end, or at the next instruction.
    Branch(i64),
    /// There.
    Jump(i64),
    /// At the next instruction, if the called function returns.
    Call(Option<i64>),
    /// At an address from a table or a register.
    Table,
    /// Outside of the function.
    Out,
}

/// Offsets in code, with the states there.
type CodeStates = Vec<(usize, FrameState)>;

/// Offsets outside of the code, with the states there.
type OutsideStates = Vec<(i64, FrameState)>;

/// The rule at an offset in code that begins with a function or with padding before one. Follows all code
/// that this leads to.
pub(super) fn rule_at(code: &[u8], offset: usize) -> Option<Rule> {
    let mut flow = CodeFlow::new(code, true);
    flow.add(0, FrameState::ENTRY);
    flow.follow();
    flow.add_rest();
    flow.follow();
    flow.rules.get(offset).copied().flatten()
}

/// Code whose functions are being followed.
pub(crate) struct CodeFlow<'a> {
    code: &'a [u8],
    /// Whether an address that is taken is that of a function. If symbols name all functions, it may be a
    /// label.
    addresses_are_functions: bool,
    /// The rule at each byte of a known instruction.
    rules: Vec<Option<Rule>>,
    /// Whether a function begins at a byte.
    functions: Vec<bool>,
    /// The states at jumps by a table, by offset.
    tables: BTreeMap<usize, FrameState>,
    /// Places that still have to be followed.
    next: CodeStates,
    /// The same for places after calls. They are followed last, because a call may not return, and then other
    /// code follows it.
    after_calls: CodeStates,
    /// Places outside of the code that instructions refer to.
    outside: OutsideStates,
}

impl<'a> CodeFlow<'a> {
    /// Code of which nothing has been followed yet.
    pub(crate) fn new(code: &'a [u8], addresses_are_functions: bool) -> Self {
        Self {
            code,
            addresses_are_functions,
            rules: vec![None; code.len()],
            functions: vec![false; code.len()],
            tables: BTreeMap::new(),
            next: Vec::new(),
            after_calls: Vec::new(),
            outside: Vec::new(),
        }
    }

    /// Adds a place where a function begins, or a separate part of a function.
    pub(crate) fn add_start(&mut self, at: usize) {
        if let Some(begins) = self.functions.get_mut(at) {
            *begins = true;
        }
    }

    /// Adds a place to follow from.
    pub(crate) fn add(&mut self, at: usize, state: FrameState) {
        if state == FrameState::ENTRY {
            self.add_start(at);
        }
        self.next.push((at, state));
    }

    /// Adds all starts of functions that have not been reached yet.
    pub(crate) fn add_rest(&mut self) {
        let rest = self.functions.iter().zip(&self.rules).enumerate();
        self.next.extend(
            rest.filter(|(_, (begins, rule))| **begins && rule.is_none())
                .map(|(at, _)| (at, FrameState::ENTRY)),
        );
    }

    /// Follows all code that the places lead to. Returns the places outside of the code that it refers to.
    /// Takes time proportional to the code that was not followed before.
    pub(crate) fn follow(&mut self) -> OutsideStates {
        loop {
            if let Some((at, state)) = self.next.pop() {
                self.follow_line(at, state);
            } else if let Some((at, state)) = self.after_calls.pop() {
                // If a function begins here, the call before it does not return.
                if self.functions.get(at) == Some(&false) {
                    self.follow_line(at, state);
                }
            } else {
                break;
            }
        }
        std::mem::take(&mut self.outside)
    }

    /// Follows code that is only reached by a table. Its state is that of the jump by the table. A jump from
    /// an empty frame may be a tail call. It is treated as one if its function has other jumps by tables.
    pub(crate) fn follow_tables(&mut self) -> OutsideStates {
        let (mut function, mut behind_padding, mut outside) = (0, 0, Vec::new());
        if self.tables.is_empty() {
            return outside;
        }
        for at in 0..self.code.len() {
            if self.functions.get(at) == Some(&true) {
                function = at;
            }
            if at < behind_padding || self.rules.get(at).is_none_or(Option::is_some) {
                continue;
            }
            let Some(state) = self.table_in(function..at) else { continue };
            match self.code.get(at..).and_then(decode) {
                Some(instruction) if is_padding(&instruction) => behind_padding = at + instruction.len,
                Some(_) => {
                    self.next.push((at, state));
                    outside.extend(self.follow());
                }
                None => {}
            }
        }
        outside
    }

    /// The state at the last jump by a table in a part of a function.
    fn table_in(&self, part: Range<usize>) -> Option<FrameState> {
        /// The most jumps that are checked to find one with a frame.
        const MAX_JUMPS: usize = 8;
        let mut tables = self.tables.range(part).rev().map(|(_, state)| *state).take(MAX_JUMPS);
        let last = tables.next()?;
        if last.is_entered() { tables.find(|state| !state.is_entered()).or(Some(last)) } else { Some(last) }
    }

    fn follow_line(&mut self, mut at: usize, mut state: FrameState) {
        let begun = at;
        while self.rules.get(at).is_some_and(Option::is_none) {
            if at > begun && self.functions.get(at) == Some(&true) {
                // The code before this function has called a function that does not return.
                return;
            }
            let Some(instruction) = self.code.get(at..).and_then(decode) else { return };
            let end = at + instruction.len;
            if let Some(rules) = self.rules.get_mut(at..end) {
                rules.fill(Some(state.rule()));
            }
            let bytes = self.code.get(at..end).unwrap_or_default();
            let next = apply(&instruction, bytes, &mut state);
            let target = |distance: i64| (end as i64).saturating_add(distance);
            if let Some(distance) =
                address_taken(&instruction, bytes).filter(|_| self.addresses_are_functions)
            {
                self.enter(target(distance));
            }
            match next {
                Successor::On => {}
                Successor::Branch(distance) => self.go(target(distance), state),
                Successor::Jump(distance) => return self.go(target(distance), state),
                Successor::Call(distance) => {
                    if let Some(distance) = distance {
                        self.enter(target(distance));
                    }
                    return self.after_calls.push((end, state));
                }
                Successor::Table => {
                    self.tables.insert(at, state);
                    return;
                }
                Successor::Out => return,
            }
            at = end;
        }
    }

    /// Continues at the start of a function.
    fn enter(&mut self, to: i64) {
        if let Some(begins) = usize::try_from(to).ok().and_then(|to| self.functions.get_mut(to)) {
            *begins = true;
        }
        self.go(to, FrameState::ENTRY);
    }

    /// Continues at any place.
    fn go(&mut self, to: i64, state: FrameState) {
        match usize::try_from(to).ok().filter(|to| *to < self.code.len()) {
            Some(to) => self.next.push((to, state)),
            None => self.outside.push((to, state)),
        }
    }

    /// The offsets that instructions call or take the address of. Decodes one instruction after another, up
    /// to an unknown one.
    pub(crate) fn places(code: &[u8]) -> impl Iterator<Item = i64> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let instruction = decode(code.get(at..)?)?;
            let bytes = code.get(at..at + instruction.len)?;
            at += instruction.len;
            let is_call = instruction.map == OpcodeMap::One && instruction.opcode == 0xe8;
            let distance = Some(instruction.immediate).filter(|_| is_call);
            Some(distance.or_else(|| address_taken(&instruction, bytes)).map(|distance| at as i64 + distance))
        })
        .flatten()
    }

    /// The offsets at which rules begin to hold, in ascending order. Code that was not reached has no rule.
    pub(crate) fn into_rows(self) -> Vec<(u32, Rule)> {
        let rules = self.rules.into_iter().map(|rule| rule.unwrap_or(Rule::UNCOVERED));
        let mut rows: Vec<(u32, Rule)> = (0..).zip(rules).collect();
        rows.dedup_by_key(|(_, rule)| *rule);
        rows
    }
}

/// Whether an instruction is padding between functions or at the ends of their parts.
fn is_padding(instruction: &DecodedInstruction) -> bool {
    match instruction.map {
        OpcodeMap::One => matches!(instruction.opcode, 0x90 | 0xcc | 0xf4),
        OpcodeMap::Two => matches!(instruction.opcode, 0x1f | 0x0b),
        OpcodeMap::Other => false,
    }
}

/// The distance from an instruction's end to the address that it takes.
fn address_taken(instruction: &DecodedInstruction, bytes: &[u8]) -> Option<i64> {
    let is_taken = instruction.map == OpcodeMap::One
        && instruction.opcode == 0x8d
        && instruction.modrm.is_some_and(|modrm| modrm & 0xc7 == 0x05);
    bytes.last_chunk().filter(|_| is_taken).map(|distance| i64::from(i32::from_le_bytes(*distance)))
}

/// Applies an instruction, and returns where execution continues.
fn apply(instruction: &DecodedInstruction, bytes: &[u8], state: &mut FrameState) -> Successor {
    let DecodedInstruction { map, opcode, rex, modrm, immediate, .. } = *instruction;
    match map {
        OpcodeMap::One => {}
        OpcodeMap::Two => {
            return match opcode {
                0x80..=0x8f => Successor::Branch(immediate),
                0x0b => Successor::Out,
                _ => Successor::On,
            };
        }
        OpcodeMap::Other => return Successor::On,
    }
    let is_fp = |register: u8| register & 7 == RBP && rex & 1 == 0;
    match opcode {
        0x50..=0x57 => state.push(is_fp(opcode)),
        0x68 | 0x6a | 0x9c => state.push(false),
        0x58..=0x5f if opcode & 7 == RSP && rex & 1 == 0 => state.above_sp = None,
        0x58..=0x5f => state.pop(is_fp(opcode)),
        0x9d | 0x8f => state.pop(false),
        0xc9 => {
            state.sp_from_fp(0);
            state.pop(true);
        }
        // `enter`, and exchanges with or moves to the stack pointer.
        0xc8 => state.above_sp = None,
        0x94 | 0xbc if rex & 1 == 0 => state.above_sp = None,
        0xbd if rex & 1 == 0 => state.above_fp = None,
        // Breakpoints, privileged instructions and returns.
        0xcc | 0xf1 | 0xf4 | 0xc2 | 0xc3 => return Successor::Out,
        0x70..=0x7f | 0xe0..=0xe3 => return Successor::Branch(immediate),
        0xe9 | 0xeb => return Successor::Jump(immediate),
        // A call of the next instruction only pushes its address.
        0xe8 if immediate == 0 => state.push(false),
        0xe8 => return Successor::Call(Some(immediate)),
        _ => return modrm.map_or(Successor::On, |modrm| apply_with_modrm(instruction, modrm, bytes, state)),
    }
    Successor::On
}

/// The same for an instruction of the one-byte map whose ModRM byte can name the stack pointer.
fn apply_with_modrm(
    instruction: &DecodedInstruction,
    modrm: u8,
    bytes: &[u8],
    state: &mut FrameState,
) -> Successor {
    let DecodedInstruction { opcode, rex, immediate, .. } = *instruction;
    let (is_register, reg, rm) = (modrm >> 6 == 3, modrm >> 3 & 7, modrm & 7);
    let (reg_is, rm_is) = (
        |register| reg == register && rex & 4 == 0,
        |register| is_register && rm == register && rex & 1 == 0,
    );
    match opcode {
        0x89 if reg_is(RSP) && rm_is(RBP) => state.above_fp = state.above_sp,
        0x8b if reg_is(RBP) && rm_is(RSP) => state.above_fp = state.above_sp,
        0x89 if reg_is(RBP) && rm_is(RSP) => state.sp_from_fp(0),
        0x8b if reg_is(RSP) && rm_is(RBP) => state.sp_from_fp(0),
        0x8d if reg_is(RSP) => match base_and_displacement(modrm, rex, bytes) {
            Some((RSP, displacement)) => state.lower(-displacement),
            Some((_, displacement)) => state.sp_from_fp(displacement),
            None => state.above_sp = None,
        },
        0x81 | 0x83 if rm_is(RSP) => match reg {
            0 => state.lower(-immediate),
            5 => state.lower(immediate),
            7 => {}
            _ => state.above_sp = None,
        },
        0xff => match reg {
            2 | 3 => return Successor::Call(None),
            4 | 5 => return Successor::Table,
            6 => state.push(false),
            _ => {}
        },
        // `cmp` and `test` change nothing.
        0x38..=0x3b | 0x84 | 0x85 => {}
        _ => {
            let (writes_rm, writes_reg) = written(opcode);
            let writes = |register| (writes_rm && rm_is(register)) || (writes_reg && reg_is(register));
            if writes(RSP) {
                state.above_sp = None;
            }
            if writes(RBP) {
                state.above_fp = None;
            }
        }
    }
    Successor::On
}

/// The register and the displacement of a memory operand, if the register is the stack or the frame pointer,
/// and no other register is added. The operand must be the end of the instruction.
fn base_and_displacement(modrm: u8, rex: u8, bytes: &[u8]) -> Option<(u8, i64)> {
    let len = match modrm >> 6 {
        0 => 0,
        1 => 1,
        2 => 4,
        _ => return None,
    };
    let (before, displacement) = bytes.split_at_checked(bytes.len().checked_sub(len)?)?;
    let displacement = match *displacement {
        [byte] => i64::from(byte as i8),
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        _ => 0,
    };
    match modrm & 7 {
        RSP if rex & 1 == 0 && rex & 2 == 0 && before.last() == Some(&SIB_RSP) => Some((RSP, displacement)),
        RBP if rex & 1 == 0 && len > 0 => Some((RBP, displacement)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sp(words: i32, saved: Option<i64>) -> Rule {
        FrameState { above_sp: Some(words.into()), above_fp: None, saved }.rule()
    }

    fn fp(words: i64, saved: i64) -> Rule {
        FrameState { above_sp: None, above_fp: Some(words), saved: Some(saved) }.rule()
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
        let first: &[u8] =
            &[0x90, 0x80, 0x3d, 0, 0, 0, 0, 0, 0x75, 22, 0x55, 0x48, 0x89, 0xe5, 0xe8, 0, 1, 0, 0];
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
        let expected = [
            (0x106, FrameState::ENTRY),
            (0x20d, FrameState::ENTRY),
            (0x313, inside),
            (0x419, FrameState::ENTRY),
        ];
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
}
