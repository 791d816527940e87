//! The kind of object that a thread waits for.

/// The kind of object that a thread waits for, by its system call and the functions on its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitReason {
    /// A futex: the functions on the stack say for what kind of thing.
    Futex,
    /// A mutex, or the lock of a file.
    Lock,
    /// A read-write lock.
    ReadWriteLock,
    /// A condition variable.
    ConditionVariable,
    /// The end of another thread.
    ThreadEnd,
    /// A semaphore.
    Semaphore,
    /// The other threads at a barrier.
    Barrier,
    /// Another thread, which initializes a value that is initialized once.
    Once,
    /// To be woken by another thread, for a reason that the functions do not say.
    Park,
    /// A message.
    ChannelReceive,
    /// Room for a message.
    ChannelSend,
    /// The result of a future, a promise or a job.
    Future,
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
    /// To be continued, after a signal or a debugger has stopped it.
    Stopped,
    /// To be thawed: its control group is frozen.
    Frozen,
    /// Any other reason.
    Other,
}

impl WaitReason {
    /// All of them.
    pub const ALL: [Self; 24] = [
        Self::Futex,
        Self::Lock,
        Self::ReadWriteLock,
        Self::ConditionVariable,
        Self::ThreadEnd,
        Self::Semaphore,
        Self::Barrier,
        Self::Once,
        Self::Park,
        Self::ChannelReceive,
        Self::ChannelSend,
        Self::Future,
        Self::Sleep,
        Self::File,
        Self::Pipe,
        Self::Network,
        Self::Terminal,
        Self::Events,
        Self::Child,
        Self::Signal,
        Self::Page,
        Self::Stopped,
        Self::Frozen,
        Self::Other,
    ];

    /// The reason in one or two words, for users.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Futex => "futex",
            Self::Lock => "lock",
            Self::ReadWriteLock => "rwlock",
            Self::ConditionVariable => "condition variable",
            Self::ThreadEnd => "end of a thread",
            Self::Semaphore => "semaphore",
            Self::Barrier => "barrier",
            Self::Once => "once",
            Self::Park => "park",
            Self::ChannelReceive => "channel receive",
            Self::ChannelSend => "channel send",
            Self::Future => "future",
            Self::Sleep => "sleep",
            Self::File => "file",
            Self::Pipe => "pipe",
            Self::Network => "network",
            Self::Terminal => "terminal",
            Self::Events => "events",
            Self::Child => "child process",
            Self::Signal => "signal",
            Self::Page => "page",
            Self::Stopped => "stopped",
            Self::Frozen => "frozen",
            Self::Other => "other",
        }
    }
}
