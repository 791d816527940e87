//! A thread that was made ready to run: by which thread, and where that one was.

use super::{Sample, Tid};

/// A thread was made ready to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Wakeup {
    /// The thread that the CPU was running, and its stack. Its period and CPU time are not looked at.
    pub sample: Sample,
    /// The thread that was made ready.
    pub woken: Tid,
    /// Whether an interrupt did it, so that the running thread has nothing to do with it.
    pub in_interrupt: bool,
}
