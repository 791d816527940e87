//! Stopping a recording, and the reasons for its end, for every backend.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use super::sys::poll::signal;

/// Ends a recording, from any thread or a signal handler.
#[derive(Clone, Debug)]
pub struct StopHandle {
    pub(crate) counter: Arc<OwnedFd>,
}

impl StopHandle {
    /// Ends the recording. The samples so far are still returned.
    pub fn stop(&self) {
        signal(self.counter.as_fd());
    }
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The command, or every process that was attached to, ended.
    Exited,
    /// It was stopped.
    Stopped,
    /// The requested time was over.
    Duration,
}
