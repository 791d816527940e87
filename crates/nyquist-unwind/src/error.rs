//! What can be wrong with a module's unwind information.

use nyquist_object::ObjectError;

/// Why no [`Module`](crate::Module) could be made.
#[derive(Debug, thiserror::Error)]
pub enum UnwindError {
    /// Nothing here knows how to unwind code of this kind.
    #[error("cannot unwind {0}")]
    Unsupported(String),
    /// The file cannot be read.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

/// What of a module's unwind information was unusable. The rest of it is in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// How many entries or whole sections.
    pub count: u32,
    /// What was wrong with the first of them.
    pub first: Option<String>,
}

impl Damage {
    /// Counts one more.
    pub(crate) fn add(&mut self, what: impl FnOnce() -> String) {
        self.count = self.count.saturating_add(1);
        self.first.get_or_insert_with(what);
    }

    /// Counts what was found elsewhere.
    pub(crate) fn merge(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.first = self.first.take().or(other.first);
    }
}
