//! Which threads a recording is of, and the subject and the reach of its events.

use std::os::fd::BorrowedFd;

use nyquist_convert::event::{Pid, Tid};

use super::attr::Reach;
use crate::linux::sys::event::Subject;

/// The threads that are recorded.
#[derive(Clone, Copy, Debug)]
pub(super) enum RecordedScope<'a> {
    /// A process from its next exec on, with all its descendants.
    Child(Pid),
    /// All threads of running processes, of all their descendants, and of all future ones.
    Running(&'a [Pid]),
    /// One thread of a running process.
    Thread(Pid, Tid),
    /// A control group, identified by its folder.
    Group(BorrowedFd<'a>),
    /// All threads.
    Everyone,
}

impl<'a> RecordedScope<'a> {
    pub(super) fn reach(self) -> Reach {
        match self {
            Self::Child(_) => Reach::Thread { from_exec: true },
            Self::Running(_) => Reach::Thread { from_exec: false },
            Self::Thread(..) => Reach::OneThread,
            Self::Group(_) | Self::Everyone => Reach::Cpu,
        }
    }

    /// The subject of the events that own the rings. For running processes, this is the given thread of the
    /// first.
    pub(super) fn first(self, thread: u32) -> Subject<'a> {
        match self {
            Self::Child(_) | Self::Running(_) | Self::Thread(..) => Subject::Thread(thread),
            Self::Group(folder) => Subject::Group(folder),
            Self::Everyone => Subject::Everyone,
        }
    }

    /// The process that errors name.
    pub(super) fn pid(self) -> Pid {
        match self {
            Self::Child(pid) | Self::Thread(pid, _) => pid,
            Self::Running(pids) => pids.first().copied().unwrap_or(Pid(0)),
            Self::Group(_) | Self::Everyone => Pid(0),
        }
    }
}
