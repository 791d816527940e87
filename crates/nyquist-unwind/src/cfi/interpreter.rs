//! Runs the instructions of call frame information for the three registers that stepping needs: the CFA, the
//! frame pointer and the return address. Everything else is read over.

use super::FrameSection;
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

/// Runs instructions of one section.
#[derive(Debug)]
pub(crate) struct Interpreter<'a, A> {
    section: &'a FrameSection,
    architecture: PhantomData<A>,
    /// The state after a CIE's initial instructions, and where that CIE is.
    initial: Option<(usize, State<'a>)>,
    remembered: Vec<State<'a>>,
}

/// A run over the instructions of one entry.
struct Run<'a, 's, A, F> {
    architecture: PhantomData<A>,
    cie: &'s Cie<'a>,
    section: &'a FrameSection,
    initial: State<'a>,
    state: State<'a>,
    remembered: &'s mut Vec<State<'a>>,
    function: u64,
    location: u64,
    emit: &'s mut F,
}

impl<'a, A: Architecture> Interpreter<'a, A> {
    pub(crate) fn new(section: &'a FrameSection) -> Self {
        Self { section, architecture: PhantomData, initial: None, remembered: Vec::new() }
    }

    /// Calls `emit` with the address at which each row begins, in ascending order, and its rule. Rows may
    /// repeat the rule before them. Where the instructions are damaged, rows before the damage have been
    /// emitted, and the error is the address up to which they hold.
    pub(crate) fn rows(
        &mut self,
        fde: &Fde<'a>,
        cie: &Cie<'a>,
        emit: &mut impl FnMut(u64, Rule),
    ) -> Result<(), u64> {
        if cie.return_register != A::RETURN_ADDRESS as u64 {
            emit(fde.start, Rule::SLOW);
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
            emit: &mut *emit,
        };
        let done = run.all(fde.instructions);
        let (location, rule) = (run.location, run.state.rule);
        done.ok_or(location)?;
        if location < fde.end {
            emit(location, rule);
        }
        Ok(())
    }

    fn initial_state(&mut self, offset: usize, cie: &Cie<'a>) -> Option<State<'a>> {
        if let Some((known, state)) = self.initial
            && known == offset
        {
            return Some(state);
        }
        self.remembered.clear();
        let mut run = Run {
            architecture: self.architecture,
            cie,
            section: self.section,
            initial: State::initial::<A>(),
            state: State::initial::<A>(),
            remembered: &mut self.remembered,
            function: 0,
            location: 0,
            emit: &mut |_, _| (),
        };
        run.all(cie.instructions)?;
        let state = run.state;
        self.initial = Some((offset, state));
        Some(state)
    }
}

impl<'a, A: Architecture, F: FnMut(u64, Rule)> Run<'a, '_, A, F> {
    fn all(&mut self, mut reader: Reader<'a>) -> Option<()> {
        while let Some(op) = reader.u8() {
            let low = u64::from(op & 0x3f);
            match op >> 6 {
                1 => {
                    self.advance(low)?;
                    // Nearly half of all instructions are such a pair.
                    if let Some(offset) = reader.short_after(DEFINE_CFA_OFFSET) {
                        self.state.set_cfa_offset::<A>(offset.into(), self.cie.is_signal);
                    }
                }
                2 => {
                    let offset = reader.uleb()?;
                    self.set_offset(low, offset as i64);
                }
                3 => self.restore(low),
                _ => self.extended(op, &mut reader)?,
            }
        }
        Some(())
    }

    /// The instructions whose operands all follow the opcode.
    #[inline]
    fn extended(&mut self, op: u8, reader: &mut Reader<'a>) -> Option<()> {
        match op {
            0x00 => {}
            0x01 => self.set_location(reader)?,
            0x02 => self.advance(reader.u8()?.into())?,
            0x03 => self.advance(reader.u16()?.into())?,
            0x04 => self.advance(reader.u32()?.into())?,
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
            0x0c | 0x0d | 0x0f | 0x12 => self.define_cfa(op, reader)?,
            // That the return address is signed from here on, or no more: what signs it is taken off in any case.
            0x2c | 0x2d if A::VENDOR == gimli::Vendor::AArch64 => {}
            0x2e => drop(reader.uleb()?),
            _ => {
                let register = reader.uleb()?;
                let saved = self.saved(op, reader)?;
                self.set(register, saved);
            }
        }
        Some(())
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

    #[inline]
    fn advance(&mut self, delta: u64) -> Option<()> {
        let delta = delta.wrapping_mul(self.cie.code_factor);
        self.advance_to(self.location.checked_add(delta)?)
    }

    fn set_location(&mut self, reader: &mut Reader<'a>) -> Option<()> {
        let bases = super::reader::Bases { function: Some(self.function), ..self.section.bases() };
        let location = reader.pointer(self.cie.pointer_encoding, &bases)?;
        self.advance_to(location)
    }

    #[inline]
    fn advance_to(&mut self, location: u64) -> Option<()> {
        if location < self.location {
            return None;
        }
        if location > self.location {
            (self.emit)(self.location, self.state.rule);
            self.location = location;
        }
        Some(())
    }
}

/// Whether a register is one of the three whose place in the caller's frame matters.
#[inline]
fn is_followed<A: Architecture>(register: u64) -> bool {
    let followed = 1_u64 << A::FRAME_POINTER | 1 << A::STACK_POINTER | 1 << A::RETURN_ADDRESS;
    register < u64::from(u64::BITS) && followed >> register & 1 != 0
}
