//! Derives rows from the instructions of whole functions, as a compiler would have written them, by following
//! all branches from the first instruction on.
//!
//! Opcodes are those of Intel's Software Developer's Manual, volume 2. That a function preserves its caller's
//! frame pointer is in System V's ABI for AMD64, section 3.2.1.

use super::frame_state::FrameState;
use super::instructions::{RBP, RSP, written};
use super::length::{DecodedInstruction, OpcodeMap, decode};
use crate::rule::Rule;
use std::collections::BTreeMap;
use std::ops::Range;

/// The SIB byte of an operand at the stack pointer and a displacement.
const SIB_RSP: u8 = 0x24;

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
                    state.saved_sp.call();
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
        0x58..=0x5f if opcode & 7 == RSP && rex & 1 == 0 => state.lose_sp(),
        0x58..=0x5f => state.pop(is_fp(opcode)),
        0x9d | 0x8f => state.pop(false),
        0xc9 => {
            state.sp_from_fp(0);
            state.pop(true);
        }
        // `enter`, and exchanges with or moves to the stack pointer.
        0xc8 => state.lose_sp(),
        0x94 | 0xbc if rex & 1 == 0 => state.lose_sp(),
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
        0x89 | 0x8b => apply_move(instruction, modrm, bytes, state),
        0x8d if reg_is(RSP) => match base_and_displacement(modrm, rex, bytes) {
            Some((RSP, displacement)) => state.lower(-displacement),
            Some((_, displacement)) => state.sp_from_fp(displacement),
            None => state.lose_sp(),
        },
        0x81 | 0x83 if rm_is(RSP) => match reg {
            0 => state.lower(-immediate),
            4 => state.align_sp(),
            5 => state.lower(immediate),
            7 => {}
            _ => state.lose_sp(),
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
                state.lose_sp();
            }
            if writes(RBP) {
                state.above_fp = None;
            }
            if writes_rm && is_register {
                state.saved_sp.overwrite(rm | (rex & 1) << 3);
            }
            if writes_reg {
                state.saved_sp.overwrite(reg | (rex & 4) << 1);
            }
        }
    }
    Successor::On
}

/// Applies a move between two registers, or between a register and memory.
fn apply_move(instruction: &DecodedInstruction, modrm: u8, bytes: &[u8], state: &mut FrameState) {
    let DecodedInstruction { opcode, rex, .. } = *instruction;
    let (reg, rm) = (modrm >> 3 & 7 | (rex & 4) << 1, modrm & 7 | (rex & 1) << 3);
    let is_store = opcode == 0x89;
    if modrm >> 6 != 3 {
        let place = base_and_displacement(modrm, rex, bytes).filter(|(base, _)| *base == RSP);
        let place = place.map(|(_, above_sp)| above_sp);
        match reg {
            _ if is_store => place.into_iter().for_each(|place| state.saved_sp.store(reg, place)),
            RSP => state.set_sp(place.and_then(|place| state.saved_sp.in_word(place))),
            RBP => state.above_fp = None,
            _ => state.saved_sp.overwrite(reg),
        }
        return;
    }
    match if is_store { (reg, rm) } else { (rm, reg) } {
        (RSP, RBP) => state.above_fp = state.above_sp,
        (RBP, RSP) => state.sp_from_fp(0),
        (RSP, to) => state.saved_sp.copy(to, state.above_sp),
        (from, RSP) => state.set_sp(state.saved_sp.in_register(from)),
        (_, RBP) => state.above_fp = None,
        (_, to) => state.saved_sp.overwrite(to),
    }
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
mod tests;
