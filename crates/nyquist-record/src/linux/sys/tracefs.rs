//! A mount of tracefs that only this process can use: fsopen(2), fsmount(2).

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr;

use super::check_long;

/// Mounts tracefs nowhere, and returns its root folder. The mount ends with the descriptor. Takes
/// `CAP_SYS_ADMIN`.
pub(crate) fn mount_detached() -> io::Result<OwnedFd> {
    const NAME: &CStr = c"tracefs";
    const FSOPEN_CLOEXEC: libc::c_uint = 1;
    const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
    const FSMOUNT_CLOEXEC: libc::c_uint = 1;
    const READ_ONLY: libc::c_uint = 1;
    const NO_SETUID: libc::c_uint = 2;
    const NO_DEVICES: libc::c_uint = 4;
    const NO_PROGRAMS: libc::c_uint = 8;
    // SAFETY: the name ends in a zero, and the call only reads it.
    let context = unsafe { libc::syscall(libc::SYS_fsopen, NAME.as_ptr(), FSOPEN_CLOEXEC) };
    let context = owned(context)?;
    // SAFETY: this command takes neither a key nor a value, so both pointers are null.
    let created = unsafe {
        let nothing = ptr::null::<libc::c_char>();
        libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), FSCONFIG_CMD_CREATE, nothing, nothing, 0)
    };
    check_long(created)?;
    let attributes = READ_ONLY | NO_SETUID | NO_DEVICES | NO_PROGRAMS;
    // SAFETY: the call takes numbers only.
    let mount = unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), FSMOUNT_CLOEXEC, attributes) };
    owned(mount)
}

/// The descriptor that a call has returned.
fn owned(result: libc::c_long) -> io::Result<OwnedFd> {
    let fd = libc::c_int::try_from(check_long(result)?).map_err(io::Error::other)?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else uses it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
