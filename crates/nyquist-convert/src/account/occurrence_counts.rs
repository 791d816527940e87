//! How often requested events have happened.

use crate::event::{CounterValue, Occurrence, OccurrenceCounter, Tid};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The counts of an additional event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OccurrenceCount {
    /// How many times it has happened, as far as this was recorded.
    pub count: u64,
    /// How many records it has.
    pub records: u64,
    /// How many of these did not become markers, because the limit was reached.
    pub left_out: u64,
}

/// The counts of all additional events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OccurrenceCounts {
    by_name: FxHashMap<Arc<str>, OccurrenceCount>,
    /// How many markers of each event are in the profile, which are limited. The past of a long recording leaves it.
    in_profile: FxHashMap<Arc<str>, u64>,
    /// The records of all these events that the source dropped.
    pub lost: u64,
    /// The value of each counter at its last occurrence, by its number and thread: of one kind for each number.
    counted: FxHashMap<(u64, Option<Tid>), u64>,
}

impl OccurrenceCounts {
    /// The counts of the event with this name.
    pub fn of(&self, name: &str) -> OccurrenceCount {
        self.by_name.get(name).cloned().unwrap_or_default()
    }

    /// How many times an event has happened since its last occurrence. Occurrences of other processes must be
    /// counted too, because they account for the counter's increase up to them.
    pub(crate) fn count_of(&mut self, occurrence: &Occurrence) -> u64 {
        let Some(OccurrenceCounter { id, tid, value }) = occurrence.counter else { return occurrence.count };
        let count = match value {
            CounterValue::Total(total) => {
                let before = self.counted.insert((id, tid), total).unwrap_or_default();
                total.saturating_sub(before)
            }
            // The first occurrence of a thread has the same period as its second one.
            CounterValue::UntilNext(next) => self.counted.insert((id, tid), next).unwrap_or(next),
        };
        count.max(1)
    }

    /// Counts records that the source has dropped.
    pub(crate) fn lose(&mut self, records: u64) {
        self.lost = self.lost.saturating_add(records);
    }

    /// Counts an occurrence, and returns whether it becomes a marker.
    pub(crate) fn note(&mut self, occurrence: &Occurrence) -> bool {
        let Occurrence { kind, count, .. } = occurrence;
        if !self.by_name.contains_key(&kind.name) {
            self.by_name.insert(Arc::clone(&kind.name), OccurrenceCount::default());
        }
        let Some(counted) = self.by_name.get_mut(&kind.name) else { return false };
        counted.count = counted.count.saturating_add(*count);
        counted.records += 1;
        let in_profile = self.in_profile.entry(Arc::clone(&kind.name)).or_default();
        let is_kept = *in_profile < kind.most;
        *in_profile += u64::from(is_kept);
        counted.left_out += u64::from(!is_kept);
        is_kept
    }

    /// Notes how many markers an event has in the profile after others have left it.
    pub(crate) fn note_left(&mut self, in_profile: impl Fn(&str) -> u64) {
        for (name, count) in &mut self.in_profile {
            *count = in_profile(name);
        }
    }

    /// How many records did not become markers, of all these events.
    pub fn left_out(&self) -> u64 {
        self.by_name.values().fold(0, |sum, count| sum.saturating_add(count.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{OccurrenceKind, Pid, Sample, UserStack};

    fn counted(counts: &mut OccurrenceCounts, tid: u32, value: CounterValue) -> u64 {
        let counter = Some(OccurrenceCounter { id: 1, tid: Some(Tid(tid)), value });
        let kind = Arc::new(OccurrenceKind::new("faults", &[], 10));
        let sample = Sample::in_user_code(Pid(1), UserStack::None);
        counts.count_of(&Occurrence { kind, sample, count: 99, counter, values: Vec::new() })
    }

    #[test]
    fn a_total_counts_by_its_increase() {
        let mut counts = OccurrenceCounts::default();
        assert_eq!([5, 7, 7].map(|total| counted(&mut counts, 1, CounterValue::Total(total))), [5, 2, 1]);
    }

    /// A rate that was measured between two occurrences may be a thousand times too high.
    #[test]
    fn an_announced_period_counts_at_the_next() {
        let mut counts = OccurrenceCounts::default();
        let mut next = |tid, period| counted(&mut counts, tid, CounterValue::UntilNext(period));
        assert_eq!([next(1, 1), next(1, 1), next(1, 17_000), next(1, 30)], [1, 1, 1, 17_000]);
        assert_eq!([next(2, 40), next(2, 50)], [40, 40]);
    }
}
