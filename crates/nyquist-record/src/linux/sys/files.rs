//! File system properties of a program's file.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Whether a file gives capabilities to the process that runs it (capabilities(7), "File capabilities").
pub(crate) fn has_capabilities(path: &CStr) -> bool {
    const NAME: &CStr = c"security.capability";
    // SAFETY: both strings end in a zero; without room, the call returns the length and writes nothing.
    unsafe { libc::getxattr(path.as_ptr(), NAME.as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

/// Whether a file is on a mount whose programs give no privileges (`nosuid`, mount(8)).
pub(crate) fn is_on_nosuid(path: &CStr) -> bool {
    has_mount_flag(path, libc::ST_NOSUID)
}

/// Whether a file is on a mount from which no code may be run (`noexec`).
pub(crate) fn is_on_noexec(path: &Path) -> bool {
    CString::new(path.as_os_str().as_bytes()).is_ok_and(|path| has_mount_flag(&path, libc::ST_NOEXEC))
}

fn has_mount_flag(path: &CStr, flag: libc::c_ulong) -> bool {
    let mut found = MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path ends in a zero, and the call writes to `found`, which has the right size.
    let result = unsafe { libc::statvfs(path.as_ptr(), found.as_mut_ptr()) };
    // SAFETY: if it succeeds, the call has filled in all of it.
    result == 0 && unsafe { found.assume_init() }.f_flag & flag != 0
}
