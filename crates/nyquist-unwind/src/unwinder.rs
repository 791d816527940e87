//! The walk from the innermost frame to the outermost.

use crate::cache::RuleCache;
use crate::rule::{Kind, Rule, SavedFramePointer};
use crate::slow::{Evaluator, FullRegisters, unreadable};
use crate::space::{Mapping, find};
use crate::x86_64::{RBP, REGISTERS, RIP, RSP, SIGNAL_CONTEXT, instructions};
use crate::{AddressSpace, FrameAddress, Module, Reason, Registers, StackMemory, WalkEnd};
use nyquist_object::{Avma, RelativeAddress};

/// The most frames that a walk yields.
pub const MAX_FRAMES: usize = 16_384;

/// Stands for a frame pointer that is not known: it is not aligned, and no stack is there.
const UNKNOWN_FRAME_POINTER: u64 = 1;

/// How much of a function's beginning is read at most to find its frame pointer.
const LONGEST_PROLOGUE: usize = 128;

/// Walks stacks. Each thread that walks has one of its own; what they share is only read.
#[derive(Debug)]
pub struct Unwinder {
    cache: RuleCache,
    evaluator: Evaluator,
}

impl Default for Unwinder {
    fn default() -> Self {
        Self::new()
    }
}

/// The registers that most steps need.
#[derive(Clone, Copy, Debug)]
struct Frame {
    ip: u64,
    sp: u64,
    bp: u64,
    /// Whether the frame was interrupted and not left by a call: any instruction can be the next one, and the
    /// lookup address is the instruction's own.
    interrupted: bool,
}

impl Frame {
    /// The address by which the frame's rule is found.
    fn lookup(&self) -> u64 {
        if self.interrupted { self.ip } else { self.ip.wrapping_sub(1) }
    }

    fn address(&self) -> FrameAddress {
        if self.interrupted {
            FrameAddress::InstructionPointer(Avma(self.ip))
        } else {
            FrameAddress::ReturnAddress(Avma(self.ip))
        }
    }

    /// The frame, if all of its registers that matter are known.
    fn of(registers: &FullRegisters, interrupted: bool) -> Result<Self, Reason> {
        let get = |register| registers.get(register).ok_or(Reason::RegisterUnknown);
        let bp = registers.get(RBP).unwrap_or(UNKNOWN_FRAME_POINTER);
        Ok(Self { ip: get(RIP)?, sp: get(RSP)?, bp, interrupted })
    }

    fn read(&self, address: u64, memory: &impl StackMemory) -> Result<u64, Reason> {
        memory.read_u64(Avma(address)).ok_or_else(|| unreadable(address, self.sp))
    }
}

/// Why a walk stops.
enum Stop {
    Root,
    Truncated(Reason),
}

impl From<Reason> for Stop {
    fn from(reason: Reason) -> Self {
        Self::Truncated(reason)
    }
}

impl Unwinder {
    /// An unwinder with an empty cache. Allocates all memory that its walks will need.
    pub fn new() -> Self {
        Self { cache: RuleCache::new(), evaluator: Evaluator::new() }
    }

    /// Hands the addresses of the stack's frames to `frames`, innermost first, and says whether the outermost
    /// was reached.
    ///
    /// The first one is the instruction pointer. Always ends, after [`MAX_FRAMES`] frames at the latest;
    /// allocates nothing, locks nothing, and reads no memory but through `memory`.
    pub fn walk<M: StackMemory>(
        &mut self,
        space: &AddressSpace,
        registers: &Registers,
        memory: &M,
        frames: &mut impl FnMut(FrameAddress),
    ) -> WalkEnd {
        let base = registers.full();
        let bp = base.get(RBP).unwrap_or(UNKNOWN_FRAME_POINTER);
        let (ip, sp) = (registers.instruction_pointer().0, registers.stack_pointer().0);
        let frame = Frame { ip, sp, bp, interrupted: true };
        let mut walk = Walk {
            unwinder: self,
            mappings: space.mappings(),
            mapping: None,
            memory,
            frame,
            base: (base, true),
            steps_since_base: 0,
        };
        for _ in 0..MAX_FRAMES {
            frames(walk.frame.address());
            match walk.step() {
                Ok(()) => {}
                Err(Stop::Root) => return WalkEnd::Root,
                Err(Stop::Truncated(reason)) => return WalkEnd::Truncated(reason),
            }
        }
        WalkEnd::Truncated(Reason::TooManyFrames)
    }
}

/// A walk under way.
struct Walk<'a, M> {
    unwinder: &'a mut Unwinder,
    mappings: &'a [Mapping],
    /// The mapping of the last frame's code, which is often the next frame's too.
    mapping: Option<&'a Mapping>,
    memory: &'a M,
    frame: Frame,
    /// The last frame of which all registers are known that can be, and whether it was interrupted. Most steps
    /// follow three registers only; where a row needs others, the walk is repeated from here with all of them.
    base: (FullRegisters, bool),
    steps_since_base: usize,
}

impl<'a, M: StackMemory> Walk<'a, M> {
    /// Steps to the caller.
    #[inline]
    fn step(&mut self) -> Result<(), Stop> {
        let frame = self.frame;
        let mut rule = self.rule(&frame);
        if rule.kind() == Kind::Uncovered {
            rule = self.guess(&frame)?;
        }
        let next = match rule.kind() {
            Kind::End => return Err(Stop::Root),
            Kind::Slow => self.step_with_all_registers()?,
            Kind::SignalFrame => self.rebase(signal_context(&frame, self.memory)?, true)?,
            _ => {
                self.steps_since_base += 1;
                match apply(rule, &frame, self.memory) {
                    Ok(next) => next,
                    Err(reason) => self.apply_with_found_frame_pointer(rule, &frame, reason)?,
                }
            }
        };
        self.check(&frame, &next)?;
        self.frame = next;
        Ok(())
    }

    #[inline]
    fn rule(&mut self, frame: &Frame) -> Rule {
        match self.module_at(frame.lookup()) {
            Some((module, address)) => {
                self.unwinder.cache.rule(module.number(), address.0, || module.rule(address))
            }
            None => Rule::UNCOVERED,
        }
    }

    #[inline]
    fn mapping_of(&mut self, lookup: u64) -> Option<&'a Mapping> {
        if !self.mapping.is_some_and(|mapping| mapping.contains(lookup)) {
            self.mapping = find(self.mappings, lookup);
        }
        self.mapping
    }

    /// Checks that the caller makes sense and is further up the stack.
    #[inline]
    fn check(&mut self, frame: &Frame, next: &Frame) -> Result<(), Stop> {
        if next.ip == 0 {
            return Err(Stop::Root);
        }
        // The first frame, and one that a signal interrupted, may be switching stacks.
        if next.sp <= frame.sp && !frame.interrupted && !next.interrupted {
            return Err(Reason::NotAdvancing.into());
        }
        if self.mapping_of(next.lookup()).is_none() && !next.interrupted {
            return Err(Reason::NotCode.into());
        }
        Ok(())
    }

    /// The rule of a frame that no unwind information describes: by the instructions at hand, or by the frame
    /// pointer. What it leads to has been looked at, and is plausible.
    #[cold]
    fn guess(&self, frame: &Frame) -> Result<Rule, Reason> {
        let code = self.uncovered_code(frame.ip);
        if code.is_some_and(|(code, at)| instructions::is_signal_return(code, at)) {
            return Ok(Rule::SIGNAL_FRAME);
        }
        if frame.interrupted {
            let known = match code {
                Some((code, at)) => instructions::rule_at(code, at),
                // A call to where no code is has done nothing yet but push its return address.
                None => find(self.mappings, frame.ip).is_none().then_some(Rule::RETURN_ADDRESS),
            };
            if let Some(rule) = known.filter(|&rule| self.leads_to_call(rule, frame)) {
                return Ok(rule);
            }
            if self.is_leaf_by_convention(frame.ip) && self.leads_to_call(Rule::RETURN_ADDRESS, frame) {
                return Ok(Rule::RETURN_ADDRESS);
            }
        } else if frame.bp == 0 {
            // The deepest frame is marked by a frame pointer of zero (System V ABI for AMD64, section 3.4.1).
            return Ok(Rule::END);
        }
        let plausible = frame.bp >= frame.sp && frame.bp.is_multiple_of(8);
        if plausible && self.leads_to_call(Rule::FRAME_RECORD, frame) {
            return Ok(Rule::FRAME_RECORD);
        }
        Err(Reason::NoUnwindInfo)
    }

    /// Whether code that nothing describes neither calls nor moves the stack pointer, as Windows requires of it ("x64
    /// exception handling", "Unwind data for exception handling").
    fn is_leaf_by_convention(&self, address: u64) -> bool {
        find(self.mappings, address).and_then(Mapping::module).is_some_and(|module| module.pe().is_some())
    }

    /// Whether the rule leads to a place that a call returns to, or to the end of the stack.
    fn leads_to_call(&self, rule: Rule, frame: &Frame) -> bool {
        let next = apply(rule, frame, self.memory);
        next.is_ok_and(|next| next.ip == 0 || self.may_return_to(next.ip))
    }

    /// Whether an address can be where a call returns to: in code, and after a call where the instructions are
    /// known.
    fn may_return_to(&self, address: u64) -> bool {
        let Some(mapping) = find(self.mappings, address.wrapping_sub(1)) else { return false };
        let Some((module, lookup)) = mapping.module().zip(mapping.relative(address.wrapping_sub(1))) else {
            return true;
        };
        match module.uncovered().around(lookup.0.wrapping_add(1)) {
            Some((code, at)) => instructions::follows_call(code, at),
            None => true,
        }
    }

    /// The bytes of uncovered code around an address.
    fn uncovered_code(&self, address: u64) -> Option<(&'a [u8], usize)> {
        let mapping = find(self.mappings, address)?;
        let relative = mapping.relative(address)?;
        mapping.module()?.uncovered().around(relative.0)
    }

    /// A step that has failed for a reason: where that was an unknown frame pointer, it is looked for.
    #[cold]
    fn apply_with_found_frame_pointer(
        &mut self,
        rule: Rule,
        frame: &Frame,
        reason: Reason,
    ) -> Result<Frame, Reason> {
        let by_frame_pointer = matches!(rule.kind(), Kind::FramePointer | Kind::AtFramePointer);
        if !by_frame_pointer || frame.bp != UNKNOWN_FRAME_POINTER {
            return Err(reason);
        }
        let bp = self.find_frame_pointer(frame).ok_or(Reason::RegisterUnknown)?;
        let frame = Frame { bp, ..*frame };
        if !self.leads_to_call(rule, &frame) {
            return Err(Reason::RegisterUnknown);
        }
        let next = apply(rule, &frame, self.memory)?;
        self.base = (known_of(&next), false);
        self.steps_since_base = 0;
        Ok(next)
    }

    /// The frame pointer of a function that is making a call, by the instructions at its beginning: they say how far
    /// above the stack pointer it is.
    fn find_frame_pointer(&mut self, frame: &Frame) -> Option<u64> {
        let lookup = frame.lookup();
        let (module, address) = self.module_at(lookup)?;
        let offset = module.offset_in_function(address)?;
        let mut code = [0; LONGEST_PROLOGUE];
        let room = code.get_mut(..LONGEST_PROLOGUE.min(offset as usize))?;
        let len = self.memory.read_code(Avma(lookup - u64::from(offset)), room);
        let distance = instructions::frame_pointer_above(code.get(..len)?)?;
        Some(frame.sp.wrapping_add(distance))
    }

    /// A step for which all registers matter.
    #[cold]
    fn step_with_all_registers(&mut self) -> Result<Frame, Stop> {
        let (mut registers, mut interrupted) = self.base;
        for _ in 0..=self.steps_since_base {
            (registers, interrupted) = self.full_step(&registers, interrupted)?;
        }
        self.rebase(registers, interrupted)
    }

    /// Makes a frame whose registers are known the one to repeat the walk from.
    fn rebase(&mut self, registers: FullRegisters, interrupted: bool) -> Result<Frame, Stop> {
        self.base = (registers, interrupted);
        self.steps_since_base = 0;
        Ok(Frame::of(&registers, interrupted)?)
    }

    /// A step with all registers; those that it cannot restore are not known in the caller. Also says whether
    /// the caller was interrupted.
    fn full_step(
        &mut self,
        registers: &FullRegisters,
        interrupted: bool,
    ) -> Result<(FullRegisters, bool), Stop> {
        let frame = Frame::of(registers, interrupted)?;
        if let Some((module, address)) = self.module_at(frame.lookup())
            && let Some(undo) =
                module.pe().and_then(|functions| functions.undo(address.0, module.rule(address)))
        {
            return Ok(undo.step(registers, self.memory)?);
        }
        if let Some((module, address)) = self.module_at(frame.lookup())
            && let Some((section, offset)) = module.fde(address)
            && module.rule(address).kind() != Kind::Uncovered
        {
            let (evaluator, address) = (&mut self.unwinder.evaluator, module.svma(address));
            let caller = evaluator.step(section, offset, address, registers, self.memory)?;
            return caller.ok_or(Stop::Root);
        }
        let next = apply(self.guess(&frame)?, &frame, self.memory)?;
        Ok((known_of(&next), false))
    }

    fn module_at(&mut self, lookup: u64) -> Option<(&'a Module, RelativeAddress)> {
        let mapping = self.mapping_of(lookup)?;
        mapping.module().zip(mapping.relative(lookup))
    }
}

/// What is known of a frame's registers: those that most steps need.
fn known_of(frame: &Frame) -> FullRegisters {
    let mut registers = FullRegisters::default();
    registers.set(RIP, Some(frame.ip));
    registers.set(RSP, Some(frame.sp));
    registers.set(RBP, Some(frame.bp).filter(|bp| *bp != UNKNOWN_FRAME_POINTER));
    registers
}

/// The caller of a frame whose rule needs no more than three registers.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a call a frame is a tenth of the cost of walking")]
fn apply(rule: Rule, frame: &Frame, memory: &impl StackMemory) -> Result<Frame, Reason> {
    let cfa = match rule.kind() {
        Kind::StackPointer => frame.sp.wrapping_add_signed(rule.operand()),
        Kind::FramePointer => frame.bp.wrapping_add_signed(rule.operand()),
        Kind::AtStackPointer => word(frame.sp, rule, frame, memory)?,
        Kind::AtFramePointer => word(frame.bp, rule, frame, memory)?,
        Kind::LinkageStub => {
            let pushed = if (frame.ip & 15) as i64 >= rule.high() { 8 } else { 0 };
            frame.sp.wrapping_add_signed(rule.low() + pushed)
        }
        Kind::Uncovered | Kind::End | Kind::SignalFrame | Kind::Slow => return Err(Reason::NoUnwindInfo),
    };
    let ip = frame.read(cfa.wrapping_sub(8), memory)?;
    let bp = match rule.saved_frame_pointer() {
        SavedFramePointer::InRegister => frame.bp,
        SavedFramePointer::FromCfa => {
            let saved = cfa.wrapping_add_signed(rule.saved_offset());
            // In an epilogue the rule can be stale: what is below the stack pointer has been restored.
            if saved < frame.sp { frame.bp } else { frame.read(saved, memory)? }
        }
        SavedFramePointer::FromFramePointer => {
            frame.read(frame.bp.wrapping_add_signed(rule.saved_offset()), memory)?
        }
    };
    Ok(Frame { ip, sp: cfa, bp, interrupted: false })
}

/// The CFA of the rules that find it in memory.
fn word(base: u64, rule: Rule, frame: &Frame, memory: &impl StackMemory) -> Result<u64, Reason> {
    let word = frame.read(base.wrapping_add_signed(rule.low()), memory)?;
    Ok(word.wrapping_add_signed(rule.high()))
}

/// The registers that the kernel saved when it delivered a signal.
fn signal_context(frame: &Frame, memory: &impl StackMemory) -> Result<FullRegisters, Reason> {
    let mut values = [0; REGISTERS];
    for (value, offset) in values.iter_mut().zip(SIGNAL_CONTEXT) {
        *value = frame.read(frame.sp.wrapping_add(offset), memory)?;
    }
    Ok(FullRegisters::all(values))
}
