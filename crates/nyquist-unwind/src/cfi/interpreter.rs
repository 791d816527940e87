//! Runs the instructions of call frame information for the three registers that stepping needs: the CFA, the
//! frame pointer and the return address. Everything else is skipped.

use super::by_offset::ByOffset;
use super::entry::{Cie, Fde};
use super::reader::SectionReader;
use super::row::{CfaRule, CfiRow, RegisterRule};
use super::section::FrameSection;
use crate::architecture::Architecture;
use crate::rule::Rule;
use std::marker::PhantomData;

/// The most states that `DW_CFA_remember_state` may push. Compilers nest at most two.
const MAX_REMEMBERED: usize = 64;

/// `DW_CFA_def_cfa_offset`.
const DEFINE_CFA_OFFSET: u8 = 0x0e;

impl CfiRow<'_> {
    /// The state before any instruction.
    fn initial<A: Architecture>() -> Self {
        let mut state = Self {
            rule: Rule::END,
            cfa: CfaRule { register: 0, offset: 0, expression: None },
            frame_pointer: RegisterRule::SameValue,
            return_address: if A::KEEPS_RETURN_ADDRESS {
                RegisterRule::SameValue
            } else {
                RegisterRule::Undefined
            },
            stack_pointer_is_saved: false,
        };
        state.refresh::<A>(false);
        state
    }

    /// Updates the rule from the other fields.
    fn refresh<A: Architecture>(&mut self, is_signal: bool) {
        self.rule = A::rule(self, is_signal);
    }

    /// Changes the offset of the CFA from its register, the most frequent change by far.
    #[inline]
    fn set_cfa_offset<A: Architecture>(&mut self, offset: i64, is_signal: bool) {
        self.cfa.offset = offset;
        match i32::try_from(offset) {
            Ok(operand) if self.cfa.expression.is_none() && self.rule.has_register_cfa() => {
                self.rule = self.rule.with_operand(operand);
            }
            _ => self.refresh::<A>(is_signal),
        }
    }
}

/// Receives the rows that instructions describe.
pub(crate) trait RowReceiver {
    /// Receives a row: the address at which it begins, and its rule.
    fn row(&mut self, address: u64, rule: Rule);

    /// As [`RowReceiver::row`], for the usual case, in which no function has to be called. Returns whether the row
    /// was handled.
    fn try_row(&mut self, address: u64, rule: Rule) -> bool;
}

/// Ignores rows, because a CIE's initial instructions describe none.
struct NoRows;

impl RowReceiver for NoRows {
    fn row(&mut self, _: u64, _: Rule) {}

    fn try_row(&mut self, _: u64, _: Rule) -> bool {
        true
    }
}

/// Runs instructions of one section.
#[derive(Debug)]
pub(crate) struct Interpreter<'a, A> {
    section: &'a FrameSection,
    architecture: PhantomData<A>,
    /// The states after the initial instructions of CIEs, by the offsets of the CIEs.
    initial: ByOffset<Option<CfiRow<'a>>>,
    remembered: Vec<CfiRow<'a>>,
}

/// A run over the instructions of one entry.
struct EntryExecution<'a, 's, A, R> {
    architecture: PhantomData<A>,
    cie: &'s Cie<'a>,
    section: &'a FrameSection,
    initial: &'s CfiRow<'a>,
    state: CfiRow<'a>,
    remembered: &'s mut Vec<CfiRow<'a>>,
    function: u64,
    location: u64,
    rows: &'s mut R,
}

impl<'a, A: Architecture> Interpreter<'a, A> {
    pub(crate) fn new(section: &'a FrameSection) -> Self {
        Self { section, architecture: PhantomData, initial: ByOffset::new(None), remembered: Vec::new() }
    }

    /// Passes all rows to `rows`, by address. Rows may repeat the rule before them. If the instructions are
    /// damaged, the rows before the damage have been passed, and the error is the address up to which they
    /// hold.
    pub(crate) fn rows(
        &mut self,
        fde: &Fde<'a>,
        cie: &Cie<'a>,
        rows: &mut impl RowReceiver,
    ) -> Result<(), u64> {
        if cie.return_register != A::RETURN_ADDRESS as u64 {
            rows.row(fde.start, Rule::SLOW);
            return Ok(());
        }
        let Self { section, architecture, initial, remembered } = self;
        let initial = initial.get_or_make(fde.cie_offset, || initial_state::<A>(section, cie, remembered));
        let initial = initial.as_ref().ok_or(fde.start)?;
        remembered.clear();
        let mut run = EntryExecution {
            architecture: *architecture,
            cie,
            section,
            initial,
            state: *initial,
            remembered,
            function: fde.start,
            location: fde.start,
            rows: &mut *rows,
        };
        let done = run.all(fde.instructions);
        let (location, rule) = (run.location, run.state.rule);
        done.ok_or(location)?;
        if location < fde.end {
            rows.row(location, rule);
        }
        Ok(())
    }
}

/// The state after the initial instructions of a CIE.
fn initial_state<'a, A: Architecture>(
    section: &'a FrameSection,
    cie: &Cie<'a>,
    remembered: &mut Vec<CfiRow<'a>>,
) -> Option<CfiRow<'a>> {
    remembered.clear();
    let mut run = EntryExecution {
        architecture: PhantomData::<A>,
        cie,
        section,
        initial: &CfiRow::initial::<A>(),
        state: CfiRow::initial::<A>(),
        remembered,
        function: 0,
        location: 0,
        rows: &mut NoRows,
    };
    run.all(cie.instructions)?;
    Some(run.state)
}

impl<'a, A: Architecture, R: RowReceiver> EntryExecution<'a, '_, A, R> {
    fn all(&mut self, mut reader: SectionReader<'a>) -> Option<()> {
        reader.go_on_at(self.pairs(reader.rest()));
        while let Some(op) = reader.u8() {
            let low = u64::from(op & 0x3f);
            match op >> 6 {
                1 => self.advance_by(low)?,
                2 => {
                    let offset = reader.uleb()?;
                    self.set_offset(low, offset as i64);
                    reader.go_on_at(without_other_offsets::<A>(reader.rest()));
                    continue;
                }
                3 => {
                    self.restore(low);
                    continue;
                }
                _ => match op {
                    0x00 => continue,
                    0x02 => {
                        let delta = reader.u8()?;
                        self.advance_by(delta.into())?;
                    }
                    0x03 => {
                        let delta = reader.u16()?;
                        self.advance_by(delta.into())?;
                    }
                    DEFINE_CFA_OFFSET => {
                        let offset = reader.uleb()?;
                        self.state.set_cfa_offset::<A>(offset as i64, self.cie.is_signal);
                    }
                    _ => reader = self.extended(op, reader)?,
                },
            }
            reader.go_on_at(self.pairs(reader.rest()));
        }
        Some(())
    }

    /// Runs the pairs that instructions begin with, and returns the instructions after them. Three of four
    /// instructions are in pairs.
    #[inline]
    fn pairs(&mut self, instructions: &'a [u8]) -> &'a [u8] {
        let is_pair = instructions
            .first_chunk()
            .is_some_and(|word| AdvanceAndOffset::of(u32::from_le_bytes(*word)).is_some());
        let is_plain = is_pair && self.state.cfa.expression.is_none() && self.state.rule.has_register_cfa();
        if is_plain { self.plain_pairs(instructions) } else { instructions }
    }

    /// As [`EntryExecution::pairs`], if the CFA is a register + offset. It is a separate function without calls, so
    /// that its state stays in registers. It ends early at a row that cannot be handled without a call.
    #[inline(never)]
    fn plain_pairs(&mut self, mut instructions: &'a [u8]) -> &'a [u8] {
        let factor = self.cie.code_factor;
        let (mut location, mut rule) = (self.location, self.state.rule);
        while let Some(word) = instructions.first_chunk()
            && let Some(pair) = AdvanceAndOffset::of(u32::from_le_bytes(*word))
            && let Some(next) = location.checked_add(u64::from(pair.advance).wrapping_mul(factor))
        {
            if next > location {
                if !self.rows.try_row(location, rule) {
                    break;
                }
                location = next;
            }
            rule = rule.with_operand(pair.offset.into());
            instructions = instructions.get(pair.len..).unwrap_or_default();
        }
        self.location = location;
        self.state.rule = rule;
        self.state.cfa.offset = rule.operand();
        instructions
    }

    /// The other instructions, whose operands all follow the opcode. The cursor is passed and returned by
    /// value, so that it stays in registers for the instructions above.
    #[inline(never)]
    fn extended(&mut self, op: u8, mut reader: SectionReader<'a>) -> Option<SectionReader<'a>> {
        match op {
            0x01 => self.set_location(&mut reader)?,
            0x04 => {
                let delta = reader.u32()?;
                self.advance_by(delta.into())?;
            }
            0x06 => {
                let register = reader.uleb()?;
                self.restore(register);
            }
            0x0a => self.remember()?,
            0x0b => self.state = self.remembered.pop()?,
            0x13 => {
                let offset = self.factored(reader.sleb()?);
                self.state.set_cfa_offset::<A>(offset, self.cie.is_signal);
            }
            0x0c | 0x0d | 0x0f | 0x12 => self.define_cfa(op, &mut reader)?,
            // These state whether the return address is signed from here on. They are ignored, because
            // signatures are always removed.
            0x2c | 0x2d if A::VENDOR == gimli::Vendor::AArch64 => {}
            0x2e => drop(reader.uleb()?),
            _ => {
                let register = reader.uleb()?;
                let saved = self.saved(op, &mut reader)?;
                self.set(register, saved);
            }
        }
        Some(reader)
    }

    /// The instructions that define the CFA by a register or an expression.
    fn define_cfa(&mut self, op: u8, reader: &mut SectionReader<'a>) -> Option<()> {
        let cfa = &mut self.state.cfa;
        if op == 0x0f {
            let len = reader.uleb()?;
            cfa.expression = Some(reader.block(len)?);
        } else {
            *cfa = CfaRule { register: reader.uleb()?, offset: cfa.offset, expression: None };
            match op {
                0x0c => cfa.offset = reader.uleb()? as i64,
                0x12 => cfa.offset = reader.sleb()?.wrapping_mul(self.cie.data_factor),
                _ => {}
            }
        }
        self.state.refresh::<A>(self.cie.is_signal);
        Some(())
    }

    /// The operands, after the register, of the instructions that define where a register is saved.
    fn saved(&self, op: u8, reader: &mut SectionReader<'a>) -> Option<RegisterRule<'a>> {
        Some(match op {
            0x05 => RegisterRule::Offset(self.factored(reader.uleb()? as i64)),
            0x07 => RegisterRule::Undefined,
            0x08 => RegisterRule::SameValue,
            0x09 | 0x14 => {
                reader.uleb()?;
                RegisterRule::Other
            }
            0x10 => {
                let len = reader.uleb()?;
                RegisterRule::Expression(reader.block(len)?)
            }
            0x11 => RegisterRule::Offset(self.factored(reader.sleb()?)),
            0x15 => {
                reader.sleb()?;
                RegisterRule::Other
            }
            0x16 => {
                let len = reader.uleb()?;
                reader.block(len)?;
                RegisterRule::Other
            }
            0x2f => RegisterRule::Offset(self.factored((reader.uleb()? as i64).wrapping_neg())),
            _ => return None,
        })
    }

    fn factored(&self, offset: i64) -> i64 {
        offset.wrapping_mul(self.cie.data_factor)
    }

    /// `DW_CFA_offset`, mostly of registers that are not tracked.
    #[inline]
    fn set_offset(&mut self, register: u64, offset: i64) {
        if is_followed::<A>(register) {
            self.set(register, RegisterRule::Offset(self.factored(offset)));
        }
    }

    fn set(&mut self, register: u64, saved: RegisterRule<'a>) {
        match register as usize {
            register if register == A::FRAME_POINTER => self.state.frame_pointer = saved,
            register if register == A::RETURN_ADDRESS => self.state.return_address = saved,
            register if register == A::STACK_POINTER => self.state.stack_pointer_is_saved = true,
            _ => return,
        }
        self.state.refresh::<A>(self.cie.is_signal);
    }

    fn restore(&mut self, register: u64) {
        let initial = self.initial;
        match register as usize {
            register if register == A::FRAME_POINTER => self.state.frame_pointer = initial.frame_pointer,
            register if register == A::RETURN_ADDRESS => self.state.return_address = initial.return_address,
            register if register == A::STACK_POINTER => {
                self.state.stack_pointer_is_saved = initial.stack_pointer_is_saved;
            }
            _ => return,
        }
        self.state.refresh::<A>(self.cie.is_signal);
    }

    fn remember(&mut self) -> Option<()> {
        if self.remembered.len() >= MAX_REMEMBERED {
            return None;
        }
        self.remembered.push(self.state);
        Some(())
    }

    /// Advances the location by `delta` units of code.
    #[inline]
    fn advance_by(&mut self, delta: u64) -> Option<()> {
        let location = self.location.checked_add(delta.wrapping_mul(self.cie.code_factor))?;
        self.advance_to(location);
        Some(())
    }

    /// `DW_CFA_set_loc`, which must not go back.
    fn set_location(&mut self, reader: &mut SectionReader<'a>) -> Option<()> {
        let bases = super::reader::PointerBases { function: Some(self.function), ..self.section.bases() };
        let location = reader.pointer(self.cie.pointer_encoding, &bases)?;
        if location < self.location {
            return None;
        }
        self.advance_to(location);
        Some(())
    }

    /// Ends the row at a location that is not before the current one.
    #[inline]
    fn advance_to(&mut self, location: u64) {
        if location > self.location {
            if !self.rows.try_row(self.location, self.state.rule) {
                self.rows.row(self.location, self.state.rule);
            }
            self.location = location;
        }
    }
}

/// An advance of less than 64 units in one byte, and the new offset of the CFA in one or two bytes.
struct AdvanceAndOffset {
    advance: u8,
    offset: u16,
    /// The size of the pair in bytes.
    len: usize,
}

impl AdvanceAndOffset {
    /// The pair at the beginning of a word's bytes. One comparison recognises nearly every pair.
    #[inline]
    fn of(word: u32) -> Option<Self> {
        const OPCODES: u32 = 0xffc0;
        const EXPECTED: u32 = (DEFINE_CFA_OFFSET as u32) << 8 | 0x40;
        /// The bit that another byte of the offset follows.
        const MORE: u32 = 0x80 << 16;
        const STILL_MORE: u32 = 0x80 << 24;
        let (advance, low, high) = (word as u8 & 0x3f, (word >> 16) as u16 & 0x7f, (word >> 24) as u16);
        if word & (OPCODES | MORE) == EXPECTED {
            return Some(Self { advance, offset: low, len: 3 });
        }
        let is_long = word & (OPCODES | MORE | STILL_MORE) == EXPECTED | MORE;
        is_long.then_some(Self { advance, offset: high << 7 | low, len: 4 })
    }
}

/// Skips the first instructions that save registers which are not tracked, because functions save several of
/// them.
#[inline]
fn without_other_offsets<A: Architecture>(mut instructions: &[u8]) -> &[u8] {
    while let [op @ 0x80..=0xbf, 0..=0x7f, rest @ ..] = instructions
        && !is_followed::<A>(u64::from(op & 0x3f))
    {
        instructions = rest;
    }
    instructions
}

/// Whether a register is one of the three tracked registers.
#[inline]
fn is_followed<A: Architecture>(register: u64) -> bool {
    let followed = 1_u64 << A::FRAME_POINTER | 1 << A::STACK_POINTER | 1 << A::RETURN_ADDRESS;
    register < u64::from(u64::BITS) && followed >> register & 1 != 0
}
