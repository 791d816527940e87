//! The index of a module in its store.

/// The index of a module in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ModuleIndex(pub(crate) u32);
