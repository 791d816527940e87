//! The name of a function, as debug info has it.

use std::sync::Arc;

/// A function's name.
#[derive(Clone, Debug)]
pub(crate) struct FunctionName {
    /// Demangled.
    pub(crate) text: Arc<str>,
    /// Whether it was made from a linkage name, which is complete, and not from the plain name and what it is in.
    pub(crate) is_complete: bool,
    /// The number of the file that it is declared in, in the unit's line table; `None` where that is not said, or said in
    /// another unit.
    pub(crate) file: Option<u64>,
}
