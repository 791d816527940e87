//! Texts of a trace.

use std::rc::Rc;

/// The maximum length of names. Longer names are truncated, because short packets may refer to a long name
/// repeatedly.
pub(super) const MAX_NAME: usize = 4096;

/// A text, truncated to the maximum length.
pub(super) fn text(bytes: &[u8]) -> Rc<str> {
    String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_NAME)]).into()
}
