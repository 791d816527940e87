//! Passes events of losses and pauses on to the account, and marks them in the profile.

use super::Pipeline;
use crate::account::gap::Gap;
use crate::event::Timestamp;

impl Pipeline {
    /// Records were dropped since the CPU's last sample.
    pub(super) fn lose(&mut self, now: Timestamp, cpu: Option<u32>, records: u64) {
        self.processes.tracker.lose_records();
        let gap = self.account.losses.lose(now, cpu, records);
        self.show_gap(gap);
    }

    /// A CPU takes no samples from now on.
    pub(super) fn pause(&mut self, now: Timestamp, cpu: Option<u32>) {
        self.account.statistics.throttled += 1;
        self.account.losses.pause(now, cpu);
    }

    /// A CPU takes samples again.
    pub(super) fn resume(&mut self, now: Timestamp, cpu: Option<u32>) {
        if let Some(gap) = self.account.losses.resume(now, cpu) {
            self.show_gap(gap);
        }
    }

    /// Ends all pauses at the end of the recording, and shows the losses without a loss record.
    pub(crate) fn end_gaps(&mut self) {
        for gap in self.account.losses.end(self.last_time) {
            self.show_gap(gap);
        }
    }

    /// Counts the lost records of a gap, and adds a marker for it, if that time is wanted.
    fn show_gap(&mut self, gap: Gap) {
        if let Some(records) = gap.records {
            let lost = &mut self.account.statistics.lost;
            *lost = lost.saturating_add(records);
            self.sink.builder.meta_mut().lost_samples = *lost;
        }
        if self.wanted.selection.wants_moment(gap.cpu, self.sink.time(gap.end)) {
            self.sink.add_gap(gap);
        } else {
            self.sink.place_gaps();
        }
    }

    /// If records were lost, adds a sample for the rest of all CPU time. The lost records may include those
    /// of threads' total CPU time, so the thread of that time is not known.
    pub(crate) fn show_rest(&mut self) {
        let leaves_out = self.sink.shape.main_threads_only || !self.wanted.is_all();
        if self.account.losses.cpu_time_ns() == 0 || self.account.statistics.lost == 0 || leaves_out {
            return;
        }
        let Some(rest) = self.account.rest(self.sink.weight_on_cpu()) else { return };
        // An import does not know when the recording ended, but it knows when the last records were lost.
        let at = self.account.losses.last().unwrap_or(self.last_time);
        self.sink.add_rest(at, rest);
    }
}
