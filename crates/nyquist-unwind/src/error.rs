//! What can be wrong with a module's unwind information.

use nyquist_object::ObjectError;

/// Why no [`Module`](crate::Module) could be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnwindError {
    /// Code of this kind is not supported.
    #[error("cannot unwind {0}")]
    Unsupported(String),
    /// The file cannot be read.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

/// The unusable part of a module's unwind information. The rest of it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// How many entries or whole sections.
    pub count: u32,
    /// The problem of the first of them.
    pub first: Option<String>,
}

impl Damage {
    /// Counts one more problem.
    pub(crate) fn add(&mut self, what: impl FnOnce() -> String) {
        self.count = self.count.saturating_add(1);
        self.first.get_or_insert_with(what);
    }

    /// Adds the problems of another part.
    pub(crate) fn merge(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.first = self.first.take().or(other.first);
    }
}
