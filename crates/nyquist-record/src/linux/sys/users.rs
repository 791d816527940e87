//! Users and their groups.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::mem::zeroed;
use std::os::unix::ffi::OsStrExt as _;
use std::ptr;

/// Whether this process runs as root.
pub(crate) fn is_root() -> bool {
    effective() == 0
}

/// The user whose rights this process has.
pub(crate) fn effective() -> u32 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// The groups of a user, including `gid`.
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

/// A user in the system's user database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: CString,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) home: OsString,
}

impl Account {
    /// The user with an id.
    pub(crate) fn of_uid(uid: u32) -> Option<Self> {
        // SAFETY: all pointers are to live values that the call writes to, and `len` is the size of the room.
        Self::find(|entry, room, len, found| unsafe { libc::getpwuid_r(uid, entry, room, len, found) })
    }

    /// The user with a name.
    pub(crate) fn of_name(name: &CStr) -> Option<Self> {
        let name = name.as_ptr();
        // SAFETY: as above, and the name ends in a zero.
        Self::find(|entry, room, len, found| unsafe { libc::getpwnam_r(name, entry, room, len, found) })
    }

    /// Calls `ask`, which writes numbers into the entry, and texts into the room of `len` bytes.
    fn find(
        ask: impl FnOnce(*mut libc::passwd, *mut libc::c_char, usize, *mut *mut libc::passwd) -> libc::c_int,
    ) -> Option<Self> {
        const MAX_ENTRY_LEN: usize = 1 << 16;
        let mut texts: Vec<libc::c_char> = vec![0; MAX_ENTRY_LEN];
        // SAFETY: a passwd is pointers and numbers, for which zeros are valid.
        let mut entry: libc::passwd = unsafe { zeroed() };
        let mut found = ptr::null_mut();
        let result = ask(&raw mut entry, texts.as_mut_ptr(), texts.len(), &raw mut found);
        if result != 0 || found.is_null() || entry.pw_dir.is_null() || entry.pw_name.is_null() {
            return None;
        }
        // SAFETY: the call succeeded, so these are texts in `texts` that end in a zero.
        let (name, home) = unsafe { (CStr::from_ptr(entry.pw_name), CStr::from_ptr(entry.pw_dir)) };
        let home = OsStr::from_bytes(home.to_bytes()).to_owned();
        Some(Self { name: name.to_owned(), uid: entry.pw_uid, gid: entry.pw_gid, home })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_found_by_number_and_by_name() {
        let root = Account::of_uid(0).unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(Account::of_name(&root.name).unwrap(), root);
        assert_eq!(Account::of_name(c"nobody has this name"), None);
    }
}
