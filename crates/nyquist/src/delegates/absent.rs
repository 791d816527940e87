//! Other systems open files by paths that all processes share.

use std::process::ExitCode;

/// There are none to be started.
pub(crate) fn set_up() {}

/// This process was not started as one.
pub(crate) fn work() -> Option<ExitCode> {
    None
}
