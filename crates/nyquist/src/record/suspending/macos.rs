//! How threads are sampled: by suspending them.

use crate::args::{Backend, RecordArgs};
use crate::failure::Failure;
use crate::system::NAME;
use crate::system::recorder::backend::OpenError;
use nyquist_record::macos::{Options, RecordingTarget};
use std::time::Duration;

/// Whether the kernel's events are recorded.
pub(crate) fn is_by_events(_args: &RecordArgs) -> bool {
    false
}

/// The failure of an option that needs the kernel's events.
pub(crate) fn needs_events(option: &str) -> Failure {
    Failure::new(format!("{option} is not available on {NAME}, where threads are sampled by suspending them"))
        .hint(format!("leave out {option}"))
}

/// Refuses ways to sample that are not there.
pub(crate) fn check(args: &RecordArgs) -> Result<(), Failure> {
    if args.backend == Backend::Etw { Err(needs_events("--backend etw")) } else { Ok(()) }
}

/// The hint with a line that runs this command with more rights: none are missing for what is recorded here.
pub(crate) fn as_administrator(_error: &OpenError) -> Option<String> {
    None
}

/// Whether all of the machine is recorded.
pub(crate) fn whole_machine(_args: &RecordArgs) -> Option<RecordingTarget> {
    None
}

/// The options of a recording.
pub(crate) fn options(args: &RecordArgs, duration: Option<Duration>) -> Options {
    Options { rate_hz: args.rate, duration, stack_bytes: args.stacks.stack_size }
}
