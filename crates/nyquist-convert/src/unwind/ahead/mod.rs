//! Copies of stacks that are walked before their samples are converted, by the threads that read a file. The
//! converter then only takes the frames, in order.

pub(crate) mod batch;
pub(crate) mod speculative_tracker;
