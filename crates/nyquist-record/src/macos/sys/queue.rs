//! Waiting for a point in time or for the requested end, whichever comes first (kqueue(2)).

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr;

use super::check;

/// The number of the only event in the queue.
const STOP: usize = 1;
/// The longest wait in seconds, which the system accepts anywhere.
const MAX_WAIT_SECONDS: u64 = 3600;

/// Something that one thread sets and others wait for. It stays set.
#[derive(Debug)]
pub(crate) struct Flag(OwnedFd);

impl Flag {
    /// One that is not set.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: the call takes nothing and returns a new descriptor or -1.
        let descriptor = unsafe { libc::kqueue() };
        check(descriptor)?;
        // SAFETY: the call has just made the descriptor, and nothing else closes it.
        let flag = Self(unsafe { OwnedFd::from_raw_fd(descriptor) });
        // kqueue(2): a descriptor of a queue is not inherited by a forked child, and without EV_CLEAR, an event
        // stays pending after it was returned.
        flag.change(libc::EV_ADD, 0)?;
        Ok(flag)
    }

    /// Sets it.
    pub(crate) fn set(&self) {
        // It fails for no valid queue.
        let _ = self.change(0, libc::NOTE_TRIGGER);
    }

    /// Waits for a time span in nanoseconds, or until it is set. Returns whether it is set. After a signal, it
    /// returns early.
    pub(crate) fn wait(&self, span_ns: u64) -> bool {
        let span = libc::timespec {
            tv_sec: (span_ns / 1_000_000_000).min(MAX_WAIT_SECONDS) as libc::time_t,
            tv_nsec: (span_ns % 1_000_000_000) as libc::c_long,
        };
        let mut found = event(0, 0);
        // SAFETY: there are no changes; `found` has room for one event, and both pointers live through the call.
        let count =
            unsafe { libc::kevent(self.0.as_raw_fd(), ptr::null(), 0, &raw mut found, 1, &raw const span) };
        count == 1
    }

    fn change(&self, flags: u16, actions: u32) -> io::Result<()> {
        let change = event(flags, actions);
        // SAFETY: there is one change, which lives through the call, and no room for events.
        check(unsafe {
            libc::kevent(self.0.as_raw_fd(), &raw const change, 1, ptr::null_mut(), 0, ptr::null())
        })
    }
}

/// The event that programs trigger themselves (`EVFILT_USER`).
fn event(flags: u16, actions: u32) -> libc::kevent {
    libc::kevent {
        ident: STOP,
        filter: libc::EVFILT_USER,
        flags,
        fflags: actions,
        data: 0,
        udata: ptr::null_mut(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_stays_set() {
        let flag = Flag::new().unwrap();
        assert!(!flag.wait(1_000_000) && !flag.wait(0));
        flag.set();
        assert!(flag.wait(0) && flag.wait(u64::MAX));
    }
}
