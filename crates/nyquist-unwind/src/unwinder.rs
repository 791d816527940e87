//! The walk from the innermost frame to the outermost.

use crate::aarch64::Aarch64;
use crate::architecture::{FrameRegisters, FullRegisters, UNKNOWN_FRAME_POINTER};
use crate::cache::RuleCache;
use crate::lost_caller::FindLostCaller;
use crate::rule::{CfaKind, Rule};
use crate::slow::RowEvaluator;
use crate::space::{CodeMapping, CodeMappings, find};
use crate::uncovered_frame::UncoveredFrame;
use crate::x86_64::X86_64;
use crate::{AddressSpace, FrameAddress, Module, Reason, Registers, SignalStack, StackMemory, WalkEnd};
use nyquist_object::{Avma, RelativeAddress};
use std::cell::Cell;

/// The most frames that a walk yields.
pub const MAX_FRAMES: usize = 16_384;

/// The most bytes of a function's beginning that are read to find its frame pointer.
const MAX_PROLOGUE_LEN: usize = 128;

/// Walks stacks. Each thread that walks stacks has its own unwinder. Shared data is only read.
#[derive(Debug)]
pub struct Unwinder {
    cache: RuleCache,
    evaluator: RowEvaluator,
    /// See [`Unwinder::doubtful_code`].
    doubtful: Cell<Option<Avma>>,
    /// See [`Unwinder::signal_stack`].
    signal_stack: Option<SignalStack>,
}

impl Default for Unwinder {
    fn default() -> Self {
        Self::new()
    }
}

/// Why a walk stops.
#[derive(Clone, Copy)]
enum WalkStop {
    Root,
    /// The return address is zero.
    NoCaller,
    Truncated(Reason),
}

impl From<Reason> for WalkStop {
    fn from(reason: Reason) -> Self {
        Self::Truncated(reason)
    }
}

impl Unwinder {
    /// An unwinder with an empty cache. Allocates all memory that its walks will need.
    pub fn new() -> Self {
        Self {
            cache: RuleCache::new(),
            evaluator: RowEvaluator::new(),
            doubtful: Cell::new(None),
            signal_stack: None,
        }
    }

    /// If the last walk has left a signal stack for a stack that it could not read: that signal stack. The walk has
    /// ended with [`Reason::OtherStack`], if it could not go on without that stack.
    pub fn signal_stack(&self) -> Option<SignalStack> {
        self.signal_stack
    }

    /// Code that is made at run time and at which the last walk may have gone wrong: its frame pointer was trusted
    /// because [the instructions](Module::from_instructions) are not known, or they may have changed since they were
    /// read. Compilers at run time may use the frame pointer for other values, and then it skips callers.
    pub fn doubtful_code(&self) -> Option<Avma> {
        self.doubtful.get()
    }

    /// Passes the addresses of the stack's frames to `frames`, innermost first, and returns whether the
    /// outermost frame was reached.
    ///
    /// The first one is the instruction pointer. A walk always ends, after at most [`MAX_FRAMES`] frames. It
    /// reads memory only through `memory`. It neither allocates nor locks, except when it first needs a part
    /// of a module whose tables are not compiled yet. [`Module::tables`] compiles them beforehand.
    pub fn walk<M: StackMemory>(
        &mut self,
        space: &AddressSpace,
        registers: &Registers,
        memory: &M,
        frames: &mut impl FnMut(FrameAddress),
    ) -> WalkEnd {
        match registers {
            Registers::X86_64(values) => {
                self.walk_from(space, FullRegisters::<X86_64>::all(*values), memory, frames)
            }
            Registers::X86_64Partial { values, known } => {
                let registers = FullRegisters::<X86_64>::some(*values, u64::from(*known));
                self.walk_from(space, registers, memory, frames)
            }
            Registers::Aarch64(values) => {
                self.walk_from(space, FullRegisters::<Aarch64>::all(*values), memory, frames)
            }
            Registers::Aarch64Partial { values, known } => {
                let registers = FullRegisters::<Aarch64>::some(*values, *known);
                self.walk_from(space, registers, memory, frames)
            }
        }
    }

    fn walk_from<A: FindLostCaller, M: StackMemory>(
        &mut self,
        space: &AddressSpace,
        base: FullRegisters<A>,
        memory: &M,
        frames: &mut impl FnMut(FrameAddress),
    ) -> WalkEnd {
        let mut frame = match FrameRegisters::of(&base, true) {
            Ok(frame) => frame,
            Err(reason) => return WalkEnd::Truncated(reason),
        };
        self.doubtful.set(None);
        self.signal_stack = None;
        let mut walk = WalkState {
            unwinder: self,
            mappings: space.mappings(),
            mapping: None,
            memory,
            address_bits: A::address_bits(space.address_mask(), space.code_end()),
            base: (base, true),
            steps_since_base: 0,
            begins: false,
            other_stack: false,
            between: None,
        };
        // One more frame can come without a step.
        for _ in usize::from(A::KEEPS_RETURN_ADDRESS)..MAX_FRAMES {
            let step = walk.step(frame);
            frames(walk.address_of(&frame));
            if A::KEEPS_RETURN_ADDRESS
                && let Some(caller) = walk.between.take()
            {
                frames(FrameAddress::InstructionPointer(caller));
            }
            match step {
                Ok(next) => frame = next,
                Err(stop) => return walk.end(stop, frame),
            }
        }
        WalkEnd::Truncated(Reason::TooManyFrames)
    }
}

/// The state of a walk.
struct WalkState<'a, A: FindLostCaller, M> {
    unwinder: &'a mut Unwinder,
    mappings: &'a CodeMappings,
    /// The mapping of the last frame's code, which is often the next frame's too.
    mapping: Option<&'a CodeMapping>,
    memory: &'a M,
    /// The bits of a return address that are the address.
    address_bits: u64,
    /// The last frame with all registers that can be known, and whether it was interrupted. Most steps only
    /// track three registers. If a row needs others, the walk is repeated from here with all registers.
    base: (FullRegisters<A>, bool),
    steps_since_base: usize,
    /// Whether the current frame is at the beginning of its function, which has made no call yet.
    begins: bool,
    /// Whether a signal handler had its own stack, and the stack of the interrupted code is not available.
    other_stack: bool,
    /// The function that called the current frame, if only its start is known, and not the address within it.
    between: Option<Avma>,
}

impl<'a, A: FindLostCaller, M: StackMemory> WalkState<'a, A, M> {
    /// The address of a frame whose caller was looked for.
    #[inline]
    fn address_of(&mut self, frame: &FrameRegisters<A>) -> FrameAddress {
        let begins = std::mem::take(&mut self.begins);
        if begins { FrameAddress::InstructionPointer(Avma(frame.ip)) } else { frame.address() }
    }

    /// Steps to the caller of a frame.
    #[inline]
    fn step(&mut self, frame: FrameRegisters<A>) -> Result<FrameRegisters<A>, WalkStop> {
        let rule = self.rule(&frame);
        let Ok(next) = A::apply(rule, &frame, self.memory, self.address_bits) else {
            return self.rare_step(rule, frame);
        };
        self.steps_since_base += 1;
        self.check(&frame, &next)?;
        Ok(next)
    }

    /// The same if a step needs more than a rule and a few registers. The frame is passed by value, because
    /// the hot loop keeps it in registers as long as nothing refers to it.
    #[cold]
    fn rare_step(&mut self, rule: Rule, frame: FrameRegisters<A>) -> Result<FrameRegisters<A>, WalkStop> {
        self.any_step(rule, &frame).map_err(|stop| match stop {
            WalkStop::Truncated(Reason::StackCopyEnded | Reason::MemoryUnreadable) if self.other_stack => {
                Reason::OtherStack.into()
            }
            stop => stop,
        })
    }

    fn any_step(&mut self, mut rule: Rule, frame: &FrameRegisters<A>) -> Result<FrameRegisters<A>, WalkStop> {
        if rule.kind() == CfaKind::Uncovered {
            let registers = (self.steps_since_base == 0).then_some(&self.base.0);
            rule = self.uncovered(frame, registers).guess()?;
            if rule == A::FRAME_RECORD {
                return self.step_by_frame_record(frame);
            }
        }
        let next = match rule.kind() {
            CfaKind::End => return Err(WalkStop::Root),
            CfaKind::Slow => self.step_with_all_registers()?,
            CfaKind::SignalFrame => {
                self.begins = true;
                let context = A::signal_context(frame, self.memory)?;
                let next = self.rebase(context, true)?;
                let left = self.left_stack(frame, &next);
                self.other_stack = left.is_some();
                self.unwinder.signal_stack = left.or(self.unwinder.signal_stack);
                next
            }
            _ => {
                self.steps_since_base += 1;
                match A::apply(rule, frame, self.memory, self.address_bits) {
                    Ok(next) => next,
                    Err(reason) => self.apply_with_found_register(rule, frame, reason)?,
                }
            }
        };
        self.check(frame, &next)?;
        Ok(next)
    }

    /// Steps by the frame record of a frame that no unwind information describes.
    fn step_by_frame_record(&mut self, frame: &FrameRegisters<A>) -> Result<FrameRegisters<A>, WalkStop> {
        let mut next = A::apply(A::FRAME_RECORD, frame, self.memory, self.address_bits)?;
        self.steps_since_base += 1;
        if let Some(sp) = self.uncovered(frame, None).saved_stack_pointer(&next) {
            next.sp = sp;
            self.base = (next.full_registers(), false);
            self.steps_since_base = 0;
        }
        let is_unknown = self.mapping_of(frame.lookup()).is_some_and(|mapping| mapping.module().is_none());
        if is_unknown && self.unwinder.doubtful_code().is_none() {
            self.unwinder.doubtful.set(Some(Avma(frame.lookup())));
        }
        self.check(frame, &next)?;
        Ok(next)
    }

    /// The thread's signal stack, if a signal was handled there, and the stack of the interrupted code is another
    /// one that is not available.
    fn left_stack(
        &self,
        handler: &FrameRegisters<A>,
        interrupted: &FrameRegisters<A>,
    ) -> Option<SignalStack> {
        let word = |index: u64| {
            self.memory.read_u64(Avma(handler.sp.wrapping_add(A::SIGNAL_STACK).wrapping_add(8 * index)))
        };
        // The second word contains the flags (`stack_t`).
        let (start, len) = (word(0)?, word(2)?);
        let stack = SignalStack {
            start: Avma(start),
            end: Avma(start.saturating_add(len)),
            pointer_at: Avma(handler.sp.wrapping_add(A::SIGNAL_POINTER)),
        };
        let [handler, interrupted] = [handler, interrupted].map(|frame| Avma(frame.sp));
        let leaves = stack.holds(handler) && !stack.holds(interrupted);
        (leaves && self.memory.read_u64(interrupted).is_none()).then_some(stack)
    }

    #[expect(clippy::inline_always, reason = "called once a frame: a call would be a twentieth of the walk")]
    #[inline(always)]
    fn rule(&mut self, frame: &FrameRegisters<A>) -> Rule {
        match self.module_at(frame.lookup()) {
            Some((module, address)) => {
                self.unwinder.cache.rule(module.number(), address.0, || module.rule(address))
            }
            None => Rule::UNCOVERED,
        }
    }

    #[inline]
    fn mapping_of(&mut self, lookup: u64) -> Option<&'a CodeMapping> {
        if !self.mapping.is_some_and(|mapping| mapping.contains(Avma(lookup))) {
            self.mapping = find(self.mappings, lookup);
        }
        self.mapping
    }

    /// Checks that the caller makes sense and is further up the stack.
    #[expect(clippy::inline_always, reason = "called once a frame: a call would be a twentieth of the walk")]
    #[inline(always)]
    fn check(&mut self, frame: &FrameRegisters<A>, next: &FrameRegisters<A>) -> Result<(), WalkStop> {
        if next.ip == 0 {
            return Err(WalkStop::NoCaller);
        }
        // The first frame, and frames that a signal interrupted, may be switching stacks.
        if next.sp <= frame.sp && !frame.interrupted && !next.interrupted {
            return Err(Reason::NotAdvancing.into());
        }
        if self.mapping_of(next.lookup()).is_none() && !next.interrupted {
            // The return from a signal handler can be the first instruction of its mapping.
            return if A::is_signal_frame(next, self.memory) { Ok(()) } else { Err(Reason::NotCode.into()) };
        }
        Ok(())
    }

    /// The meaning of the end of a walk at its last frame. The frame is passed by value, as to
    /// [`WalkState::rare_step`].
    #[cold]
    fn end(&self, stop: WalkStop, frame: FrameRegisters<A>) -> WalkEnd {
        match stop {
            WalkStop::NoCaller | WalkStop::Truncated(Reason::NotCode) if self.is_bottom(&frame) => {
                WalkEnd::Bottom
            }
            WalkStop::Root | WalkStop::NoCaller => WalkEnd::Root,
            WalkStop::Truncated(reason) => WalkEnd::Truncated(reason),
        }
    }

    /// Whether a frame is at the beginning of a function to which no call can return. The address was put at
    /// the bottom of a stack by hand, as by `makecontext`, which makes `__start_context` the caller of a
    /// coroutine's function.
    fn is_bottom(&self, frame: &FrameRegisters<A>) -> bool {
        let mapping = find(self.mappings, frame.ip).filter(|_| !frame.interrupted);
        let place = mapping.and_then(|mapping| mapping.module().zip(mapping.relative(frame.ip)));
        place.is_some_and(|(module, address)| module.begins_after_gap(address))
    }

    /// A frame that no unwind information describes. `registers` are all of an interrupted frame's registers.
    fn uncovered<'f>(
        &'f self,
        frame: &'f FrameRegisters<A>,
        registers: Option<&'f FullRegisters<A>>,
    ) -> UncoveredFrame<'f, A, M>
    where
        'a: 'f,
    {
        let (mappings, memory, address_bits) = (self.mappings, self.memory, self.address_bits);
        let doubtful = &self.unwinder.doubtful;
        UncoveredFrame { mappings, memory, address_bits, frame, registers, doubtful }
    }

    /// Retries a step that has failed. If the reason was an unknown register, its value is looked for.
    #[cold]
    fn apply_with_found_register(
        &mut self,
        rule: Rule,
        frame: &FrameRegisters<A>,
        reason: Reason,
    ) -> Result<FrameRegisters<A>, Reason> {
        if let Some(caller) = A::lost_caller(rule, frame, self.mappings, self.memory, self.address_bits) {
            self.between = caller.function;
            self.base = (caller.next.full_registers(), false);
            self.steps_since_base = 0;
            return Ok(caller.next);
        }
        let by_frame_pointer = matches!(rule.kind(), CfaKind::FramePointer | CfaKind::AtFramePointer);
        if !by_frame_pointer || frame.fp != UNKNOWN_FRAME_POINTER {
            return Err(reason);
        }
        let fp = self.find_frame_pointer(frame).ok_or(Reason::RegisterUnknown)?;
        let frame = FrameRegisters { fp, ..*frame };
        if !self.uncovered(&frame, None).leads_to_call(rule) {
            return Err(Reason::RegisterUnknown);
        }
        let next = A::apply(rule, &frame, self.memory, self.address_bits)?;
        self.base = (next.full_registers(), false);
        self.steps_since_base = 0;
        Ok(next)
    }

    /// The frame pointer of a function that is making a call, derived from the instructions at its beginning.
    /// They show its distance from the stack pointer.
    fn find_frame_pointer(&mut self, frame: &FrameRegisters<A>) -> Option<u64> {
        let lookup = frame.lookup();
        let (module, address) = self.module_at(lookup)?;
        let offset = module.offset_in_function(address)?;
        let mut code = [0; MAX_PROLOGUE_LEN];
        let room = code.get_mut(..MAX_PROLOGUE_LEN.min(offset as usize))?;
        let len = self.memory.read_code(Avma(lookup - u64::from(offset)), room);
        let distance = A::frame_pointer_above(code.get(..len)?)?;
        Some(frame.sp.wrapping_add(distance))
    }

    /// A step that needs all registers.
    #[cold]
    fn step_with_all_registers(&mut self) -> Result<FrameRegisters<A>, WalkStop> {
        let (mut registers, mut interrupted) = self.base;
        for _ in 0..=self.steps_since_base {
            (registers, interrupted) = self.full_step(&registers, interrupted)?;
        }
        self.rebase(registers, interrupted)
    }

    /// Makes a frame with known registers the base from which the walk is repeated.
    fn rebase(
        &mut self,
        registers: FullRegisters<A>,
        interrupted: bool,
    ) -> Result<FrameRegisters<A>, WalkStop> {
        self.base = (registers, interrupted);
        self.steps_since_base = 0;
        Ok(FrameRegisters::of(&registers, interrupted)?)
    }

    /// A step with all registers. Registers that it cannot restore are unknown in the caller. Also returns
    /// whether the caller was interrupted.
    fn full_step(
        &mut self,
        registers: &FullRegisters<A>,
        interrupted: bool,
    ) -> Result<(FullRegisters<A>, bool), WalkStop> {
        let frame = FrameRegisters::<A>::of(registers, interrupted)?;
        if let Some((module, address)) = self.module_at(frame.lookup())
            && let Some(undo) =
                module.pe().and_then(|functions| functions.undo(address.0, module.rule(address)))
        {
            let (caller, interrupted) = undo.step(registers, self.memory)?;
            return Ok((self.without_signature(caller), interrupted));
        }
        if let Some((module, address)) = self.module_at(frame.lookup())
            && module.rule(address).kind() != CfaKind::Uncovered
            && let Some(caller) = module.with_fde(address, |section, offset| {
                let (evaluator, address) = (&mut self.unwinder.evaluator, module.svma(address));
                evaluator.step(section, offset, address, registers, self.memory)
            })
        {
            let (caller, interrupted) = caller?.ok_or(WalkStop::Root)?;
            return Ok((self.without_signature(caller), interrupted));
        }
        let rule = match self.rule(&frame) {
            Rule::UNCOVERED => self.uncovered(&frame, Some(registers)).guess()?,
            rule => rule,
        };
        match rule.kind() {
            CfaKind::End => Err(WalkStop::Root),
            CfaKind::SignalFrame => Ok((A::signal_context(&frame, self.memory)?, true)),
            _ => Ok((A::apply(rule, &frame, self.memory, self.address_bits)?.full_registers(), false)),
        }
    }

    /// Removes the signature from the instruction pointer of registers, which may have been read from memory
    /// with a signature.
    fn without_signature(&self, mut registers: FullRegisters<A>) -> FullRegisters<A> {
        let ip = registers.get(A::INSTRUCTION_POINTER).map(|ip| ip & self.address_bits);
        registers.set(A::INSTRUCTION_POINTER, ip);
        registers.with_plain_frame_pointer()
    }

    fn module_at(&mut self, lookup: u64) -> Option<(&'a Module, RelativeAddress)> {
        let mapping = self.mapping_of(lookup)?;
        mapping.module().zip(mapping.relative(lookup))
    }
}
