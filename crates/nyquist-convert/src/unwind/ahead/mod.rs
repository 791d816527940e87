//! Walks stack copies before their samples are converted, on the threads that read a file. The converter then
//! only uses the frames, in order.

pub(crate) mod batch;
pub(crate) mod speculative_tracker;
