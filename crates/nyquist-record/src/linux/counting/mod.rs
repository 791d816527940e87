//! Counting without sampling: how often events happened in a command, in processes, or on the whole machine.

mod attr;
mod counters;
mod error;
mod wait;

pub use counters::{Count, Counters, Missing, Reading, Scope};
pub use error::CountError;
pub use wait::{Waited, Waiter};
