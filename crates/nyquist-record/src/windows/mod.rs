//! Windows: launching the command, and sampling it by suspending its threads.

pub mod backend;
mod command;
pub mod launch;
mod listing;
mod options;
mod outcome;
mod process;
pub mod signals;
mod stop;
mod sys;
mod system;

pub use command::Command;
pub use options::{Options, Target};
pub use outcome::{Notice, OpenError, Outcome};
pub use process::{has_ended as process_has_ended, named as processes_named};
pub use stop::StopHandle;
pub use sys::process::Preference;

pub use crate::end_reason::EndReason;
pub use crate::pace::{BudgetSummary, HoldSummary};

/// The current time, on the clock of all events.
pub fn now() -> nyquist_convert::event::Timestamp {
    nyquist_convert::event::Timestamp(sys::clock::monotonic_ns())
}
