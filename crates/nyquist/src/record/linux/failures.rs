//! The reasons why a recording could not begin, with hints.

use crate::failure::Failure;
use crate::record::linux::launch_advice;
use nyquist_record::linux::backend::OpenError;
use nyquist_record::linux::launch::LaunchError;

/// The failure to start a command, with hints.
pub(crate) fn launch_failure(error: &LaunchError) -> Failure {
    let failure = Failure::new(error.to_string()).limited_by(error).status(error.exit_code());
    launch_advice::advice(error).into_iter().fold(failure, Failure::hint)
}

/// The failure to record anything, with hints.
pub(crate) fn open_failure(error: &OpenError) -> Failure {
    let failure = Failure::new(error.to_string()).limited_by(error);
    error.advice().into_iter().fold(failure, Failure::hint)
}
