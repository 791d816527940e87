//! Converts rows of call frame information to rules.

use super::registers::{SP, X29};
use crate::cfi::{CfiRow, ExpressionForm, RegisterRule};
use crate::rule::{CfaKind, Rule};

/// The rule that is equivalent to the row.
pub(super) fn rule(row: &CfiRow<'_>, is_signal: bool) -> Rule {
    if matches!(row.return_address, RegisterRule::Undefined) {
        return Rule::END;
    }
    if is_signal && is_kernel_signal_frame(row) {
        return Rule::SIGNAL_FRAME;
    }
    if is_signal || row.stack_pointer_is_saved {
        return Rule::SLOW;
    }
    plain_rule(row).unwrap_or(Rule::SLOW)
}

fn plain_rule(row: &CfiRow<'_>) -> Option<Rule> {
    let frame_pointer = match row.frame_pointer {
        RegisterRule::SameValue | RegisterRule::Undefined => None,
        RegisterRule::Offset(offset) => Some(offset),
        RegisterRule::Expression(_) | RegisterRule::Other => return None,
    };
    let return_address = match row.return_address {
        RegisterRule::SameValue => None,
        RegisterRule::Offset(offset) => Some(offset),
        RegisterRule::Undefined | RegisterRule::Expression(_) | RegisterRule::Other => return None,
    };
    let (register, offset) = match row.cfa.expression {
        None => (row.cfa.register, row.cfa.offset),
        Some(expression) => match ExpressionForm::of(expression)? {
            ExpressionForm::Register { register, offset } => (register.into(), offset),
            ExpressionForm::Memory { .. } | ExpressionForm::LinkageStub { .. } => return None,
        },
    };
    let kind = match register as usize {
        SP => CfaKind::StackPointer,
        X29 => CfaKind::FramePointer,
        _ => return None,
    };
    // Saved registers must be in the frame. But the C library's symbol resolver does not count what the
    // linker's stub has pushed before (`sysdeps/aarch64/dl-trampoline.S`). So its frame seems to end below
    // its return address.
    let beyond = match return_address.filter(|place| *place >= 0 && kind == CfaKind::StackPointer) {
        Some(place) => (place.checked_add(8)? as u64).checked_next_multiple_of(16)? as i64,
        None => 0,
    };
    let from_end = |place: Option<i64>| place.map(|place| place.saturating_sub(beyond));
    let operand = i32::try_from(offset.checked_add(beyond)?).ok()?;
    Rule::with_saved(kind, operand, from_end(frame_pointer), from_end(return_address))
}

/// Whether a row is that of the kernel's return from a signal handler, which kernels before 5.8 had
/// (`arch/arm64/kernel/vdso/sigreturn.S`). The row skips the function that was interrupted.
fn is_kernel_signal_frame(row: &CfiRow<'_>) -> bool {
    row.cfa.expression.is_none() && row.cfa.register as usize == X29 && row.cfa.offset == 0
}
