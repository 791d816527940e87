//! A thread that was made ready to run, and the thread that did this with its stack.

use super::ids::Tid;
use super::sample::Sample;

/// A thread was made ready to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Wakeup {
    /// The thread that the CPU was running, and its stack. The sample's period and CPU time are not used.
    pub sample: Sample,
    /// The thread that was made ready.
    pub woken: Tid,
    /// Whether an interrupt made it ready. Then the running thread is not the cause.
    pub in_interrupt: bool,
}
