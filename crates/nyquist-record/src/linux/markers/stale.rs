//! Folders of recorders that were killed: the next recording removes them.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;

use super::held_folder::{HeldFolder, names};
use crate::linux::sys::users;

/// The prefix of the folder names. Three numbers follow.
pub(super) const PREFIX: &str = "nyquist-markers-";

/// How many folders are removed at a time, and how many files of each. The rest is left to later recordings.
const MAX_FOLDERS: usize = 16;
const MAX_FILES: usize = 1 << 12;

/// Removes the folders in a place that no recorder holds.
pub(super) fn remove(place: &File) {
    let held = |name: OsString| HeldFolder::new(place.try_clone().ok()?, &name).ok();
    let found = names(place).filter(|name| is_ours(name)).filter_map(held);
    for held in found.filter(may_remove).take(MAX_FOLDERS) {
        held.remove(MAX_FILES);
    }
}

/// Whether this user may remove the folder, and its recorder is dead. With these permissions, only its owner
/// can have put files into the folder or moved it here.
fn may_remove(held: &HeldFolder) -> bool {
    let user = users::effective();
    (user == 0 || held.status.owner == user)
        && held.status.permissions() == 0o700
        && held.folder.try_lock().is_ok()
}

fn is_ours(name: &OsStr) -> bool {
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let numbers = name.as_bytes().strip_prefix(PREFIX.as_bytes());
    numbers.is_some_and(|numbers| {
        let parts: Vec<_> = numbers.splitn(4, |byte| *byte == b'-').collect();
        parts.len() == 3 && parts.into_iter().all(is_number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_three_numbers() {
        for (name, expected) in [
            ("nyquist-markers-1-0-99", true),
            ("nyquist-markers-1-0", false),
            ("nyquist-markers-1-0-9-9", false),
            ("nyquist-markers-1--9", false),
            ("nyquist-markers-1-0-x", false),
            ("other-1-0-9", false),
        ] {
            assert_eq!(is_ours(name.as_ref()), expected, "{name}");
        }
    }
}
