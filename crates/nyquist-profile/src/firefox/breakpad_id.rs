//! The ids by which symbol servers are asked.

/// Whether symbols can be asked for by this id, or there is none.
pub(super) fn is_breakpad_id(id: &str) -> bool {
    id.is_empty() || (id.len() >= 33 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
