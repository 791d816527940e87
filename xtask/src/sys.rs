//! The system calls that the standard library does not wrap: signals to processes, terminals, resource usage.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::Duration;

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

/// Sends a signal to every process of a group, as a terminal does.
pub(crate) fn signal_group(group: u32, signal: i32) -> io::Result<()> {
    // SAFETY: killpg takes plain numbers.
    check(unsafe { libc::killpg(group as i32, signal) })
}

/// Waits for a child, and says with its status what CPU time it and its reaped children used.
pub(crate) fn wait_with_usage(pid: u32) -> io::Result<(ExitStatus, Duration)> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zeroes are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live locals of the right types.
        let done = unsafe { libc::wait4(pid as i32, &raw mut status, 0, &raw mut usage) };
        if done >= 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok((ExitStatus::from_raw(status), duration(usage.ru_utime) + duration(usage.ru_stime)))
}

fn duration(time: libc::timeval) -> Duration {
    Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000)
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
