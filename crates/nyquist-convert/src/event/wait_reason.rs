//! The kind of object that a thread waits for.

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
