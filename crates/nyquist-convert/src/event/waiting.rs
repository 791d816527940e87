//! A thread that was found waiting: where it waits, and for which object.

use std::sync::Arc;

use super::{Sample, Tid};

/// A thread that was found waiting. It waits from the time when it left its CPU until it is back on one.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// The thread, and its stack. The sample's period and CPU time are not used.
    pub sample: Sample,
    /// The kind of object that it waits for.
    pub reason: WaitReason,
    /// The thread that holds the lock, if that is known.
    pub holder: Option<Tid>,
    /// The time since the previous look at the thread, in nanoseconds. Shorter waits are seen by chance, and
    /// each moment of them is equally likely.
    pub checked_before_ns: u64,
    /// The object, if it is known: the path of a file, `socket:[123]`, the address of a futex. The recorded
    /// process controls this text.
    pub object: Option<Arc<str>>,
}

/// The kind of object that a thread waits for, by its system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitReason {
    /// A futex: a mutex, a condition variable, the end of another thread. Also locks of files and semaphores.
    Lock,
    /// A time.
    Sleep,
    /// A file, or the device that it is on.
    File,
    /// A pipe.
    Pipe,
    /// A socket.
    Network,
    /// A terminal.
    Terminal,
    /// One of several events: `poll`, `select`, `epoll_wait`.
    Events,
    /// The end of a child process.
    Child,
    /// A signal.
    Signal,
    /// A page of its memory. The thread is in no system call.
    Page,
    /// Any other reason.
    Other,
}

impl WaitReason {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Lock,
        Self::Sleep,
        Self::File,
        Self::Pipe,
        Self::Network,
        Self::Terminal,
        Self::Events,
        Self::Child,
        Self::Signal,
        Self::Page,
        Self::Other,
    ];

    /// The reason in one or two words, for users.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Sleep => "sleep",
            Self::File => "file",
            Self::Pipe => "pipe",
            Self::Network => "network",
            Self::Terminal => "terminal",
            Self::Events => "events",
            Self::Child => "child process",
            Self::Signal => "signal",
            Self::Page => "page",
            Self::Other => "other",
        }
    }
}
