//! Requested events that happened on threads: they are counted, and become markers with stacks.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Pipeline;
use crate::event::{Occurrence, OccurrenceCounter, Tid, Timestamp};

/// The counts of an event beside the clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OccurrenceCount {
    /// How many times it has happened, as far as this was recorded.
    pub count: u64,
    /// How many records it has.
    pub records: u64,
    /// How many of these did not become markers, because the limit was reached.
    pub left_out: u64,
}

/// The counts of all events beside the clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OccurrenceCounts {
    by_name: FxHashMap<Arc<str>, OccurrenceCount>,
    /// The records of all these events that the source dropped.
    pub lost: u64,
    /// The value of each counter at its last occurrence, by its number and thread.
    counted: FxHashMap<(u64, Option<Tid>), u64>,
}

impl OccurrenceCounts {
    /// The counts of the event with this name.
    pub fn of(&self, name: &str) -> OccurrenceCount {
        self.by_name.get(name).cloned().unwrap_or_default()
    }

    /// How many times an event has happened since its last occurrence. Occurrences of other processes must be
    /// counted too, because they account for the counter's increase up to them.
    fn count_of(&mut self, occurrence: &Occurrence) -> u64 {
        let Some(OccurrenceCounter { id, tid, value }) = occurrence.counter else { return occurrence.count };
        let before = self.counted.insert((id, tid), value).unwrap_or_default();
        value.saturating_sub(before).max(1)
    }

    /// Counts an occurrence, and returns whether it becomes a marker.
    fn note(&mut self, occurrence: &Occurrence) -> bool {
        let Occurrence { kind, count, .. } = occurrence;
        if !self.by_name.contains_key(&kind.name) {
            self.by_name.insert(Arc::clone(&kind.name), OccurrenceCount::default());
        }
        let Some(counted) = self.by_name.get_mut(&kind.name) else { return false };
        counted.count = counted.count.saturating_add(*count);
        counted.records += 1;
        let is_kept = counted.records <= kind.most;
        counted.left_out += u64::from(!is_kept);
        is_kept
    }
}

impl Pipeline {
    /// Something happened on a thread.
    pub(super) fn occurrence(&mut self, now: Timestamp, cpu: Option<u32>, mut occurrence: Occurrence) {
        occurrence.count = self.occurrences.count_of(&occurrence);
        let is_known = self.processes.name_nameless(&mut occurrence.sample, cpu);
        let id = (occurrence.sample.pid, occurrence.sample.tid);
        if is_known
            && self.is_kept(id.0, now)
            && self.selects(id, cpu, now)
            && !self.sink.is_left_out(id)
            && self.occurrences.note(&occurrence)
        {
            let sample = &occurrence.sample;
            let truncated = self.walker.walk_beside((sample, now), &mut self.processes);
            self.place_frames(now, sample, truncated);
            let stack = self.sink.intern_stack(id.1, &self.processes.modules);
            let row = self.sink.thread_row(now, id, &mut self.processes);
            self.sink.add_occurrence(row, now, &occurrence, stack);
        }
    }
}
