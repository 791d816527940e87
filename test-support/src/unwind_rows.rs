//! gimli's evaluation of a row of call frame information, as an oracle for the compiled tables.

use gimli::{CfaRule, Expression, Operation, RegisterRule, UnwindExpression, UnwindSection, UnwindTableRow};
use nyquist_object::Architecture;
use nyquist_unwind::rule::{CfaKind, Rule, SavedFramePointer};

/// gimli's reader of a section.
pub type Slice<'a> = gimli::EndianSlice<'a, gimli::LittleEndian>;
const RBP: gimli::Register = gimli::Register(6);
const RSP: gimli::Register = gimli::Register(7);
const RIP: gimli::Register = gimli::Register(16);

/// The vendor whose instructions are in the files of an architecture.
pub fn vendor(architecture: Architecture) -> gimli::Vendor {
    if architecture == Architecture::Aarch64 { gimli::Vendor::AArch64 } else { gimli::Vendor::Default }
}

/// Whether the rule is equivalent to the row. A slow rule is correct if no other rule can express the row.
pub fn agrees<'a, U: UnwindSection<Slice<'a>>>(
    architecture: Architecture,
    rule: Rule,
    row: &UnwindTableRow<usize>,
    section: &U,
    fde: &gimli::FrameDescriptionEntry<Slice<'a>>,
) -> bool {
    let is_signal = fde.is_signal_trampoline();
    match architecture {
        // glibc's rawmemchr returns to x15.
        Architecture::Aarch64 if fde.cie().return_address_register() != gimli::AArch64::X30 => {
            rule.kind() == CfaKind::Slow
        }
        Architecture::Aarch64 => agrees_on_aarch64(rule, row, is_signal),
        _ => agrees_on_x86_64(rule, row, section, is_signal),
    }
}

fn agrees_on_aarch64(rule: Rule, row: &UnwindTableRow<usize>, is_signal: bool) -> bool {
    const FP: gimli::Register = gimli::AArch64::X29;
    const LR: gimli::Register = gimli::AArch64::X30;
    const SP: gimli::Register = gimli::AArch64::SP;
    let offset = |register| match row.register(register) {
        None | Some(RegisterRule::SameValue) => Some(None),
        Some(RegisterRule::Undefined) if register == FP => Some(None),
        Some(RegisterRule::Offset(offset)) => Some(Some(offset)),
        _ => None,
    };
    let (cfa, saved) = (row.cfa(), (offset(FP), offset(LR)));
    let at = |requested| matches!(cfa, CfaRule::RegisterAndOffset { register, .. } if *register == requested);
    let rules = rule.saved_registers();
    let is_saved = saved == (Some(rules.frame_pointer), Some(rules.return_address));
    let is_offset = matches!(cfa, CfaRule::RegisterAndOffset { offset, .. } if *offset == rule.operand());
    let is_plain = row.register(SP).is_none() && !is_signal;
    match rule.kind() {
        CfaKind::End => row.register(LR) == Some(RegisterRule::Undefined),
        CfaKind::SignalFrame => is_signal && at(FP),
        CfaKind::StackPointer => is_plain && at(SP) && is_offset && is_saved,
        CfaKind::FramePointer => is_plain && at(FP) && is_offset && is_saved,
        CfaKind::Slow => !(is_plain && (at(SP) || at(FP)) && saved.0.is_some() && saved.1.is_some()),
        _ => false,
    }
}

fn agrees_on_x86_64<'a, U: UnwindSection<Slice<'a>>>(
    rule: Rule,
    row: &UnwindTableRow<usize>,
    section: &U,
    is_signal: bool,
) -> bool {
    let return_address = row.register(RIP);
    match rule.kind() {
        CfaKind::Uncovered => false,
        CfaKind::End => matches!(return_address, None | Some(RegisterRule::Undefined)),
        CfaKind::SignalFrame => is_signal && is_signal_frame(row, section),
        CfaKind::Slow => is_signal || !is_simple(row, section),
        _ => {
            return_address == Some(RegisterRule::Offset(-8))
                && row.register(RSP).is_none()
                && cfa_agrees(rule, row.cfa(), section)
                && frame_pointer_agrees(rule, row.register(RBP).as_ref(), section)
        }
    }
}

fn operations<'a, U: UnwindSection<Slice<'a>>>(
    expression: &UnwindExpression<usize>,
    section: &U,
) -> Vec<Operation<Slice<'a>>> {
    let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
    let expression: Expression<Slice<'a>> = expression.get(section).unwrap();
    let mut operations = expression.operations(encoding);
    let mut all = Vec::new();
    while let Some(operation) = operations.next().unwrap() {
        all.push(operation);
    }
    all
}

fn register_offset(operation: &Operation<Slice<'_>>) -> Option<(gimli::Register, i64)> {
    match operation {
        Operation::RegisterOffset { register, offset, .. } => Some((*register, *offset)),
        _ => None,
    }
}

fn cfa_agrees<'a, U: UnwindSection<Slice<'a>>>(rule: Rule, cfa: &CfaRule<usize>, section: &U) -> bool {
    match cfa {
        CfaRule::RegisterAndOffset { register, offset } => {
            let expected = match rule.kind() {
                CfaKind::StackPointer => RSP,
                CfaKind::FramePointer => RBP,
                _ => return false,
            };
            *register == expected && *offset == rule.operand()
        }
        CfaRule::Expression(expression) => {
            let operations = operations(expression, section);
            let first = operations.first().and_then(register_offset);
            match rule.kind() {
                CfaKind::StackPointer => operations.len() == 1 && first == Some((RSP, rule.operand())),
                CfaKind::FramePointer => operations.len() == 1 && first == Some((RBP, rule.operand())),
                CfaKind::AtStackPointer => {
                    first == Some((RSP, rule.low())) && deref_and_add(&operations, rule.high())
                }
                CfaKind::AtFramePointer => {
                    first == Some((RBP, rule.low())) && deref_and_add(&operations, rule.high())
                }
                CfaKind::LinkageStub => {
                    let threshold = Operation::UnsignedConstant { value: rule.high() as u64 };
                    operations.len() == 9
                        && first == Some((RSP, rule.low()))
                        && register_offset(&operations[1]) == Some((RIP, 0))
                        && operations[4] == threshold
                        && operations[5] == Operation::Ge
                }
                _ => false,
            }
        }
    }
}

fn deref_and_add(operations: &[Operation<Slice<'_>>], addend: i64) -> bool {
    let is_deref = |operation: &Operation<Slice<'_>>| matches!(operation, Operation::Deref { size: 8, .. });
    match operations {
        [_, deref] => is_deref(deref) && addend == 0,
        [_, deref, Operation::PlusConstant { value }] => is_deref(deref) && *value as i64 == addend,
        _ => false,
    }
}

fn frame_pointer_agrees<'a, U: UnwindSection<Slice<'a>>>(
    rule: Rule,
    saved: Option<&RegisterRule<usize>>,
    section: &U,
) -> bool {
    match saved {
        None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => {
            rule.saved_frame_pointer() == SavedFramePointer::InRegister
        }
        Some(RegisterRule::Offset(offset)) => {
            rule.saved_frame_pointer() == SavedFramePointer::FromCfa && rule.saved_offset() == *offset
        }
        Some(RegisterRule::Expression(expression)) => {
            let operations = operations(expression, section);
            rule.saved_frame_pointer() == SavedFramePointer::FromFramePointer
                && operations.len() == 1
                && register_offset(&operations[0]) == Some((RBP, rule.saved_offset()))
        }
        _ => false,
    }
}

fn is_signal_frame<'a, U: UnwindSection<Slice<'a>>>(row: &UnwindTableRow<usize>, section: &U) -> bool {
    let at = |register, offset| match row.register(register) {
        Some(RegisterRule::Expression(expression)) => {
            operations(&expression, section).first().and_then(register_offset) == Some((RSP, offset))
        }
        _ => false,
    };
    at(RIP, 0xa8) && at(RBP, 0x78) && at(gimli::Register(0), 0x90) && at(gimli::Register(15), 0x60)
}

/// Whether a rule can express how the stack pointer, the frame pointer and the return address are found.
fn is_simple<'a, U: UnwindSection<Slice<'a>>>(row: &UnwindTableRow<usize>, section: &U) -> bool {
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            [RSP, RBP].contains(register) && i32::try_from(*offset).is_ok()
        }
        CfaRule::Expression(expression) => {
            let operations = operations(expression, section);
            let on_stack =
                operations.first().and_then(register_offset).is_some_and(|r| [RSP, RBP].contains(&r.0));
            on_stack && operations.len() <= 3
        }
    };
    let frame_pointer = matches!(
        row.register(RBP),
        None | Some(RegisterRule::Undefined | RegisterRule::SameValue | RegisterRule::Offset(_))
    );
    let return_address = row.register(RIP) == Some(RegisterRule::Offset(-8));
    cfa && frame_pointer && return_address && row.register(RSP).is_none()
}
