//! The ids that symbol servers use.

/// Whether the id can be used to request symbols, or is empty.
pub(super) fn is_breakpad_id(id: &str) -> bool {
    id.is_empty() || (id.len() >= 33 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
