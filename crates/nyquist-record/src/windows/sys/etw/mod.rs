//! Sessions of the kernel's events (evntrace.h, evntcons.h): their control, and their delivery.

pub(crate) mod consumer;
pub(crate) mod control;

use std::io;

use windows_sys::Win32::Foundation::{ERROR_SUCCESS, WIN32_ERROR};
use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};

/// The result of a call that returns an error's number.
fn check_code(code: WIN32_ERROR) -> io::Result<()> {
    if code == ERROR_SUCCESS { Ok(()) } else { Err(io::Error::from_raw_os_error(code as i32)) }
}

/// A name as the system takes it: UTF-16 with a zero at the end.
fn wide(name: &str) -> Vec<u16> {
    name.encode_utf16().filter(|unit| *unit != 0).chain([0]).collect()
}

/// Whether this system is Wine, whose library of the system has a function more.
pub(crate) fn is_wine() -> bool {
    let library = wide("ntdll.dll");
    // SAFETY: both names end with a zero and live through the calls; the library is never unloaded, and the
    // function is not called.
    unsafe {
        GetProcAddress(GetModuleHandleW(library.as_ptr()), c"wine_get_version".as_ptr().cast()).is_some()
    }
}
