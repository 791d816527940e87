//! 64-bit ARM.

pub(crate) mod calls;
pub(crate) mod perf;
pub(crate) mod registers;
pub(crate) mod waiting;
