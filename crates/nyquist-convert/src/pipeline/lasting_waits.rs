//! Waits that have not ended: their lengths so far, for views of a running recording.

use super::Pipeline;
use crate::event::Timestamp;

impl Pipeline {
    /// Counts all waits up to now. They continue from there.
    pub(crate) fn count_lasting_waits(&mut self, now: Timestamp) {
        for (tid, wait) in self.off_cpu.split(now) {
            self.add_wait(tid, &wait, now);
        }
    }

    /// Counts all waits up to the last event. They restart at `at`, because everything before it is
    /// forgotten.
    pub(super) fn restart_waits(&mut self, at: Timestamp) {
        let lasting = self.off_cpu.all();
        self.end_all_waits();
        self.off_cpu.restart(lasting, self.last_time.max(at));
    }
}
