//! Evaluates a row of call frame information in full: all registers, any expression.

use crate::architecture::{Architecture, FullRegisters, unreadable};
use crate::cfi::{FrameSection, SectionKind};
use crate::{Reason, StackMemory};
use gimli::{
    BaseAddresses, CfaRule, DebugFrame, EhFrame, EndianSlice, Evaluation, EvaluationResult,
    EvaluationStorage, FrameDescriptionEntry, LittleEndian, Location, Piece, Register, RegisterRule,
    UnwindContext, UnwindContextStorage, UnwindExpression, UnwindSection, UnwindTableRow, Value,
};
use nyquist_object::Avma;

type SectionSlice<'a> = EndianSlice<'a, LittleEndian>;

/// The most steps of an expression. Those of real files have a dozen.
const MAX_EXPRESSION_STEPS: u32 = 1_000;

/// Storage of fixed size, so that nothing is allocated while walking.
#[derive(Debug)]
struct FixedStorage;

impl UnwindContextStorage<usize> for FixedStorage {
    type Rules = [(Register, RegisterRule<usize>); 40];
    type Stack = [UnwindTableRow<usize, Self>; 8];
}

impl<'a> EvaluationStorage<SectionSlice<'a>> for FixedStorage {
    type Stack = [Value; 32];
    type ExpressionStack = [(SectionSlice<'a>, SectionSlice<'a>); 4];
    type Result = [Piece<SectionSlice<'a>>; 1];
}

/// A caller's registers, and whether it was interrupted by a signal, because the step was from a signal
/// frame. `None` if there is no caller.
type CallerRegisters<A> = Option<(FullRegisters<A>, bool)>;

/// Evaluates rows, and owns the memory for this.
#[derive(Debug)]
pub(crate) struct RowEvaluator {
    context: Box<UnwindContext<usize, FixedStorage>>,
}

impl RowEvaluator {
    pub(crate) fn new() -> Self {
        Self { context: Box::new(UnwindContext::new_in()) }
    }

    /// Steps from a frame to its caller by the FDE at `offset` of `section`. `address` is the lookup address
    /// as stated in the file.
    pub(crate) fn step<A: Architecture>(
        &mut self,
        section: &FrameSection,
        offset: usize,
        address: u64,
        registers: &FullRegisters<A>,
        memory: &impl StackMemory,
    ) -> Result<CallerRegisters<A>, Reason> {
        match section.kind {
            SectionKind::EhFrame => {
                let mut frames = EhFrame::new(&section.bytes, LittleEndian);
                frames.set_vendor(A::VENDOR);
                self.step_in(&frames, section, offset.into(), address, registers, memory)
            }
            SectionKind::DebugFrame => {
                let mut frames = DebugFrame::new(&section.bytes, LittleEndian);
                frames.set_vendor(A::VENDOR);
                self.step_in(&frames, section, offset.into(), address, registers, memory)
            }
        }
    }

    fn step_in<'a, A: Architecture, U: UnwindSection<SectionSlice<'a>>>(
        &mut self,
        frames: &U,
        section: &FrameSection,
        offset: U::Offset,
        address: u64,
        registers: &FullRegisters<A>,
        memory: &impl StackMemory,
    ) -> Result<CallerRegisters<A>, Reason> {
        let bases = bases(section);
        let fde = frames.fde_from_offset(&bases, offset, U::cie_from_offset);
        let fde: FrameDescriptionEntry<SectionSlice<'a>> = fde.map_err(|_| Reason::DamagedUnwindInfo)?;
        let row = fde.unwind_info_for_address(frames, &bases, &mut self.context, address);
        let row = row.map_err(|_| Reason::DamagedUnwindInfo)?;
        let frame = CalleeFrame { frames, encoding: fde.cie().encoding(), registers, memory };
        frame.caller(row, fde.cie().return_address_register(), fde.is_signal_trampoline())
    }
}

fn bases(section: &FrameSection) -> BaseAddresses {
    let mut bases = BaseAddresses::default().set_eh_frame(section.address);
    if let Some(text) = section.text {
        bases = bases.set_text(text);
    }
    if let Some(got) = section.got {
        bases = bases.set_got(got);
    }
    bases
}

/// The frame whose caller is computed.
struct CalleeFrame<'s, A: Architecture, U, M> {
    frames: &'s U,
    encoding: gimli::Encoding,
    registers: &'s FullRegisters<A>,
    memory: &'s M,
}

impl<'a, A: Architecture, U: UnwindSection<SectionSlice<'a>>, M: StackMemory> CalleeFrame<'_, A, U, M> {
    fn caller(
        &self,
        row: &UnwindTableRow<usize, FixedStorage>,
        return_register: Register,
        is_signal: bool,
    ) -> Result<CallerRegisters<A>, Reason> {
        match row.register(return_register) {
            Some(RegisterRule::Undefined) => return Ok(None),
            None if !A::KEEPS_RETURN_ADDRESS => return Ok(None),
            _ => {}
        }
        let cfa = self.cfa(row.cfa())?;
        let mut caller = FullRegisters::none();
        for register in 0..caller.len() {
            let rule = row.register(Register(register as u16));
            // A register that cannot be restored is an error only if a later step needs it.
            caller.set(register, self.value(register, rule.as_ref(), cfa).ok());
        }
        let return_address = row.register(return_register);
        let ip = self.value(usize::from(return_register.0), return_address.as_ref(), cfa)?;
        caller.set(A::INSTRUCTION_POINTER, Some(ip));
        if row.register(Register(A::STACK_POINTER as u16)).is_none() {
            caller.set(A::STACK_POINTER, Some(cfa));
        }
        if caller.get(A::STACK_POINTER).is_none() {
            return Err(Reason::RegisterUnknown);
        }
        Ok(Some((caller, is_signal)))
    }

    fn cfa(&self, rule: &CfaRule<usize>) -> Result<u64, Reason> {
        match rule {
            CfaRule::RegisterAndOffset { register, offset } => {
                let base = self.register(usize::from(register.0))?;
                Ok(base.wrapping_add_signed(*offset))
            }
            CfaRule::Expression(expression) => self.evaluate(expression, None),
        }
    }

    /// The caller's value of a register.
    fn value(&self, register: usize, rule: Option<&RegisterRule<usize>>, cfa: u64) -> Result<u64, Reason> {
        match rule {
            // Call frame information does not mention registers that keep their values.
            None | Some(RegisterRule::SameValue) => self.register(register),
            Some(RegisterRule::Offset(offset)) => self.saved(register, cfa.wrapping_add_signed(*offset)),
            Some(RegisterRule::ValOffset(offset)) => Ok(cfa.wrapping_add_signed(*offset)),
            Some(RegisterRule::Register(other)) => self.register(usize::from(other.0)),
            Some(RegisterRule::Expression(expression)) => self.read(self.evaluate(expression, Some(cfa))?),
            Some(RegisterRule::ValExpression(expression)) => self.evaluate(expression, Some(cfa)),
            Some(RegisterRule::Constant(value)) => Ok(*value),
            Some(_) => Err(Reason::RegisterUnknown),
        }
    }

    /// A register saved at `address`. In an epilogue the rule can be stale: registers that are saved below
    /// the stack pointer have already been restored, and the memory may be overwritten.
    fn saved(&self, register: usize, address: u64) -> Result<u64, Reason> {
        if register != A::RETURN_ADDRESS
            && self.registers.get(A::STACK_POINTER).is_some_and(|sp| address < sp)
        {
            return self.register(register);
        }
        self.read(address)
    }

    fn register(&self, register: usize) -> Result<u64, Reason> {
        self.registers.get(register).ok_or(Reason::RegisterUnknown)
    }

    fn read(&self, address: u64) -> Result<u64, Reason> {
        let sp = self.registers.get(A::STACK_POINTER).unwrap_or_default();
        self.memory.read_u64(Avma(address)).ok_or_else(|| unreadable(address, sp))
    }

    fn evaluate(&self, expression: &UnwindExpression<usize>, initial: Option<u64>) -> Result<u64, Reason> {
        let expression = expression.get(self.frames).map_err(|_| Reason::DamagedUnwindInfo)?;
        let mut evaluation =
            Evaluation::<SectionSlice<'a>, FixedStorage>::new_in(expression.0, self.encoding);
        evaluation.set_max_iterations(MAX_EXPRESSION_STEPS);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut result = evaluation.evaluate().map_err(|_| Reason::ExpressionFailed)?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let word = self.read(address)?;
                    let unused = 64 - 8 * u32::from(size.clamp(1, 8));
                    evaluation.resume_with_memory(Value::Generic(word << unused >> unused))
                }
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = self.register(usize::from(register.0))?;
                    evaluation.resume_with_register(Value::Generic(value))
                }
                _ => return Err(Reason::ExpressionFailed),
            }
            .map_err(|_| Reason::ExpressionFailed)?;
        }
        match evaluation.as_result() {
            [Piece { location: Location::Address { address }, .. }] => Ok(*address),
            _ => Err(Reason::ExpressionFailed),
        }
    }
}
