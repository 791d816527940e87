//! The system calls, each behind a safe function: the only `unsafe` code for macOS in this crate.
//!
//! What the `libc` crate lacks is declared in [`mach`], from Apple's public headers.
#![allow(unsafe_code)]

pub(crate) mod clock;
pub(crate) mod file;
mod mach;
pub(crate) mod memory;
pub(crate) mod port;
pub(crate) mod preference;
pub(crate) mod process;
pub(crate) mod queue;
pub(crate) mod signals;
pub(crate) mod spawn;
pub(crate) mod task;
pub(crate) mod thread;

use std::io;

/// The result of a call that returns -1 on failure.
fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
