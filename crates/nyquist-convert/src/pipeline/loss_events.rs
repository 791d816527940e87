//! Passes events of losses and pauses on to the account, and marks them in the profile.

use super::Pipeline;
use crate::account::gap::Gap;
use crate::event::Timestamp;

impl Pipeline {
    /// Records were dropped since the CPU's last sample.
    pub(super) fn lose(&mut self, now: Timestamp, cpu: Option<u32>, records: u64) {
        self.processes.lose_records();
        let gap = self.account.lose(now, cpu, records);
        self.show_gap(gap);
    }

    /// A CPU takes no samples from now on.
    pub(super) fn pause(&mut self, now: Timestamp, cpu: Option<u32>) {
        self.account.pause(now, cpu);
    }

    /// A CPU takes samples again.
    pub(super) fn resume(&mut self, now: Timestamp, cpu: Option<u32>) {
        if let Some(gap) = self.account.resume(now, cpu) {
            self.show_gap(gap);
        }
    }

    /// Ends all pauses at the end of the recording, and shows the losses without a loss record.
    pub(super) fn end_gaps(&mut self) {
        for gap in self.account.end_gaps(self.last_time) {
            self.show_gap(gap);
        }
    }

    /// Shows how many records were lost, and adds a marker for the gap, if that time is requested.
    fn show_gap(&mut self, gap: Gap) {
        self.sink.note_lost(self.account.lost());
        if self.requested.selects_moment(gap.cpu, gap.end) {
            self.sink.add_gap(gap);
        } else {
            self.sink.place_gaps();
        }
    }

    /// If records may have been lost, adds a sample for the rest of all CPU time.
    pub(super) fn show_rest(&mut self) {
        let leaves_out = self.shape.main_threads_only || !self.requested.is_all();
        if leaves_out || !self.account.may_have_rest() {
            return;
        }
        let Some(rest) = self.account.rest(self.sink.weight_on_cpu()) else { return };
        // An import does not know when the recording ended, but it knows when the last records were lost.
        let at = self.account.last_loss().unwrap_or(self.last_time);
        self.sink.add_rest(at, rest);
    }
}
