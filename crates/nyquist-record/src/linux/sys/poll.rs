//! Waits for descriptors. Also makes the descriptors that other threads and processes signal with.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::{check, check_long};

/// A set of descriptors that are polled together.
#[derive(Debug, Default)]
pub(crate) struct PollSet {
    entries: Vec<libc::pollfd>,
}

/// The state of a descriptor after a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Readiness {
    pub(crate) readable: bool,
    pub(crate) hung_up: bool,
}

impl PollSet {
    /// Adds a descriptor to read from, and returns its index. It must stay open while it is in the set;
    /// otherwise its number is reported as hung up.
    pub(crate) fn add(&mut self, fd: RawFd) -> usize {
        self.entries.push(libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        self.entries.len() - 1
    }

    /// Replaces the descriptor at an index, or removes it.
    pub(crate) fn replace(&mut self, place: usize, fd: Option<RawFd>) {
        if let Some(entry) = self.entries.get_mut(place) {
            entry.fd = fd.unwrap_or(-1);
            entry.revents = 0;
        }
    }

    /// Waits until a descriptor is ready or the time is over. An interruption by a signal counts as the
    /// latter. `None` waits forever.
    pub(crate) fn wait(&mut self, timeout_ms: Option<u32>) -> io::Result<()> {
        let timeout = timeout_ms.map_or(-1, |ms| libc::c_int::try_from(ms).unwrap_or(libc::c_int::MAX));
        let count = self.entries.len() as libc::nfds_t;
        // SAFETY: the pointer and the count are those of a Vec of initialised pollfds, which the call writes to.
        match check(unsafe { libc::poll(self.entries.as_mut_ptr(), count, timeout) }) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    /// The state of the descriptor at an index after the last wait.
    pub(crate) fn ready(&self, place: usize) -> Readiness {
        let seen = self.entries.get(place).map_or(0, |entry| entry.revents);
        Readiness {
            readable: seen & libc::POLLIN != 0,
            hung_up: seen & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0,
        }
    }
}

/// A counter that can be polled: `eventfd`.
pub(crate) fn event_counter() -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointers.
    let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else uses it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Increments an event counter. Safe to call in a signal handler.
pub(crate) fn signal(counter: BorrowedFd<'_>) {
    let one = 1_u64.to_ne_bytes();
    // SAFETY: the pointer and the length are those of `one`. A counter that is full needs no further signal.
    unsafe { libc::write(counter.as_raw_fd(), one.as_ptr().cast(), one.len()) };
}

/// A descriptor that becomes readable when the process ends: `pidfd_open`, Linux 5.3.
pub(crate) fn process_descriptor(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointers.
    let fd = check_long(unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) })?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else uses it; it is close-on-exec.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}
