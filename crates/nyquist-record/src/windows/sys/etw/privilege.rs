//! The privilege to sample the whole machine.

use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use std::{io, ptr};

use windows_sys::Win32::Foundation::{ERROR_SUCCESS, GetLastError};
use windows_sys::Win32::Security::{
    AdjustTokenPrivileges, LUID_AND_ATTRIBUTES, LookupPrivilegeValueW, SE_PRIVILEGE_ENABLED,
    SE_SYSTEM_PROFILE_NAME, TOKEN_ADJUST_PRIVILEGES, TOKEN_PRIVILEGES, TOKEN_QUERY,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

use crate::windows::sys::check;

/// Enables `SeSystemProfilePrivilege` for this process. Only processes of administrators have it, and it is not
/// enabled at their start.
pub(crate) fn enable() -> io::Result<()> {
    let mut token = ptr::null_mut();
    // SAFETY: the handle means this process, and `token` lives through the call.
    check(unsafe {
        OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY, &raw mut token)
    })?;
    // SAFETY: the call has just made the handle, and nothing else closes it.
    let token = unsafe { OwnedHandle::from_raw_handle(token) };
    let mut privilege = LUID_AND_ATTRIBUTES { Attributes: SE_PRIVILEGE_ENABLED, ..Default::default() };
    // SAFETY: the name is a constant that ends with a zero, and the identifier lives through the call.
    check(unsafe { LookupPrivilegeValueW(ptr::null(), SE_SYSTEM_PROFILE_NAME, &raw mut privilege.Luid) })?;
    let wanted = TOKEN_PRIVILEGES { PrivilegeCount: 1, Privileges: [privilege] };
    // SAFETY: the handle is open, the structure has as many privileges as it states, and null pointers mean that
    // the former state is not returned.
    let adjusted = check(unsafe {
        AdjustTokenPrivileges(
            token.as_raw_handle(),
            0,
            &raw const wanted,
            0,
            ptr::null_mut(),
            ptr::null_mut(),
        )
    });
    // The call succeeds as well if the process lacks the privilege.
    // SAFETY: the call takes no pointers.
    let code = unsafe { GetLastError() };
    adjusted?;
    if code == ERROR_SUCCESS { Ok(()) } else { Err(io::Error::from_raw_os_error(code as i32)) }
}
