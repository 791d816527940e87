//! The few DWARF expressions that occur in call frame information, recognised by their form. All are of
//! x86_64.

use super::reader::SectionReader;

/// An expression of a known form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpressionForm {
    /// A register's value + offset.
    Register { register: u8, offset: i64 },
    /// The word at (a register's value + offset), + addend.
    Memory { register: u8, offset: i64, addend: i64 },
    /// As [`CfaKind::LinkageStub`](crate::rule::CfaKind::LinkageStub): stack pointer + offset, and eight more where
    /// the low four bits of the instruction pointer are at least `pushed_from`.
    LinkageStub { offset: i64, pushed_from: i64 },
}

const DW_OP_DEREF: u8 = 0x06;
const DW_OP_PLUS: u8 = 0x22;
const DW_OP_AND: u8 = 0x1a;
const DW_OP_SHL: u8 = 0x24;
const DW_OP_GE: u8 = 0x2a;
const DW_OP_PLUS_UCONST: u8 = 0x23;
const DW_OP_LIT0: u8 = 0x30;
const DW_OP_LIT3: u8 = 0x33;
const DW_OP_LIT15: u8 = 0x3f;
const DW_OP_LIT31: u8 = 0x4f;
const DW_OP_BREG0: u8 = 0x70;
const DW_OP_BREG31: u8 = 0x8f;
const DW_OP_BREG7: u8 = 0x77;
const DW_OP_BREG16: u8 = 0x80;

impl ExpressionForm {
    /// The form of the expression. `None` if it has an unknown form.
    pub(crate) fn of(expression: &[u8]) -> Option<Self> {
        let mut reader = SectionReader::new(expression, 0, expression.len())?;
        let register = reader.u8().filter(|op| (DW_OP_BREG0..=DW_OP_BREG31).contains(op))? - DW_OP_BREG0;
        let offset = reader.sleb()?;
        if reader.is_empty() {
            return Some(Self::Register { register, offset });
        }
        match reader.u8()? {
            DW_OP_PLUS_UCONST => {
                let addend = i64::try_from(reader.uleb()?).ok()?;
                let offset = offset.checked_add(addend)?;
                reader.is_empty().then_some(Self::Register { register, offset })
            }
            DW_OP_DEREF if reader.is_empty() => Some(Self::Memory { register, offset, addend: 0 }),
            DW_OP_DEREF if reader.u8()? == DW_OP_PLUS_UCONST => {
                let addend = i64::try_from(reader.uleb()?).ok()?;
                reader.is_empty().then_some(Self::Memory { register, offset, addend })
            }
            DW_OP_BREG16 if register == DW_OP_BREG7 - DW_OP_BREG0 => Self::linkage_stub(reader, offset),
            _ => None,
        }
    }

    /// Parses the rest of the linkers' expression for stubs, which begins with `breg7 offset, breg16`.
    fn linkage_stub(mut reader: SectionReader<'_>, offset: i64) -> Option<Self> {
        let ip_offset = reader.sleb()?;
        let lit15_and = [reader.u8()?, reader.u8()?];
        let threshold = reader.u8().filter(|op| (DW_OP_LIT0..=DW_OP_LIT31).contains(op))?;
        let rest: [u8; 4] = reader.array()?;
        let known = ip_offset == 0
            && lit15_and == [DW_OP_LIT15, DW_OP_AND]
            && rest == [DW_OP_GE, DW_OP_LIT3, DW_OP_SHL, DW_OP_PLUS]
            && reader.is_empty();
        known.then_some(Self::LinkageStub { offset, pushed_from: i64::from(threshold - DW_OP_LIT0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_the_expressions_that_occur() {
        let check = |bytes: &[u8], expected| assert_eq!(ExpressionForm::of(bytes), expected, "{bytes:x?}");
        check(&[0x77, 0x28], Some(ExpressionForm::Register { register: 7, offset: 40 }));
        check(&[0x76, 0x00], Some(ExpressionForm::Register { register: 6, offset: 0 }));
        check(&[0x76, 0x78, 0x06], Some(ExpressionForm::Memory { register: 6, offset: -8, addend: 0 }));
        check(
            &[0x77, 0x28, 0x06, 0x23, 0x08],
            Some(ExpressionForm::Memory { register: 7, offset: 40, addend: 8 }),
        );
        let stub = [0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
        check(&stub, Some(ExpressionForm::LinkageStub { offset: 8, pushed_from: 11 }));
        check(&stub[..10], None);
        check(&[], None);
        check(&[0x77], None);
        check(&[0x77, 0x28, 0x06, 0x06], None);
        check(&[0x77, 0x28, 0x23], None);
    }
}
