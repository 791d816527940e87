//! Samples whose user stack comes later, in a separate record.

use nyquist_object::Avma;
use rustc_hash::FxHashMap;

use crate::event::{Event, EventKind, Tid, Timestamp, UserStack};

/// The most samples that wait for their stacks. If a thread stays in the kernel, its stack never comes.
const MAX_WAITING_SAMPLES: usize = 100_000;

/// Samples that wait for their user stacks.
#[derive(Debug, Default)]
pub(crate) struct DeferredSamples {
    /// By thread and cookie of the record.
    waiting: FxHashMap<(Tid, u64), Vec<Event>>,
    count: usize,
}

impl DeferredSamples {
    /// Holds a sample back until its stack comes. If too many samples wait, returns all of them without their
    /// stacks.
    pub(crate) fn hold(&mut self, tid: Tid, cookie: u64, event: Event) -> Vec<Event> {
        self.waiting.entry((tid, cookie)).or_default().push(event);
        self.count += 1;
        if self.count > MAX_WAITING_SAMPLES { self.give_up() } else { Vec::new() }
    }

    /// Returns the samples that have this user stack, with the stack.
    pub(crate) fn complete(&mut self, tid: Tid, cookie: u64, user: &[Avma]) -> Vec<Event> {
        let mut events = self.waiting.remove(&(tid, cookie)).unwrap_or_default();
        self.count -= events.len();
        for event in &mut events {
            if let EventKind::Sample(sample) | EventKind::SwitchOut(sample) = &mut event.kind
                && !user.is_empty()
            {
                sample.user = UserStack::FramePointers(user.to_vec());
            }
        }
        events
    }

    /// Returns all waiting samples without their stacks, by time.
    pub(crate) fn give_up(&mut self) -> Vec<Event> {
        self.count = 0;
        let mut events: Vec<Event> = self.waiting.drain().flat_map(|(_, events)| events).collect();
        events.sort_by_key(|event| event.time);
        events
    }

    /// The time of the oldest waiting sample. Linear in their number, which is small.
    pub(crate) fn oldest(&self) -> Option<Timestamp> {
        self.waiting.values().flatten().map(|event| event.time).min()
    }
}
