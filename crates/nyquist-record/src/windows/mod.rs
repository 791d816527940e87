//! Windows: launching the command, and sampling it by suspending its threads, or by the kernel's events.

pub mod backend;
mod etw;
pub mod launch;
mod listing;
mod process;
mod sampling_method;
pub mod signals;
mod sys;
mod system;

pub use crate::suspend::stop::StopHandle;
pub use process::{has_ended as process_has_ended, named as processes_named};
pub use sampling_method::SamplingMethod;
pub use sys::process::Preference;

pub use crate::command::Command;
pub use crate::end_reason::EndReason;
pub use crate::etw::EtwDenied;
pub use crate::pace::{BudgetSummary, HoldSummary};
pub use crate::suspend::options::{Options, RecordingTarget};
pub use crate::suspend::outcome::{Notice, OpenError, RecordingOutcome, SampledBy};

pub(crate) use process::LISTING_COMMAND;
pub(crate) use sys::process::cpus;
pub(crate) use sys::timer::Flag;
pub(crate) use system::WindowsSystem as ThisSystem;

/// The current time, on the clock of all events.
pub fn now() -> nyquist_convert::event::Timestamp {
    nyquist_convert::event::Timestamp(sys::clock::monotonic_ns())
}
