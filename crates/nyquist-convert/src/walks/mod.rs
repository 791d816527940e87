//! Copies of stacks that are walked before their samples are converted, by threads that need not wait for each other: what is
//! converted, in its turn, is the frames.

mod batch;
mod speculative_tracker;
mod walk_pool;
mod walkers;

pub(crate) use batch::{Batch, Step};
pub(crate) use speculative_tracker::SpeculativeTracker;
pub(crate) use walk_pool::WalkPool;
pub(crate) use walkers::Walkers;
