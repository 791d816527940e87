//! The unsafe code: the size of the machine's memory, and the standard output.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use windows_sys::Win32::System::Console::{GetStdHandle, STD_ERROR_HANDLE, STD_OUTPUT_HANDLE, SetStdHandle};
use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};

/// The memory of the machine in bytes.
pub(crate) fn physical() -> Option<u64> {
    let length = mem::size_of::<MEMORYSTATUSEX>() as u32;
    let mut status = MEMORYSTATUSEX { dwLength: length, ..MEMORYSTATUSEX::default() };
    // SAFETY: the structure has the length that it states, and is this function's own.
    let is_known = unsafe { GlobalMemoryStatusEx(&raw mut status) } != 0;
    is_known.then_some(status.ullTotalPhys)
}

/// Lets everything that is printed from now on go to the standard error, also what started programs print.
pub(crate) fn redirect_stdout_to_stderr() -> io::Result<()> {
    // SAFETY: both calls take and return numbers. The handle stays open as long as the process lives.
    let is_set = unsafe { SetStdHandle(STD_OUTPUT_HANDLE, GetStdHandle(STD_ERROR_HANDLE)) };
    if is_set == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
