//! The system calls, each behind a safe function: the only `unsafe` code for Windows in this crate.
#![allow(unsafe_code)]

pub(crate) mod clock;
pub(crate) mod console;
pub(crate) mod etw;
pub(crate) mod job;
pub(crate) mod memory;
pub(crate) mod modules;
pub(crate) mod privilege;
pub(crate) mod process;
pub(crate) mod snapshot;
pub(crate) mod thread;
pub(crate) mod timer;
pub(crate) mod volumes;

use std::ffi::CStr;
use std::io;
use std::os::windows::io::{FromRawHandle as _, OwnedHandle};

use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
use windows_sys::core::BOOL;

/// The result of a call that returns zero on failure.
fn check(result: BOOL) -> io::Result<()> {
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The handle that a call has returned, which is null on failure.
fn owned(handle: HANDLE) -> io::Result<OwnedHandle> {
    if handle.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just made the handle, and nothing else closes it.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

/// A function of `kernel32.dll` that older systems lack.
fn optional_function(name: &CStr) -> Option<unsafe extern "system" fn() -> isize> {
    let library: Vec<u16> = "kernel32.dll\0".encode_utf16().collect();
    // SAFETY: both names end with a zero and live through the calls; the library is never unloaded.
    unsafe { GetProcAddress(GetModuleHandleW(library.as_ptr()), name.as_ptr().cast()) }
}

/// The text before the first zero, with the replacement character for what is not Unicode.
pub(crate) fn text(units: &[u16]) -> String {
    let len = units.iter().position(|unit| *unit == 0).unwrap_or(units.len());
    String::from_utf16_lossy(units.get(..len).unwrap_or_default())
}
