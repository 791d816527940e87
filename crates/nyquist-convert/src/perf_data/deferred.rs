//! Samples whose user's part of the stack comes later, in a record of its own.

use nyquist_object::Avma;
use rustc_hash::FxHashMap;

use crate::event::{Event, EventKind, Tid, Timestamp, UserStack};

/// How many samples wait for their stacks at most: a thread that stays in the kernel has one that never comes.
const MOST: usize = 100_000;

/// Samples that wait for the user's part of their stacks.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    /// By thread and the number of the record.
    waiting: FxHashMap<(Tid, u64), Vec<Event>>,
    count: usize,
}

impl Deferred {
    /// Holds a sample back until its stack comes. Returns those that waited for too long.
    pub(crate) fn hold(&mut self, tid: Tid, cookie: u64, event: Event) -> Vec<Event> {
        self.waiting.entry((tid, cookie)).or_default().push(event);
        self.count += 1;
        if self.count > MOST { self.give_up() } else { Vec::new() }
    }

    /// The samples whose stack this is, with it.
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

    /// All samples that wait, without their stacks, by time.
    pub(crate) fn give_up(&mut self) -> Vec<Event> {
        self.count = 0;
        let mut events: Vec<Event> = self.waiting.drain().flat_map(|(_, events)| events).collect();
        events.sort_by_key(|event| event.time);
        events
    }

    /// The time of the oldest sample that waits. Linear in their number, which is small.
    pub(crate) fn oldest(&self) -> Option<Timestamp> {
        self.waiting.values().flatten().map(|event| event.time).min()
    }
}
