//! Users and their groups.

use std::ffi::{CStr, OsStr, OsString};
use std::mem::zeroed;
use std::os::unix::ffi::OsStrExt as _;
use std::ptr;

/// Whether this process has root's rights.
pub(crate) fn is_root() -> bool {
    effective() == 0
}

/// The user whose rights this process has.
pub(crate) fn effective() -> u32 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// The groups that a user is in, `gid` among them.
pub(crate) fn groups(name: &CStr, gid: u32) -> Option<Vec<u32>> {
    const MAX_GROUPS: usize = 1 << 16;
    let mut groups: Vec<libc::gid_t> = vec![0; 64];
    loop {
        let mut count = groups.len() as libc::c_int;
        // SAFETY: the name ends in a zero, and `groups` has room for `count` numbers.
        let result = unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &raw mut count) };
        let count = usize::try_from(count).ok()?;
        if result >= 0 {
            groups.truncate(count);
            return Some(groups);
        }
        if count <= groups.len() || count > MAX_GROUPS {
            return None;
        }
        groups.resize(count, 0);
    }
}

/// A user's home folder, as the system's list of users has it.
pub(crate) fn home(uid: u32) -> Option<OsString> {
    const LONGEST_ENTRY: usize = 1 << 16;
    let mut texts: Vec<libc::c_char> = vec![0; LONGEST_ENTRY];
    // SAFETY: a passwd is pointers and numbers, for which zeros are valid.
    let mut entry: libc::passwd = unsafe { zeroed() };
    let mut found = ptr::null_mut();
    let (room, len) = (texts.as_mut_ptr(), texts.len());
    // SAFETY: all pointers are to live values that the call writes to, and there is room for `len` bytes.
    let result = unsafe { libc::getpwuid_r(uid, &raw mut entry, room, len, &raw mut found) };
    if result != 0 || found.is_null() || entry.pw_dir.is_null() {
        return None;
    }
    // SAFETY: the call succeeded, so the folder is a text in `texts` that ends in a zero.
    let home = unsafe { CStr::from_ptr(entry.pw_dir) };
    Some(OsStr::from_bytes(home.to_bytes()).to_owned())
}
