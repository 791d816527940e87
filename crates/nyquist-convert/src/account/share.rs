//! What one sample stands for: its weight, its CPU time, and what the thread did.

use crate::event::WaitReason;

/// The share of a sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) weight: u64,
    pub(crate) cpu_delta: u64,
    pub(crate) activity: Activity,
    /// How many more intervals the thread has spent in the kernel, if the kernel may not be sampled.
    pub(crate) not_permitted: u64,
}

/// The activity of a thread in the time that a sample stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    Ran,
    /// It waited for something, whose kind may be known.
    Waited(Option<WaitReason>),
    /// It waited only for a CPU, in the middle of its code.
    Runnable,
}
