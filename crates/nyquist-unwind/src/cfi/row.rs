//! A row of the table that the instructions of call frame information describe.

use crate::rule::Rule;

/// How the CFA is found. The register and the offset are kept while an expression takes their place, as GCC's
/// unwinder does: hand-written code in libgcrypt sets either one after an expression.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CfaRule<'a> {
    pub(crate) register: u64,
    pub(crate) offset: i64,
    pub(crate) expression: Option<&'a [u8]>,
}

/// How one register of the caller is found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RegisterRule<'a> {
    Undefined,
    SameValue,
    Offset(i64),
    Expression(&'a [u8]),
    Other,
}

/// One row of the table that the instructions describe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CfiRow<'a> {
    /// The row as a rule, which is always in sync with the other fields.
    pub(super) rule: Rule,
    pub(crate) cfa: CfaRule<'a>,
    pub(crate) frame_pointer: RegisterRule<'a>,
    pub(crate) return_address: RegisterRule<'a>,
    /// Whether the stack pointer is restored to another value than the CFA.
    pub(crate) stack_pointer_is_saved: bool,
}
