//! What ends a recording, and why it ended, whichever backend records.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use super::sys::poll::signal;

/// Ends a recording, from any thread or a signal handler.
#[derive(Clone, Debug)]
pub struct StopHandle {
    pub(crate) counter: Arc<OwnedFd>,
}

impl StopHandle {
    /// Ends the recording. What was sampled so far is still handed out.
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
    /// The time that was asked for was over.
    Duration,
}
