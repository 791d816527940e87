//! Finds the rule of a frame that no unwind information describes: by its instructions, by the words on its
//! stack, or by the frame pointer.

use crate::architecture::{Architecture, FrameRegisters, FullRegisters};
use crate::call_instruction::CallInstruction;
use crate::code::{CodeAround, UncoveredExtent};
use crate::return_address::{StackWord, judge, may_return_to, returns_behind_call};
use crate::rule::{CfaKind, Rule, SavedFramePointer};
use crate::space::{CodeMappings, find};
use crate::{Module, Reason, StackMemory};
use nyquist_object::{Avma, RelativeAddress};
use std::cell::Cell;

/// The most bytes of a stack that are searched for the return address of an interrupted function.
const MAX_SEARCHED: u64 = 1 << 14;

/// The largest distance from a function's start, where a call leads, to one of its instructions.
const MAX_FUNCTION_BYTES: u64 = 1 << 18;

/// The most bytes that the arguments of a Java method take, of which it has at most 255.
const MAX_ARGUMENT_BYTES: u64 = 256 * 8;

/// A frame that no unwind information describes.
pub(crate) struct UncoveredFrame<'a, A: Architecture, M> {
    pub(crate) mappings: &'a CodeMappings,
    pub(crate) memory: &'a M,
    /// The bits of a return address that are the address.
    pub(crate) address_bits: u64,
    pub(crate) frame: &'a FrameRegisters<A>,
    /// All of its registers, if they are known.
    pub(crate) registers: Option<&'a FullRegisters<A>>,
    /// An address in code whose instructions may have changed since they were read.
    pub(crate) doubtful: &'a Cell<Option<Avma>>,
}

impl<'a, A: Architecture, M: StackMemory> UncoveredFrame<'a, A, M> {
    /// The frame's rule. The place that it leads to has been checked, and is plausible.
    #[cold]
    pub(crate) fn guess(&self) -> Result<Rule, Reason> {
        let code = self.code();
        if self.is_signal_frame(code.as_ref()) {
            return Ok(Rule::SIGNAL_FRAME);
        }
        if let Some(rule) = self.rule_of_made_code(code.as_ref()) {
            return Ok(rule);
        }
        let leads = |rule: &Rule| self.leads_to_call(*rule);
        let known = self.rule_of_next_instructions(code.as_ref());
        let alone = || code.as_ref().and_then(|code| self.rule_alone(code));
        // If the gap's own instructions are enough, no more code is read for it.
        if code.as_ref().is_some_and(|code| code.extent == UncoveredExtent::LoneGap)
            && let Some(rule) = alone().filter(leads).or_else(|| known.filter(leads))
        {
            return Ok(rule);
        }
        let inferred = self.inferred_rule();
        if inferred == Rule::END {
            return Ok(inferred);
        }
        let rule = Some(inferred).filter(leads).or_else(|| known.filter(leads));
        if let Some(rule) = rule.or_else(|| alone().filter(leads)) {
            return Ok(rule);
        }
        if self.apply(inferred).err() == Some(Reason::StackCopyEnded) {
            return Err(Reason::StackCopyEnded);
        }
        let followed = code.as_ref().and_then(|code| self.followed_rule(code));
        match followed.filter(leads) {
            Some(rule) => Ok(rule),
            None => self.guess_by_convention(code.as_ref()),
        }
    }

    fn is_signal_frame(&self, code: Option<&CodeAround<'_>>) -> bool {
        match code {
            Some(CodeAround { code, at, .. }) => A::is_signal_return(code, *at),
            None => !self.frame.interrupted && A::is_signal_frame(self.frame, self.memory),
        }
    }

    /// The rule by the next instructions of the thread.
    fn rule_of_next_instructions(&self, code: Option<&CodeAround<'_>>) -> Option<Rule> {
        let frame = self.frame;
        match code {
            // If a caller's return address is not in memory, the register that holds it is not known.
            Some(code) if frame.interrupted || !A::KEEPS_RETURN_ADDRESS => A::rule_at(&code.code, code.at),
            // A call to an address without code has only stored its return address.
            None if frame.interrupted && find(self.mappings, frame.ip).is_none() => Some(A::CALLED),
            _ => None,
        }
    }

    /// The rule for code that is made at run time, by the instructions of its function.
    fn rule_of_made_code(&self, code: Option<&CodeAround<'_>>) -> Option<Rule> {
        let (module, address) = self.module_at(self.frame.ip)?;
        let rule = module.rule_of_made_code::<A>(code?, address)?;
        let next = self.apply(rule).ok()?;
        if returns_behind_call::<A>(self.mappings, next.ip) || self.restores_frame(&next) {
            return Some(rule);
        }
        self.doubtful
            .set(may_return_to::<A>(self.mappings, next.ip).then_some(Avma(next.ip.wrapping_sub(1))));
        None
    }

    /// The stack pointer of the caller, of a frame that was left by its frame record. HotSpot's interpreter keeps it
    /// below the frame record, because a compiled caller's stack pointer is beyond the arguments
    /// (`frame::interpreter_frame_sender_sp_offset`). It counts if the caller's instructions lead behind a call from
    /// there, and do not from the end of the frame record.
    pub(crate) fn saved_stack_pointer(&self, next: &FrameRegisters<A>) -> Option<u64> {
        let saved = self.memory.read_u64(Avma(self.frame.fp.wrapping_sub(8)))?;
        let arguments = saved.checked_sub(next.sp)?;
        let is_plausible = (1..=MAX_ARGUMENT_BYTES).contains(&arguments) && saved.is_multiple_of(8);
        let leads_behind_call = |sp| {
            let frame = FrameRegisters { sp, ..*next };
            let (caller, doubtful) =
                (UncoveredFrame { frame: &frame, registers: None, ..*self }, self.doubtful.get());
            let rule = caller.rule_of_made_code(caller.code().as_ref());
            self.doubtful.set(doubtful);
            rule.is_some()
        };
        (is_plausible && !leads_behind_call(next.sp) && leads_behind_call(saved)).then_some(saved)
    }

    /// Whether a caller has its frame pointer back, and keeps one. Interpreters put return addresses on the stack that
    /// are behind no call.
    fn restores_frame(&self, next: &FrameRegisters<A>) -> bool {
        let caller = UncoveredFrame { frame: next, registers: None, ..*self };
        let is_restored = next.fp != self.frame.fp && may_return_to::<A>(self.mappings, next.ip);
        is_restored && caller.has_frame_record()
    }

    /// The rule for code in a small gap, by following all code from its beginning.
    fn rule_alone(&self, gap: &CodeAround<'_>) -> Option<Rule> {
        // A call can be the last instruction of its function.
        let lookup = gap.at.checked_sub(usize::from(!self.frame.interrupted))?;
        let rule =
            if gap.extent == UncoveredExtent::Any { None } else { A::followed_rule_at(&gap.code, lookup) };
        rule.map(|rule| self.resolve(rule))
    }

    /// The rule by the instructions of all functions of the module.
    fn inferred_rule(&self) -> Rule {
        let place = self.module_at(self.frame.lookup());
        self.resolve(place.map_or(Rule::UNCOVERED, |(module, address)| module.inferred_rule(address)))
    }

    /// The rule of an interrupted function by its own instructions, from its symbol on.
    fn followed_rule(&self, code: &CodeAround<'_>) -> Option<Rule> {
        let is_known = self.frame.interrupted && code.extent == UncoveredExtent::Any;
        let (module, address) = self.module_at(self.frame.ip).filter(|_| is_known)?;
        Some(self.resolve(module.followed_rule(code, address)))
    }

    /// A rule by any register as a rule by the stack pointer, for this frame alone.
    fn resolve(&self, rule: Rule) -> Rule {
        if rule.kind() != CfaKind::Register {
            return rule;
        }
        let register = usize::try_from(rule.high()).ok().filter(|_| self.frame.interrupted);
        let value = self.registers.and_then(|registers| registers.get(register?));
        let cfa = value.map(|value| value.wrapping_add_signed(rule.low()));
        let distance = cfa.and_then(|cfa| i32::try_from(cfa.checked_sub(self.frame.sp)?).ok());
        distance.map_or(Rule::UNCOVERED, |distance| rule.with_cfa_above_sp(distance))
    }

    /// The rule of a frame whose instructions do not show it, by the common conventions of compilers.
    fn guess_by_convention(&self, code: Option<&CodeAround<'_>>) -> Result<Rule, Reason> {
        let frame = self.frame;
        if frame.interrupted {
            if self.is_leaf_by_convention() && self.leads_to_call(A::CALLED) {
                return Ok(A::CALLED);
            }
        } else if frame.fp == 0 {
            // A frame pointer of zero marks the outermost frame (System V ABI for AMD64, section 3.4.1).
            return Ok(Rule::END);
        }
        // Code that is made while the program runs has a frame pointer, unless it is being entered or left.
        let is_of_file = self.module_at(frame.ip).is_some_and(|(module, _)| !module.may_change());
        if frame.interrupted && !A::KEEPS_RETURN_ADDRESS && code.is_some() && is_of_file {
            return self.searched_rule().ok_or(Reason::NoUnwindInfo);
        }
        if self.has_frame_record() { Ok(A::FRAME_RECORD) } else { Err(Reason::NoUnwindInfo) }
    }

    fn has_frame_record(&self) -> bool {
        let frame = self.frame;
        frame.fp >= frame.sp && frame.fp.is_multiple_of(8) && self.leads_to_call(A::FRAME_RECORD)
    }

    /// The rule of an interrupted function by the words on its stack. A function that has not set up the frame
    /// pointer still has its caller's, and the frame record there would skip the caller. So the return address
    /// that is next on the stack counts. It may be left over from an earlier call, but then that call hardly
    /// leads to this function. Where a call leads that takes its target from a register or memory is not known,
    /// so between it and the record there must not be a call that leads here.
    fn searched_rule(&self) -> Option<Rule> {
        let frame = self.frame;
        let record = self.has_frame_record().then(|| frame.fp.wrapping_add(8));
        let last = frame.sp.saturating_add(MAX_SEARCHED).min(record.map_or(u64::MAX, |record| record - 1));
        let (mut doubtful, mut is_single) = (None, true);
        for place in (frame.sp..=last).step_by(8) {
            let is_top = place == frame.sp;
            match judge::<A>(self.mappings, self.memory.read_u64(Avma(place))?) {
                StackWord::AfterCall(call) if self.may_have_called(place, call) => {
                    let leads_here = matches!(call, CallInstruction::Direct(_));
                    if record.is_some() && !leads_here {
                        is_single = doubtful.is_none();
                        doubtful.get_or_insert(place);
                        continue;
                    }
                    let is_sure = doubtful.is_none_or(|other| is_single && self.is_left_over(other, place));
                    return if is_sure { self.returns_at(place) } else { None };
                }
                // A function that was called and has jumped here looks the same.
                StackWord::AfterCall(_) if is_top || record.is_none() => return None,
                StackWord::InUnknownCode if is_top => return self.returns_at(place),
                StackWord::AfterCall(_) | StackWord::InUnknownCode | StackWord::Other => {}
            }
        }
        doubtful.map_or_else(|| record.map(|_| A::FRAME_RECORD), |place| self.returns_at(place))
    }

    /// Whether a return address is left over from an earlier call: its function would return to behind a call, at
    /// `next` on the stack, that leads to another module.
    fn is_left_over(&self, place: u64, next: u64) -> bool {
        let returned = || {
            let word = self.memory.read_u64(Avma(place))?;
            let (module, address) = self.module_at(word.wrapping_sub(1))?;
            let is_own = self.module_at(self.frame.ip).is_none_or(|(own, _)| own.number() == module.number());
            let rule = Some(module.rule(address)).filter(|rule| rule.kind() == CfaKind::StackPointer)?;
            let cfa = place.wrapping_add(8).wrapping_add_signed(rule.operand());
            Some(!is_own && cfa.wrapping_sub(8) == next)
        };
        returned().unwrap_or(false) && !self.leads_to_stub(next)
    }

    /// Whether the direct call before the return address at a place on the stack leads to a stub.
    fn leads_to_stub(&self, place: u64) -> bool {
        let target = || {
            let word = self.memory.read_u64(Avma(place))?;
            let StackWord::AfterCall(CallInstruction::Direct(distance)) = judge::<A>(self.mappings, word)
            else {
                return None;
            };
            self.module_at(word.wrapping_add_signed(distance.into()))
        };
        target().is_none_or(|(module, address)| module.is_linkage(address))
    }

    /// The rule of a function whose return address is there, and which has not changed the frame pointer.
    fn returns_at(&self, place: u64) -> Option<Rule> {
        let distance = place.checked_sub(self.frame.sp)?.checked_add(8)?;
        Rule::new(CfaKind::StackPointer, i32::try_from(distance).ok()?, SavedFramePointer::InRegister, 0)
    }

    /// Whether the call before a return address, which is at a place on the stack, may have led to the
    /// interrupted function.
    fn may_have_called(&self, place: u64, call: CallInstruction) -> bool {
        let CallInstruction::Direct(distance) = call else { return true };
        let Some(word) = self.memory.read_u64(Avma(place)) else { return false };
        let target = word.wrapping_add_signed(distance.into());
        let own = self.module_at(self.frame.ip).map(|(module, _)| module.number());
        let is_near = self.frame.ip.checked_sub(target).is_some_and(|into| into < MAX_FUNCTION_BYTES);
        self.module_at(target).is_some_and(|(module, address)| {
            // A stub mostly leads to another module.
            let is_stub = module.is_linkage(address) && own != Some(module.number());
            is_stub || (is_near && module.rule(address) == Rule::UNCOVERED)
        })
    }

    /// Whether undescribed code neither calls nor moves the stack pointer, as Windows requires ("x64
    /// exception handling", "Unwind data for exception handling"; "ARM64 exception handling", ".pdata
    /// records").
    fn is_leaf_by_convention(&self) -> bool {
        let mapping = find(self.mappings, self.frame.ip);
        mapping.and_then(|mapping| mapping.module()).is_some_and(|module| module.pe().is_some())
    }

    /// Whether the rule leads to a return address after a call, or to the end of the stack.
    pub(crate) fn leads_to_call(&self, rule: Rule) -> bool {
        self.apply(rule).is_ok_and(|next| next.ip == 0 || may_return_to::<A>(self.mappings, next.ip))
    }

    fn apply(&self, rule: Rule) -> Result<FrameRegisters<A>, Reason> {
        A::apply(rule, self.frame, self.memory, self.address_bits)
    }

    /// The bytes of uncovered code around the frame's address.
    fn code(&self) -> Option<CodeAround<'a>> {
        let (module, address) = self.module_at(self.frame.ip)?;
        module.uncovered_around(address.0)
    }

    fn module_at(&self, address: u64) -> Option<(&'a Module, RelativeAddress)> {
        let mapping = find(self.mappings, address)?;
        mapping.module().zip(mapping.relative(address))
    }
}
