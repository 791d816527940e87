//! Copies of stacks that are walked before their samples are converted, by threads that need not wait for each other: what is
//! converted, in its turn, is the frames.

pub(crate) mod batch;
pub(crate) mod speculative_tracker;
pub(crate) mod walk_pool;
pub(crate) mod walkers;
