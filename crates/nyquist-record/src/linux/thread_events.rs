//! Opens events of threads. While a process calls exec, `perf_event_open` waits for it (`exec_update_lock`), and
//! another user's file system can make that last for ever. So a timer interrupts each wait.

use std::error::Error;
use std::ffi::CStr;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

use nyquist_convert::event::Pid;

use super::sys::clock::monotonic_ns;
use super::sys::event::{self, Subject, perf_event_attr};
use super::sys::ticker::Ticker;
use super::{proc, target_access};

/// How often a wait is interrupted. An exec usually takes less.
const INTERRUPTED_EVERY_NS: u64 = 100_000_000;

/// How often an event is tried. A process that answers in between may just have called exec again.
const MAX_TRIES: u32 = 50;

/// While it lives, opening an event interrupts itself if the calling thread waits for another.
#[derive(Debug)]
pub(super) struct WaitLimit {
    /// `None` if no timer can be made.
    _ticker: Option<Ticker>,
}

impl WaitLimit {
    /// For the calling thread.
    pub(super) fn begin() -> Self {
        let ticker = Ticker::new().ok();
        if let Some(ticker) = &ticker {
            ticker.set(monotonic_ns() + INTERRUPTED_EVERY_NS, INTERRUPTED_EVERY_NS);
        }
        Self { _ticker: ticker }
    }
}

/// The process of an event withholds itself: whoever attaches to it waits.
#[derive(Debug)]
struct Withheld(Pid);

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} calls exec, which does not end", self.0.0)
    }
}

impl Error for Withheld {}

/// The process whose exec an event has waited for, if that is the error.
pub(super) fn withholding(error: &io::Error) -> Option<Pid> {
    error.get_ref()?.downcast_ref::<Withheld>().map(|withheld| withheld.0)
}

/// Opens an event on a CPU.
///
/// # Errors
/// The kernel's, or that the thread's process [withholds itself](withholding).
pub(super) fn open(attr: perf_event_attr, subject: Subject<'_>, cpu: u32) -> io::Result<OwnedFd> {
    repeat(subject, || event::open(attr, subject, cpu))
}

/// Opens an event that only counts: on one CPU, or on all if `cpu` is `None`. `path` is that of a probe's file.
///
/// # Errors
/// As those of [`open`].
pub(super) fn open_counter(
    attr: perf_event_attr,
    subject: Subject<'_>,
    cpu: Option<u32>,
    path: Option<&CStr>,
) -> io::Result<OwnedFd> {
    repeat(subject, || event::open_counter(attr, subject, cpu, path))
}

/// Tries again as long as a signal interrupts it and the thread's process answers.
fn repeat(subject: Subject<'_>, mut open: impl FnMut() -> io::Result<OwnedFd>) -> io::Result<OwnedFd> {
    let mut tries = 0;
    loop {
        let error = match open() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => error,
            result => return result,
        };
        let Subject::Thread(tid) = subject else { return Err(error) };
        tries += 1;
        let pid = proc::status_number(tid, "Tgid").unwrap_or(tid);
        let is_others = target_access::may_withhold(pid);
        if tries >= MAX_TRIES || is_others && target_access::withholds_itself(pid) {
            target_access::note_silence(pid);
            return Err(io::Error::new(io::ErrorKind::TimedOut, Withheld(Pid(pid))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::sys::poll::PollSet;
    use std::time::{Duration, Instant};

    fn interrupted() -> io::Error {
        io::Error::from_raw_os_error(libc::EINTR)
    }

    #[test]
    fn an_interrupted_opening_is_tried_again() {
        let own = Subject::Thread(std::process::id());
        let mut tries = 0;
        let opened = repeat(own, || {
            tries += 1;
            if tries < 3 { Err(interrupted()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
        });
        assert_eq!((tries, opened.unwrap_err().raw_os_error()), (3, Some(libc::ESRCH)));
    }

    #[test]
    fn who_never_lets_an_event_be_opened_is_named() {
        let own = std::process::id();
        let mut tries = 0;
        let opened = repeat(Subject::Thread(own), || {
            tries += 1;
            Err(interrupted())
        });
        assert_eq!((tries, withholding(&opened.unwrap_err())), (MAX_TRIES, Some(Pid(own))));
        assert_eq!(withholding(&interrupted()), None);
    }

    #[test]
    fn the_timer_ends_a_wait_in_the_kernel() {
        let longest = Duration::from_secs(50);
        let begun = Instant::now();
        let _limit = WaitLimit::begin();
        PollSet::default().wait(Some(longest.as_millis() as u32)).unwrap();
        assert!(begun.elapsed() < longest);
    }
}
