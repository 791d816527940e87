//! Runs the instructions of call frame information for the three registers that stepping needs: the CFA, the
//! frame pointer and the return address. Everything else is read over.

use super::FrameSection;
use super::by_offset::ByOffset;
use super::entry::{Cie, Fde};
use super::reader::Reader;
use crate::architecture::Architecture;
use crate::rule::Rule;
use std::marker::PhantomData;

/// The states that `DW_CFA_remember_state` may stack. Compilers nest at most two.
const MAX_REMEMBERED: usize = 64;

/// `DW_CFA_def_cfa_offset`.
const DEFINE_CFA_OFFSET: u8 = 0x0e;

/// How the CFA is found. The register and the offset are kept while an expression takes their place, as GCC's
/// unwinder does: hand-written code in libgcrypt sets either one after an expression.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cfa<'a> {
    pub(crate) register: u64,
    pub(crate) offset: i64,
    pub(crate) expression: Option<&'a [u8]>,
}

/// How one register of the caller is found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Saved<'a> {
    Undefined,
    SameValue,
    Offset(i64),
    Expression(&'a [u8]),
    Other,
}

/// One row of the table that the instructions describe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State<'a> {
    /// The row as a rule: always what the other fields say.
    rule: Rule,
    pub(crate) cfa: Cfa<'a>,
    pub(crate) frame_pointer: Saved<'a>,
    pub(crate) return_address: Saved<'a>,
    /// Whether the stack pointer is restored to anything but the CFA.
    pub(crate) stack_pointer_is_saved: bool,
}

impl State<'_> {
    /// The state before any instruction.
    fn initial<A: Architecture>() -> Self {
        let mut state = Self {
            rule: Rule::END,
            cfa: Cfa { register: 0, offset: 0, expression: None },
            frame_pointer: Saved::SameValue,
            return_address: if A::KEEPS_RETURN_ADDRESS { Saved::SameValue } else { Saved::Undefined },
            stack_pointer_is_saved: false,
        };
        state.refresh::<A>(false);
        state
    }

    /// Makes the rule say what the other fields say.
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

/// Takes the rows that instructions describe.
pub(crate) trait Rows {
    /// Takes a row: the address at which it begins, and its rule.
    fn row(&mut self, address: u64, rule: Rule);
}

/// Takes none: a CIE's initial instructions describe no rows.
struct NoRows;

impl Rows for NoRows {
    fn row(&mut self, _: u64, _: Rule) {}
}

/// Runs instructions of one section.
#[derive(Debug)]
pub(crate) struct Interpreter<'a, A> {
    section: &'a FrameSection,
    architecture: PhantomData<A>,
    /// States after CIEs' initial instructions, and where those CIEs are.
    initial: ByOffset<Option<State<'a>>>,
    remembered: Vec<State<'a>>,
}

/// A run over the instructions of one entry.
struct Run<'a, 's, A, R> {
    architecture: PhantomData<A>,
    cie: &'s Cie<'a>,
    section: &'a FrameSection,
    initial: State<'a>,
    state: State<'a>,
    remembered: &'s mut Vec<State<'a>>,
    function: u64,
    location: u64,
    rows: &'s mut R,
}

impl<'a, A: Architecture> Interpreter<'a, A> {
    pub(crate) fn new(section: &'a FrameSection) -> Self {
        Self { section, architecture: PhantomData, initial: ByOffset::new(None), remembered: Vec::new() }
    }

    /// Gives all rows to `rows`, by address. Rows may repeat the rule before them. Where the instructions are
    /// damaged, rows before the damage have been given, and the error is the address up to which they hold.
    pub(crate) fn rows(&mut self, fde: &Fde<'a>, cie: &Cie<'a>, rows: &mut impl Rows) -> Result<(), u64> {
        if cie.return_register != A::RETURN_ADDRESS as u64 {
            rows.row(fde.start, Rule::SLOW);
            return Ok(());
        }
        let initial = self.initial_state(fde.cie_offset, cie).ok_or(fde.start)?;
        self.remembered.clear();
        let mut run = Run {
            architecture: self.architecture,
            cie,
            section: self.section,
            initial,
            state: initial,
            remembered: &mut self.remembered,
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

    /// The state after the initial instructions of the CIE at the offset.
    fn initial_state(&mut self, offset: usize, cie: &Cie<'a>) -> Option<State<'a>> {
        let Self { section, architecture, remembered, .. } = self;
        *self.initial.get_or_make(offset, || {
            remembered.clear();
            let mut run = Run {
                architecture: *architecture,
                cie,
                section,
                initial: State::initial::<A>(),
                state: State::initial::<A>(),
                remembered,
                function: 0,
                location: 0,
                rows: &mut NoRows,
            };
            run.all(cie.instructions)?;
            Some(run.state)
        })
    }
}

impl<'a, A: Architecture, R: Rows> Run<'a, '_, A, R> {
    fn all(&mut self, mut reader: Reader<'a>) -> Option<()> {
        while let Some(op) = reader.u8() {
            let low = u64::from(op & 0x3f);
            let location = match op >> 6 {
                1 => self.after(low)?,
                2 => {
                    let offset = reader.uleb()?;
                    self.set_offset(low, offset as i64);
                    continue;
                }
                3 => {
                    self.restore(low);
                    continue;
                }
                _ => match op {
                    0x02 => self.after(reader.u8()?.into())?,
                    0x03 => self.after(reader.u16()?.into())?,
                    0x04 => self.after(reader.u32()?.into())?,
                    _ => {
                        reader = self.extended(op, reader)?;
                        continue;
                    }
                },
            };
            self.advance_to(location);
            // Nearly half of all instructions are such a pair.
            if reader.step_over(DEFINE_CFA_OFFSET) {
                let offset = reader.uleb()?;
                self.state.set_cfa_offset::<A>(offset as i64, self.cie.is_signal);
            }
        }
        Some(())
    }

    /// The other instructions, whose operands all follow the opcode. The cursor comes and goes as a value, so that it
    /// stays in registers for the ones above.
    #[inline(never)]
    fn extended(&mut self, op: u8, mut reader: Reader<'a>) -> Option<Reader<'a>> {
        match op {
            0x00 => {}
            0x01 => self.set_location(&mut reader)?,
            0x06 => {
                let register = reader.uleb()?;
                self.restore(register);
            }
            0x0a => self.remember()?,
            0x0b => self.state = self.remembered.pop()?,
            DEFINE_CFA_OFFSET => self.state.set_cfa_offset::<A>(reader.uleb()? as i64, self.cie.is_signal),
            0x13 => {
                let offset = self.factored(reader.sleb()?);
                self.state.set_cfa_offset::<A>(offset, self.cie.is_signal);
            }
            0x0c | 0x0d | 0x0f | 0x12 => self.define_cfa(op, &mut reader)?,
            // That the return address is signed from here on, or no more: what signs it is taken off in any case.
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
    fn define_cfa(&mut self, op: u8, reader: &mut Reader<'a>) -> Option<()> {
        let cfa = &mut self.state.cfa;
        if op == 0x0f {
            let len = reader.uleb()?;
            cfa.expression = Some(reader.block(len)?);
        } else {
            *cfa = Cfa { register: reader.uleb()?, offset: cfa.offset, expression: None };
            match op {
                0x0c => cfa.offset = reader.uleb()? as i64,
                0x12 => cfa.offset = reader.sleb()?.wrapping_mul(self.cie.data_factor),
                _ => {}
            }
        }
        self.state.refresh::<A>(self.cie.is_signal);
        Some(())
    }

    /// The operands, after the register, of the instructions that say how a register is found.
    fn saved(&self, op: u8, reader: &mut Reader<'a>) -> Option<Saved<'a>> {
        Some(match op {
            0x05 => Saved::Offset(self.factored(reader.uleb()? as i64)),
            0x07 => Saved::Undefined,
            0x08 => Saved::SameValue,
            0x09 | 0x14 => {
                reader.uleb()?;
                Saved::Other
            }
            0x10 => {
                let len = reader.uleb()?;
                Saved::Expression(reader.block(len)?)
            }
            0x11 => Saved::Offset(self.factored(reader.sleb()?)),
            0x15 => {
                reader.sleb()?;
                Saved::Other
            }
            0x16 => {
                let len = reader.uleb()?;
                reader.block(len)?;
                Saved::Other
            }
            0x2f => Saved::Offset(self.factored((reader.uleb()? as i64).wrapping_neg())),
            _ => return None,
        })
    }

    fn factored(&self, offset: i64) -> i64 {
        offset.wrapping_mul(self.cie.data_factor)
    }

    /// `DW_CFA_offset`, mostly of registers that do not matter here.
    #[inline]
    fn set_offset(&mut self, register: u64, offset: i64) {
        if is_followed::<A>(register) {
            self.set(register, Saved::Offset(self.factored(offset)));
        }
    }

    fn set(&mut self, register: u64, saved: Saved<'a>) {
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

    /// The location that is so many units of code further on.
    #[inline]
    fn after(&self, delta: u64) -> Option<u64> {
        self.location.checked_add(delta.wrapping_mul(self.cie.code_factor))
    }

    /// `DW_CFA_set_loc`, which may not go back.
    fn set_location(&mut self, reader: &mut Reader<'a>) -> Option<()> {
        let bases = super::reader::Bases { function: Some(self.function), ..self.section.bases() };
        let location = reader.pointer(self.cie.pointer_encoding, &bases)?;
        if location < self.location {
            return None;
        }
        self.advance_to(location);
        Some(())
    }

    /// Ends the row before a location that is not before the present one.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call a row is a tenth of the cost of a table")]
    fn advance_to(&mut self, location: u64) {
        if location > self.location {
            self.rows.row(self.location, self.state.rule);
            self.location = location;
        }
    }
}

/// Whether a register is one of the three whose place in the caller's frame matters.
#[inline]
fn is_followed<A: Architecture>(register: u64) -> bool {
    let followed = 1_u64 << A::FRAME_POINTER | 1 << A::STACK_POINTER | 1 << A::RETURN_ADDRESS;
    register < u64::from(u64::BITS) && followed >> register & 1 != 0
}
