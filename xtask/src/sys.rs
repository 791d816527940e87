//! The system calls that the standard library does not wrap: signals to processes, terminals.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Whether this process is root.
pub(crate) fn is_root() -> bool {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Sends a signal to one process.
pub(crate) fn signal_process(pid: u32, signal: i32) -> io::Result<()> {
    // SAFETY: kill takes plain numbers; the pid is positive, so no group is meant.
    check(unsafe { libc::kill(pid as i32, signal) })
}

/// A new terminal: the side that a person sits at, and the side that a program sees.
pub(crate) fn open_terminal() -> io::Result<(File, File)> {
    let (mut person, mut program) = (-1, -1);
    // SAFETY: the two integers are live; no name, settings or size are asked for.
    check(unsafe {
        libc::openpty(
            &raw mut person,
            &raw mut program,
            std::ptr::null_mut(),
            std::ptr::null(),
            std::ptr::null(),
        )
    })?;
    // SAFETY: openpty succeeded, so both are open descriptors that nobody else owns.
    let (person, program) = unsafe { (OwnedFd::from_raw_fd(person), OwnedFd::from_raw_fd(program)) };
    for descriptor in [&person, &program] {
        // SAFETY: the descriptor is open; FD_CLOEXEC only keeps it from other tests' children.
        check(unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) })?;
    }
    Ok((File::from(person), File::from(program)))
}

/// Makes the command's standard input its controlling terminal, in a session of its own.
pub(crate) fn control_terminal(command: &mut Command) {
    let become_leader = || {
        // SAFETY: setsid and ioctl are async-signal-safe and touch no memory of the parent.
        unsafe {
            check(libc::setsid())?;
            check(libc::ioctl(0, libc::TIOCSCTTY, 0))
        }
    };
    // SAFETY: the closure makes only the two async-signal-safe calls above.
    unsafe { command.pre_exec(become_leader) };
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
