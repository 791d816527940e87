//! macOS: launching the command, and sampling it by suspending its threads.

pub mod launch;
mod process;
mod pure;
mod sign;
pub mod signals;
mod sys;
mod system;

pub use crate::suspend::stop::StopHandle;
pub use process::{has_ended as process_has_ended, named as processes_named};
pub use pure::signing::DEBUGGER_ENTITLEMENTS;
pub use pure::status::ExitStatus;
pub use sign::sign_debugger;
pub use sys::preference::Preference;

pub use crate::command::Command;
pub use crate::end_reason::EndReason;
pub use crate::pace::{BudgetSummary, HoldSummary};
pub use crate::suspend::backend;
pub use crate::suspend::options::{Options, RecordingTarget};
pub use crate::suspend::outcome::{Notice, OpenError, RecordingOutcome, SampledBy};

pub(crate) use process::LISTING_COMMAND;
pub(crate) use sys::preference::cpus;
pub(crate) use sys::queue::Flag;
pub(crate) use system::MacOs as ThisSystem;

/// The current time, on the clock of all events.
pub fn now() -> nyquist_convert::event::Timestamp {
    nyquist_convert::event::Timestamp(sys::clock::monotonic_ns())
}
