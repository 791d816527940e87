//! The name of a function, from debug info.

use std::sync::Arc;

/// A function's name.
#[derive(Clone, Debug)]
pub(crate) struct FunctionName {
    /// Demangled.
    pub(crate) text: Arc<str>,
    /// Whether it was made from a linkage name, which is complete, and not from the plain name and its
    /// qualifiers.
    pub(crate) is_complete: bool,
    /// The number in the unit's line table of the file that it is declared in. `None` if this is not stated,
    /// or is stated in another unit.
    pub(crate) file: Option<u64>,
}
