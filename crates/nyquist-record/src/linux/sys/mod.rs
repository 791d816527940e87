//! The system calls, each behind a safe function: the only `unsafe` code of this crate.
#![allow(unsafe_code)]

pub(crate) mod beneath;
pub(crate) mod bpf;
pub(crate) mod bpf_ring;
pub(crate) mod clock;
pub(crate) mod event;
pub(crate) mod files;
pub(crate) mod futex;
pub(crate) mod identity;
pub(crate) mod job_control;
pub(crate) mod limits;
pub(crate) mod maps;
pub(crate) mod poll;
pub(crate) mod process;
pub(crate) mod process_folder;
pub(crate) mod ptrace;
pub(crate) mod ring;
pub(crate) mod signals;
pub(crate) mod ticker;
pub(crate) mod tracefs;
pub(crate) mod users;
pub(crate) mod watch;

use std::io;

/// The result of a call that returns -1 on failure.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The result of a raw `syscall` that returns -1 on failure.
fn check_long(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
