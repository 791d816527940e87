//! What a child process has used: `wait4`.

#![allow(unsafe_code)]

use std::io;
use std::process::Child;
use std::time::Duration;

/// What a process used from start to end.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// CPU time, user's and kernel's.
    pub cpu: Duration,
    /// The most memory that was resident, in bytes, mapped pages counted.
    pub peak: u64,
}

/// Waits for a child to end successfully.
pub fn wait(child: &Child) -> io::Result<Usage> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values of the types that wait4 writes; the child is ours and not reaped.
    let reaped = unsafe { libc::wait4(child.id().cast_signed(), &mut status, 0, &mut usage) };
    if reaped < 0 {
        return Err(io::Error::last_os_error());
    }
    if status != 0 {
        return Err(io::Error::other(format!("ended with status {status:#x}")));
    }
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    Ok(Usage { cpu: time(usage.ru_utime) + time(usage.ru_stime), peak: usage.ru_maxrss as u64 * 1024 })
}
