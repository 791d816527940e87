//! The error in the name of an event to record or count.

use crate::args::NOT_UNDERSTOOD;
use crate::failure::Failure;
use nyquist_record::linux::event_names::EventNameError;

/// The error in the name of an event, with its place and a hint.
pub(crate) fn event_failure(error: &EventNameError) -> Failure {
    error.hints().into_iter().fold(Failure::new(error.to_string()).status(NOT_UNDERSTOOD), Failure::hint)
}
