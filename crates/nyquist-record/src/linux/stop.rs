//! Stopping a recording, for every backend.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use super::sys::poll::signal;
pub use crate::end_reason::EndReason;

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
