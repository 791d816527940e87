//! Steps from a frame to its caller by the frame's rule.

use super::registers::{REGISTERS, SIGNAL_CONTEXT, X86_64};
use crate::architecture::{FrameRegisters, FullRegisters};
use crate::rule::{CfaKind, Rule, SavedFramePointer};
use crate::{Reason, StackMemory};

/// The caller of a frame whose rule only needs three registers.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a call a frame is a tenth of the cost of walking")]
pub(super) fn apply(
    rule: Rule,
    frame: &FrameRegisters<X86_64>,
    memory: &impl StackMemory,
) -> Result<FrameRegisters<X86_64>, Reason> {
    let cfa = match rule.kind() {
        CfaKind::StackPointer => frame.sp.wrapping_add_signed(rule.operand()),
        CfaKind::FramePointer => frame.fp.wrapping_add_signed(rule.operand()),
        CfaKind::AtStackPointer => word(frame.sp, rule, frame, memory)?,
        CfaKind::AtFramePointer => word(frame.fp, rule, frame, memory)?,
        CfaKind::LinkageStub => {
            let pushed = if (frame.ip & 15) as i64 >= rule.high() { 8 } else { 0 };
            frame.sp.wrapping_add_signed(rule.low() + pushed)
        }
        CfaKind::Uncovered
        | CfaKind::End
        | CfaKind::SignalFrame
        | CfaKind::Slow
        | CfaKind::FrameRecord
        | CfaKind::Register => return Err(Reason::NoUnwindInfo),
    };
    let ip = frame.read(cfa.wrapping_sub(8), memory)?;
    let fp = match rule.saved_frame_pointer() {
        SavedFramePointer::InRegister => frame.fp,
        SavedFramePointer::FromCfa => {
            let saved = cfa.wrapping_add_signed(rule.saved_offset());
            // In an epilogue the rule can be stale: registers that are saved below the stack pointer have
            // already been restored.
            if saved < frame.sp { frame.fp } else { frame.read_frame_pointer(saved, memory)? }
        }
        SavedFramePointer::FromFramePointer => {
            frame.read_frame_pointer(frame.fp.wrapping_add_signed(rule.saved_offset()), memory)?
        }
    };
    Ok(FrameRegisters { ip, sp: cfa, fp, link: (), interrupted: false })
}

/// The CFA of rules that read it from memory.
fn word(
    base: u64,
    rule: Rule,
    frame: &FrameRegisters<X86_64>,
    memory: &impl StackMemory,
) -> Result<u64, Reason> {
    let word = frame.read(base.wrapping_add_signed(rule.low()), memory)?;
    Ok(word.wrapping_add_signed(rule.high()))
}

/// The registers that the kernel saved when it delivered a signal.
pub(super) fn signal_context(
    frame: &FrameRegisters<X86_64>,
    memory: &impl StackMemory,
) -> Result<FullRegisters<X86_64>, Reason> {
    let mut values = [0; REGISTERS];
    for (value, offset) in values.iter_mut().zip(SIGNAL_CONTEXT) {
        *value = frame.read(frame.sp.wrapping_add(offset), memory)?;
    }
    Ok(FullRegisters::all(values))
}
