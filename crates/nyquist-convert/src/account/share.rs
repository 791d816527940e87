//! What a sample stands for.

/// What a sample stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) weight: u32,
    pub(crate) cpu_delta: u64,
    pub(crate) activity: Activity,
    /// How many more intervals the thread has spent in the kernel, where that may not be sampled.
    pub(crate) not_permitted: u32,
}

/// What a thread did in the time that a sample stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    Ran,
    /// It waited for something to happen.
    Waited,
    /// It waited for a CPU alone, in the middle of its code.
    Runnable,
}
