//! Demangled names of a limited length.

use std::fmt::{self, Write};

/// The longest demangled name. Substitutions let a short hostile name grow without bound.
pub(super) const MAX_DEMANGLED: usize = 256 << 10;

/// A string that does not grow beyond the limit.
#[derive(Default)]
pub(super) struct BoundedString {
    /// What was written.
    pub(super) text: String,
}

impl Write for BoundedString {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        if self.text.len() + more.len() > MAX_DEMANGLED {
            return Err(fmt::Error);
        }
        self.text.push_str(more);
        Ok(())
    }
}
