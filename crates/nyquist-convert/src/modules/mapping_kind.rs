//! The kind of memory that a mapping is, by its path.

use super::memfd;
use crate::event::Mapping;
use std::path::Path;

/// Whether a mapping is of memory that no file holds, and that is not a mapping of the kernel.
pub(crate) fn is_without_file(mapping: &Mapping) -> bool {
    !is_file(&mapping.path) && !mapping.path.starts_with('[')
}

/// Whether the path of a mapping is that of a file, and not a name such as `//anon` or `[heap]`.
pub(super) fn is_file(path: &str) -> bool {
    is_windows_path(path) || is_unix_file(path)
}

/// Whether a path begins with a drive or a server of Windows.
pub(super) fn is_windows_path(path: &str) -> bool {
    let after_drive = path.strip_prefix(|first: char| first.is_ascii_alphabetic());
    after_drive.is_some_and(|rest| rest.starts_with(":\\")) || path.starts_with("\\\\")
}

fn is_unix_file(path: &str) -> bool {
    path.starts_with('/')
        && !path.starts_with("//")
        && !path.starts_with("/dev/zero")
        && !is_memory(path)
        && !memfd::is_name(path)
        && !path.starts_with("/SYSV")
}

/// Whether a mapping's path is that of memory without a file, or of huge pages, which the kernel treats as a
/// file.
pub(crate) fn is_memory(path: &str) -> bool {
    path.starts_with("//anon") || path.starts_with("[anon") || path.starts_with("/anon_hugepage")
}

/// Whether a mapping may be of code that is generated at run time, or of a file that describes such code.
pub(crate) fn may_be_made_code(mapping: &Mapping) -> bool {
    is_without_file(mapping) || is_dump(mapping)
}

/// Whether a mapping has the name of a jitdump.
pub(crate) fn is_dump(mapping: &Mapping) -> bool {
    let name = Path::new(&mapping.path).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let digits = name.strip_prefix("jit-").and_then(|name| name.strip_suffix(".dump"));
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_both_kinds_differ_from_names() {
        for path in ["/bin/sh", r"C:\Windows\a.dll", r"\\server\share\a.dll"] {
            assert!(is_file(path), "{path}");
        }
        for path in ["//anon", "[heap]", "C:", "a.dll", r"1:\a", "", r"é:\a"] {
            assert!(!is_file(path), "{path}");
        }
    }
}
