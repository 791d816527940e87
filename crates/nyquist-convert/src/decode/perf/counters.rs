//! The counters of a recording: what they count, on which CPUs, and which have taken over from others.

use std::sync::Arc;

/// The events that have taken over from others, by the kernel's numbers of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Successors {
    /// Ascending.
    ids: Arc<[u64]>,
}

impl FromIterator<u64> for Successors {
    fn from_iter<I: IntoIterator<Item = u64>>(ids: I) -> Self {
        let mut ids: Vec<_> = ids.into_iter().collect();
        ids.sort_unstable();
        Self { ids: ids.into() }
    }
}

impl Successors {
    pub(super) fn contains(&self, id: u64) -> bool {
        self.ids.binary_search(&id).is_ok()
    }
}

/// The meaning of the counter values in samples and at the ends of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterMeaning {
    /// The last one is the thread's CPU time in nanoseconds.
    CpuTime,
    /// Something else. They are not used.
    Other,
}

/// On which CPU each event counts, by the kernel's number of the event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventCpus {
    /// Ascending by number.
    by_id: Arc<[(u64, u32)]>,
}

impl FromIterator<(u64, u32)> for EventCpus {
    fn from_iter<I: IntoIterator<Item = (u64, u32)>>(events: I) -> Self {
        let mut by_id: Vec<_> = events.into_iter().collect();
        by_id.sort_unstable();
        Self { by_id: by_id.into() }
    }
}

impl EventCpus {
    /// The CPU of the event with this number. Takes time logarithmic in the number of events.
    pub fn get(&self, id: u64) -> Option<u32> {
        let at = self.by_id.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.by_id.get(at).map(|(_, cpu)| *cpu)
    }
}

/// The unit of a sample's period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// The unit of the profile: nanoseconds of CPU time by a clock, or events.
    Provided,
    /// CPU cycles, from which their CPU time is computed.
    Cycles,
    /// Another unit, or none. Every sample stands for this many units of the profile.
    Each(u64),
}
