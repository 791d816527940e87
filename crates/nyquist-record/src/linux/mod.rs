//! Linux: launching the command, and the backends that sample it.

mod budget;
mod command;
mod cpus;
mod kernel;
pub mod launch;
mod limits;
pub mod perf;
mod pmu;
mod proc;
mod sys;

pub use command::{Command, Credentials};

/// The point in time that is now, on the clock of every event.
pub fn now() -> nyquist_convert::event::Timestamp {
    nyquist_convert::event::Timestamp(sys::clock::monotonic_ns())
}
