//! How threads are sampled: by suspending them.

use crate::args::{Backend, RecordArgs};
use crate::failure::Failure;
use crate::system::NAME;
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

/// Whether all of the machine is recorded.
pub(crate) fn whole_machine(_args: &RecordArgs) -> Option<RecordingTarget> {
    None
}

/// The options of a recording.
pub(crate) fn options(args: &RecordArgs, duration: Option<Duration>) -> Options {
    Options { rate_hz: args.rate, duration, stack_bytes: args.stacks.stack_size }
}
