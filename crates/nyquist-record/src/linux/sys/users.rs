//! Users and their groups.

use std::ffi::CStr;

/// Whether this process has root's rights.
pub(crate) fn is_root() -> bool {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
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
