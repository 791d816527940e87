//! Counting without sampling: how often events occurred in a command, in processes, or on the whole machine.

mod attr;
mod command_threads;
mod counted_threads;
mod counters;
mod error;
mod thread_account;
mod thread_tracer;
mod wait;

pub use command_threads::CommandThreads;
pub use counted_threads::{CountedThreads, ThreadCounts};
pub use counters::{CountedScope, EventCounters, EventReading, EventTotal, MissingCount};
pub use error::CountError;
pub use thread_account::ThreadAccount;
pub use wait::{WaitEnd, Waiter};
