//! Privileges of this process. Those of an administrator are not enabled at the start of a process.

use std::os::windows::io::{AsRawHandle as _, OwnedHandle};
use std::{io, ptr};

use windows_sys::Win32::Foundation::{ERROR_SUCCESS, GetLastError};
use windows_sys::Win32::Security::{
    AdjustTokenPrivileges, LUID_AND_ATTRIBUTES, LookupPrivilegeValueW, SE_DEBUG_NAME, SE_PRIVILEGE_ENABLED,
    SE_SYSTEM_PROFILE_NAME, TOKEN_ADJUST_PRIVILEGES, TOKEN_PRIVILEGES, TOKEN_QUERY,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};
use windows_sys::core::PCWSTR;

use super::{check, owned};

/// A privilege that only processes of administrators have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Privilege {
    /// To sample the whole machine: `SeSystemProfilePrivilege`.
    SystemProfile,
    /// To open the processes and threads of others: `SeDebugPrivilege`.
    Debug,
}

impl Privilege {
    fn name(self) -> PCWSTR {
        match self {
            Self::SystemProfile => SE_SYSTEM_PROFILE_NAME,
            Self::Debug => SE_DEBUG_NAME,
        }
    }
}

/// Enables a privilege for this process, for the rest of its life.
pub(crate) fn enable(privilege: Privilege) -> io::Result<()> {
    set(privilege, SE_PRIVILEGE_ENABLED)
}

/// Does something with a privilege, if this process has it. It is disabled afterwards, because processes that this
/// one starts inherit what is enabled.
pub(crate) fn with<T>(privilege: Privilege, work: impl FnOnce() -> T) -> Option<T> {
    enable(privilege).ok()?;
    let result = work();
    // It was enabled just now, so that this succeeds.
    let _ = set(privilege, 0);
    Some(result)
}

/// Does something again with the privilege to open what is of others, if it was refused without.
pub(super) fn as_debugger<T>(work: impl Fn() -> io::Result<T>) -> io::Result<T> {
    work().or_else(|error| {
        let is_refused = error.kind() == io::ErrorKind::PermissionDenied;
        let again = is_refused.then(|| with(Privilege::Debug, &work)).flatten();
        again.unwrap_or(Err(error))
    })
}

fn set(privilege: Privilege, attributes: u32) -> io::Result<()> {
    let token = own_token()?;
    let mut requested = LUID_AND_ATTRIBUTES { Attributes: attributes, ..Default::default() };
    // SAFETY: the name is a constant that ends with a zero, and the identifier lives through the call.
    check(unsafe { LookupPrivilegeValueW(ptr::null(), privilege.name(), &raw mut requested.Luid) })?;
    let requested = TOKEN_PRIVILEGES { PrivilegeCount: 1, Privileges: [requested] };
    // SAFETY: the handle is open, the structure has as many privileges as it states, and null pointers mean that
    // the former state is not returned.
    let adjusted = check(unsafe {
        AdjustTokenPrivileges(
            token.as_raw_handle(),
            0,
            &raw const requested,
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

fn own_token() -> io::Result<OwnedHandle> {
    let mut token = ptr::null_mut();
    // SAFETY: the handle means this process, and `token` lives through the call.
    check(unsafe {
        OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY, &raw mut token)
    })?;
    owned(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_privilege_is_there_for_the_work_alone() {
        let worked = with(Privilege::Debug, || 7);
        assert!(worked.is_none_or(|result| result == 7));
        assert_eq!(worked.is_some(), set(Privilege::Debug, 0).is_ok(), "a process has it, or lacks it");
    }
}
