//! Stopping a recording, from any thread.

use std::sync::Arc;

use super::here::Flag;

/// Ends a recording, from any thread.
#[derive(Clone, Debug)]
pub struct StopHandle {
    pub(crate) flag: Arc<Flag>,
}

impl StopHandle {
    /// Ends the recording. The samples so far are still returned.
    pub fn stop(&self) {
        self.flag.set();
    }
}
