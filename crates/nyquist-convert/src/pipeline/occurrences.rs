//! Requested events that happened on threads: they become markers with stacks, and are counted.

use super::Pipeline;
use crate::event::{Occurrence, Timestamp};

impl Pipeline {
    /// Something happened on a thread.
    pub(super) fn occurrence(&mut self, now: Timestamp, cpu: Option<u32>, mut occurrence: Occurrence) {
        occurrence.count = self.occurrences.count_of(&occurrence);
        let is_known = self.processes.replace_released_tid(&mut occurrence.sample, cpu);
        let id = (occurrence.sample.pid, occurrence.sample.tid);
        if is_known
            && self.is_kept(id.0, now)
            && self.selects(id, cpu, now)
            && !self.sink.is_left_out(id)
            && self.occurrences.note(&occurrence)
        {
            let sample = &occurrence.sample;
            let truncated = self.walker.walk_uncounted((sample, now), &mut self.processes);
            self.place_frames(now, sample, truncated);
            let stack = self.sink.intern_stack(id.1, &self.processes);
            let row = self.sink.thread_row(now, id, &mut self.processes);
            self.sink.add_occurrence(row, now, &occurrence, stack);
        }
    }

    /// Lets as many new occurrences into the profile as have left it. O(markers).
    pub(super) fn note_markers_left(&mut self) {
        let left = self.sink.event_markers();
        self.occurrences.note_left(|name| left.get(name).copied().unwrap_or(0));
    }
}
