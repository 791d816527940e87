//! The system calls that the standard library does not wrap: signals to processes, terminals.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Whether this process is root.
pub(crate) fn is_root() -> bool {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// How many CPUs the machine has. This process may be allowed to use fewer, because of a quota for example.
pub(crate) fn cpu_count() -> usize {
    // SAFETY: sysconf takes a plain number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).unwrap_or(1)
}

/// The time in nanoseconds of the clock that C programs call `CLOCK_MONOTONIC`.
pub(crate) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live timespec that the call writes to; every Linux has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sends a signal to one process.
pub(crate) fn signal_process(pid: u32, signal: i32) -> io::Result<()> {
    // SAFETY: kill takes plain numbers; the pid is positive, so no group is meant.
    check(unsafe { libc::kill(pid as i32, signal) })
}

/// Opens a new terminal, and returns the user's side and the program's side. Both are close-on-exec from the
/// start, so no other test's child inherits them and keeps the terminal open.
pub(crate) fn open_terminal() -> io::Result<(File, File)> {
    let person = File::options().read(true).write(true).custom_flags(libc::O_NOCTTY).open("/dev/ptmx")?;
    let (locked, size) = (0, libc::winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 });
    // SAFETY: the descriptor is open, and the call reads one number.
    check(unsafe { libc::ioctl(person.as_raw_fd(), libc::TIOCSPTLCK, &raw const locked) })?;
    // SAFETY: the descriptor is open, and the call reads a size.
    check(unsafe { libc::ioctl(person.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) })?;
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: the descriptor is open, and the call takes a plain number.
    let program = unsafe { libc::ioctl(person.as_raw_fd(), libc::TIOCGPTPEER, flags) };
    check(program)?;
    // SAFETY: the call succeeded, so it has returned an open descriptor that no other code owns.
    Ok((person, File::from(unsafe { OwnedFd::from_raw_fd(program) })))
}

/// The modes of a terminal: input, output, control and local.
pub(crate) fn terminal_settings(terminal: &File) -> io::Result<[u32; 4]> {
    // SAFETY: a termios is plain numbers, and zeros are valid. The call writes it; the descriptor is open.
    let settings = unsafe {
        let mut settings: libc::termios = std::mem::zeroed();
        check(libc::tcgetattr(terminal.as_raw_fd(), &raw mut settings))?;
        settings
    };
    Ok([settings.c_iflag, settings.c_oflag, settings.c_cflag, settings.c_lflag])
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

/// Limits the address space of a command.
pub(crate) fn limit_address_space(command: &mut Command, bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: setrlimit is async-signal-safe and reads a live rlimit.
    let set = move || check(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) });
    // SAFETY: the closure makes only the async-signal-safe call above.
    unsafe { command.pre_exec(set) };
}

/// The CPU time of all children that were waited for, and of theirs, in seconds.
pub(crate) fn children_cpu_seconds() -> io::Result<f64> {
    // SAFETY: an rusage is plain numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes an rusage, which lives.
    check(unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) })?;
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(seconds(usage.ru_utime) + seconds(usage.ru_stime))
}

/// How a child has ended.
pub(crate) struct ChildExit {
    pub(crate) status: ExitStatus,
    /// The largest amount of memory that it has used.
    pub(crate) peak_bytes: u64,
}

/// Waits for a child. If that takes too long, kills it and returns `None`. Nothing else may wait for the
/// child.
pub(crate) fn wait_measured(child: &Child, longest: Duration) -> io::Result<Option<ChildExit>> {
    let end = Instant::now() + longest;
    loop {
        let (mut status, in_time) = (0, Instant::now() < end);
        if !in_time {
            signal_process(child.id(), libc::SIGKILL)?;
        }
        // SAFETY: an rusage is plain numbers, for which zeros are valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let how = if in_time { libc::WNOHANG } else { 0 };
        // SAFETY: the call writes a number and an rusage, both of which live.
        let pid = unsafe { libc::wait4(child.id() as i32, &raw mut status, how, &raw mut usage) };
        check(pid)?;
        if pid != 0 {
            let ended =
                ChildExit { status: ExitStatus::from_raw(status), peak_bytes: usage.ru_maxrss as u64 * 1024 };
            return Ok(in_time.then_some(ended));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
