//! Temporary files of recorders that died. A running recorder holds a lock on its own file.

use super::place::{Callers, is_there};
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock, fstat, openat, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// The part of a file's name that its temporary name includes, so that this is not too long.
const MAX_NAME_LEN: usize = 200;

/// The name of a process's temporary file: `.NAME.PID.tmp`, with a number if that exists.
pub(super) fn name(name: &OsStr, pid: u32, number: u64) -> OsString {
    let number = if number == 0 { String::new() } else { format!(".{number}") };
    OsString::from_vec([&beginning(name), format!("{pid}{number}.tmp").as_bytes()].concat())
}

fn beginning(name: &OsStr) -> Vec<u8> {
    let name = name.as_bytes();
    [b".", &name[..name.len().min(MAX_NAME_LEN)], b"."].concat()
}

/// Removes the temporary files for a name that no process has locked. Files that cannot be removed are
/// left, because they do no harm.
pub(super) fn remove(folder: &OwnedFd, name: &OsStr, callers: Callers) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(listed) = openat(folder, ".", flags, Mode::empty()).and_then(Dir::new) else { return };
    let beginning = beginning(name);
    for entry in listed.flatten() {
        let entry = entry.file_name().to_bytes();
        if is_temporary(entry, &beginning) {
            remove_one(folder, OsStr::from_bytes(entry), callers);
        }
    }
}

/// Whether [`name`] makes names of this form.
fn is_temporary(entry: &[u8], beginning: &[u8]) -> bool {
    let number = entry.strip_prefix(beginning).and_then(|rest| rest.strip_suffix(b".tmp"));
    number.is_some_and(|number| {
        let mut parts = number.split(|byte| *byte == b'.');
        parts.clone().count() <= 2
            && parts.all(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit))
    })
}

/// Removes a file if it is a regular file of the caller's, and no process holds its lock.
fn remove_one(folder: &OwnedFd, name: &OsStr, callers: Callers) {
    // Opening must not wait if the name is a FIFO.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let Ok(file) = openat(folder, name, flags, Mode::empty()).map(File::from) else { return };
    let Ok(stat) = fstat(&file) else { return };
    let is_own =
        FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && callers.include(stat.st_uid);
    if is_own
        && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
        && is_there(folder, name, &file)
    {
        let _ = unlinkat(folder, name, AtFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_temporary_files_are_known_again() {
        let check = |entry: &str, expected| {
            let is = is_temporary(entry.as_bytes(), &beginning("p.json".as_ref()));
            assert_eq!(is, expected, "{entry}");
        };
        check(name("p.json".as_ref(), 17, 0).to_str().unwrap(), true);
        check(name("p.json".as_ref(), 17, 3).to_str().unwrap(), true);
        check(".p.json.17.tmp", true);
        for other in [
            ".p.json.tmp",
            ".p.json..tmp",
            ".p.json.x.tmp",
            ".p.json.1.2.3.tmp",
            "p.json.1.tmp",
            ".p.json.gz.1.tmp",
        ] {
            check(other, false);
        }
    }

    #[test]
    fn a_long_name_has_a_temporary_one() {
        let long = "x".repeat(255);
        assert!(name(long.as_ref(), u32::MAX, u64::MAX).len() < 255);
    }
}
