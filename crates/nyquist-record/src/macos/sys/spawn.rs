//! Starting a program suspended, and its end.

use std::ffi::{CStr, CString, c_char, c_int};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::time::Duration;

use super::super::pure::child::ReapedChild;
use super::check;

/// The attributes of a process to be started.
struct SpawnAttributes(libc::posix_spawnattr_t);

impl SpawnAttributes {
    /// The process waits until it gets `SIGCONT`, and none of its signals is ignored because this program
    /// ignores it.
    fn suspended() -> io::Result<Self> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the call initialises what the pointer leads to, and returns an error number if it does not.
        result(unsafe { libc::posix_spawnattr_init(attributes.as_mut_ptr()) })?;
        // SAFETY: the call above has succeeded.
        let mut made = Self(unsafe { attributes.assume_init() });
        let flags = libc::POSIX_SPAWN_START_SUSPENDED | libc::POSIX_SPAWN_SETSIGDEF;
        // SAFETY: the attributes are initialised, and live through the call.
        result(unsafe { libc::posix_spawnattr_setflags(&raw mut made.0, flags as libc::c_short) })?;
        let mut signals = MaybeUninit::uninit();
        // SAFETY: sigemptyset(3) initialises the set, and both numbers are of signals.
        let signals = unsafe {
            libc::sigemptyset(signals.as_mut_ptr());
            libc::sigaddset(signals.as_mut_ptr(), libc::SIGPIPE);
            libc::sigaddset(signals.as_mut_ptr(), libc::SIGXFSZ);
            signals.assume_init()
        };
        // SAFETY: the attributes and the set are initialised, and live through the call, which copies the set.
        result(unsafe { libc::posix_spawnattr_setsigdefault(&raw mut made.0, &raw const signals) })?;
        Ok(made)
    }
}

impl Drop for SpawnAttributes {
    fn drop(&mut self) {
        // SAFETY: the attributes are initialised, and not used any more.
        unsafe { libc::posix_spawnattr_destroy(&raw mut self.0) };
    }
}

/// Starts a program, which waits for [`resume`]. It has this process's descriptors, unless they are closed for
/// other programs, and its terminal. `arguments` begin with the program's own name.
pub(crate) fn suspended(program: &CStr, arguments: &[CString], environment: &[CString]) -> io::Result<u32> {
    let attributes = SpawnAttributes::suspended()?;
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    let mut pid = 0;
    // SAFETY: posix_spawn(2) reads strings that end with a zero from arrays that end with a null pointer, and
    // changes neither. All of them live through the call.
    result(unsafe {
        libc::posix_spawn(
            &raw mut pid,
            program.as_ptr(),
            ptr::null(),
            &raw const attributes.0,
            arguments.as_ptr(),
            environment.as_ptr(),
        )
    })?;
    Ok(pid.unsigned_abs())
}

/// The array of strings that calls for programs need: it ends with a null pointer.
fn pointers(strings: &[CString]) -> Vec<*mut c_char> {
    strings.iter().map(|string| string.as_ptr().cast_mut()).chain([ptr::null_mut()]).collect()
}

/// The result of a call that returns an error number.
fn result(error: c_int) -> io::Result<()> {
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Lets a suspended process run (`SIGCONT`).
pub(crate) fn resume(pid: u32) -> io::Result<()> {
    signal(pid, libc::SIGCONT)
}

/// Sends a signal to a process, which must be a child that was not reaped.
pub(crate) fn signal(pid: u32, number: i32) -> io::Result<()> {
    let pid = own_child(pid)?;
    // SAFETY: the call takes numbers. The number is of one process, neither of a group nor of all.
    check(unsafe { libc::kill(pid, number) })
}

/// Waits until a child has ended, and does not reap it.
pub(crate) fn await_end(pid: u32) -> io::Result<()> {
    let pid = own_child(pid)?;
    loop {
        let mut information = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: `information` lives through the call.
        let waited = check(unsafe {
            libc::waitid(
                libc::P_PID,
                pid as libc::id_t,
                information.as_mut_ptr(),
                libc::WEXITED | libc::WNOWAIT,
            )
        });
        match waited {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Reaps a child, and waits for its end if it has not ended.
pub(crate) fn reap(pid: u32) -> io::Result<ReapedChild> {
    let reaped = wait_for(pid, 0)?;
    reaped.ok_or_else(|| io::Error::other("a wait has returned before the end of the process"))
}

/// Reaps a child if it has ended.
pub(crate) fn reap_if_ended(pid: u32) -> io::Result<Option<ReapedChild>> {
    wait_for(pid, libc::WNOHANG)
}

fn wait_for(pid: u32, options: c_int) -> io::Result<Option<ReapedChild>> {
    let pid = own_child(pid)?;
    loop {
        let (mut status, mut used) = (0, MaybeUninit::<libc::rusage>::zeroed());
        // SAFETY: both pointers live through the call.
        let found = unsafe { libc::wait4(pid, &raw mut status, options, used.as_mut_ptr()) };
        match check(found) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(()) if found == 0 => return Ok(None),
            Ok(()) => {
                // SAFETY: the structure is plain numbers, for which zeros are valid, and the call has set them.
                let used = unsafe { used.assume_init() };
                let (user, system) = (duration(used.ru_utime), duration(used.ru_stime));
                return Ok(Some(ReapedChild { status, user, system }));
            }
        }
    }
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or_default())
}

/// The number of a process as system calls take it. Zero and negative numbers mean several processes.
fn own_child(pid: u32) -> io::Result<libc::pid_t> {
    libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 1).ok_or_else(|| io::ErrorKind::NotFound.into())
}
