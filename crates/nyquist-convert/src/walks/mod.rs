//! Copies of stacks that are walked before their samples are converted, by threads that need not wait for each other: what is
//! converted, in its turn, is the frames.

mod batch;
mod follower;
mod spare;
mod walkers;

pub(crate) use batch::{Batch, Step};
pub(crate) use follower::Follower;
pub(crate) use spare::SpareWalks;
pub(crate) use walkers::Walkers;
