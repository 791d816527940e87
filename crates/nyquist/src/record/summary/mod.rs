//! The messages about a recording that has ended.

mod events;
mod recorded;
mod waits;

pub(crate) use recorded::{Course, Recorded, print};
