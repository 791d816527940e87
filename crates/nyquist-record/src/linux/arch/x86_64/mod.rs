//! 64-bit x86.

pub(crate) mod calls;
pub(crate) mod perf;
pub(crate) mod registers;
pub(crate) mod waiting;
