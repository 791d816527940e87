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

/// Waits for wake-ups by one descriptor, whether or not it is readable, until another one is readable (epoll(7)).
#[derive(Debug)]
pub(crate) struct WakeUps(OwnedFd);

impl WakeUps {
    /// Both must stay open while it is in use.
    pub(crate) fn new(waker: BorrowedFd<'_>, stop: BorrowedFd<'_>) -> io::Result<Self> {
        // SAFETY: the call takes no pointers.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the kernel has just returned this descriptor, and nothing else uses it.
        let this = Self(unsafe { OwnedFd::from_raw_fd(fd) });
        for (fd, flags) in [(waker, libc::EPOLLIN | libc::EPOLLET), (stop, libc::EPOLLIN)] {
            let mut event =
                libc::epoll_event { events: flags as u32, u64: u64::from(flags == libc::EPOLLIN) };
            // SAFETY: all are open descriptors, and the call reads the live `event`, which it does not keep.
            check(unsafe {
                libc::epoll_ctl(this.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &raw mut event)
            })?;
        }
        Ok(this)
    }

    /// Waits for the next wake-up. Returns false if it is time to stop.
    pub(crate) fn wait(&self) -> bool {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: the kernel writes at most one event to the live `event`.
        let count = unsafe { libc::epoll_wait(self.0.as_raw_fd(), &raw mut event, 1, -1) };
        let is_interrupted = count < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
        is_interrupted || (count > 0 && event.u64 == 0)
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
