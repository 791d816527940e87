//! Converts rows of call frame information to rules.

use super::registers::{RBP, RIP, RSP, SIGNAL_CONTEXT};
use crate::cfi::{CfiRow, ExpressionForm, RegisterRule};
use crate::rule::{CfaKind, Rule, SavedFramePointer};

/// The rule that is equivalent to the row.
pub(super) fn rule(row: &CfiRow<'_>, is_signal: bool) -> Rule {
    if matches!(row.return_address, RegisterRule::Undefined) {
        return Rule::END;
    }
    if is_signal && is_kernel_signal_frame(row) {
        return Rule::SIGNAL_FRAME;
    }
    if is_signal || row.stack_pointer_is_saved || !matches!(row.return_address, RegisterRule::Offset(-8)) {
        return Rule::SLOW;
    }
    plain_rule(row).unwrap_or(Rule::SLOW)
}

fn plain_rule(row: &CfiRow<'_>) -> Option<Rule> {
    let (saved, offset) = match row.frame_pointer {
        RegisterRule::SameValue | RegisterRule::Undefined => (SavedFramePointer::InRegister, 0),
        RegisterRule::Offset(offset) => (SavedFramePointer::FromCfa, offset),
        RegisterRule::Expression(expression) => match ExpressionForm::of(expression)? {
            ExpressionForm::Register { register: 6, offset } => (SavedFramePointer::FromFramePointer, offset),
            _ => return None,
        },
        RegisterRule::Other => return None,
    };
    let (kind, operand) = cfa_rule(row)?;
    Rule::new(kind, operand, saved, offset)
}

fn cfa_rule(row: &CfiRow<'_>) -> Option<(CfaKind, i32)> {
    let kind = |register: u64, sp, fp| match register as usize {
        RSP => Some(sp),
        RBP => Some(fp),
        _ => None,
    };
    match row.cfa.expression {
        None => {
            let kind = kind(row.cfa.register, CfaKind::StackPointer, CfaKind::FramePointer)?;
            Some((kind, i32::try_from(row.cfa.offset).ok()?))
        }
        Some(expression) => match ExpressionForm::of(expression)? {
            ExpressionForm::Register { register, offset } => {
                let kind = kind(register.into(), CfaKind::StackPointer, CfaKind::FramePointer)?;
                Some((kind, i32::try_from(offset).ok()?))
            }
            ExpressionForm::Memory { register, offset, addend } => {
                let kind = kind(register.into(), CfaKind::AtStackPointer, CfaKind::AtFramePointer)?;
                Some((kind, Rule::halves(offset, addend)?))
            }
            ExpressionForm::LinkageStub { offset, pushed_from } => {
                Some((CfaKind::LinkageStub, Rule::halves(offset, pushed_from)?))
            }
        },
    }
}

/// Whether registers are saved where the kernel saves them: in the `ucontext` at the stack pointer
/// (`arch/x86/include/uapi/asm/sigcontext.h`).
fn is_kernel_signal_frame(row: &CfiRow<'_>) -> bool {
    let at = |saved: RegisterRule<'_>, register: usize| match saved {
        RegisterRule::Expression(expression) => {
            let expected = SIGNAL_CONTEXT[register] as i64;
            ExpressionForm::of(expression)
                == Some(ExpressionForm::Register { register: RSP as u8, offset: expected })
        }
        _ => false,
    };
    let Some(cfa) = row.cfa.expression else { return false };
    let offset = SIGNAL_CONTEXT[RSP] as i64;
    ExpressionForm::of(cfa) == Some(ExpressionForm::Memory { register: RSP as u8, offset, addend: 0 })
        && at(row.return_address, RIP)
        && at(row.frame_pointer, RBP)
}
