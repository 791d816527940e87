//! Copies of stacks walked ahead of the converter, on a thread of their own.
//!
//! Such a thread puts events in order, follows what is mapped where, and walks each copy. What the converter gets is what it
//! would have found itself; what only it can know, it walks itself.

use nyquist_unwind::{FrameAddress, Unwinder};

use super::beside::{Beside, Step, Worker};
use crate::converter::{Converter, Finished};
use crate::event::{Event, EventKind, Pid, Sample, Tid, Timestamp, Unwound, UserStack};
use crate::jit::{self, JitDumps};
use crate::modules::ModuleStore;
use crate::order::Order;
use crate::stages::NAMELESS;
use crate::track::Tracker;
use crate::walk::Walker;

/// A worker that walks stacks, and hands everything on.
pub(super) struct WalkAhead<'scope> {
    next: Beside<'scope>,
    order: Order,
    follower: Follower,
}

impl<'scope> WalkAhead<'scope> {
    /// A worker before a converter that has seen nothing, which `next` is given.
    pub(super) fn new(converter: Converter, next: impl FnOnce(Converter) -> Beside<'scope>) -> Self {
        let modules = converter.modules_beside();
        Self { next: next(converter), order: Order::default(), follower: Follower::new(modules) }
    }

    fn release(&mut self, complete_before: Timestamp) {
        for mut event in self.order.release(complete_before) {
            self.follower.follow(&mut event);
            self.next.add(Step::Push(event));
        }
    }
}

impl Worker for WalkAhead<'_> {
    fn take(&mut self, step: Step) {
        match step {
            Step::Push(event) => {
                if let EventKind::Map(mapping) = &event.kind {
                    self.next.add_now(Step::Note(mapping.clone()));
                }
                self.order.push(event);
            }
            Step::Advance(complete_before) => {
                self.release(complete_before);
                self.next.add(step);
            }
            Step::Note(_) => self.next.add(step),
        }
    }

    fn finish(mut self) -> Finished {
        self.release(Timestamp(u64::MAX));
        self.next.finish()
    }
}

/// Follows what is mapped where, and walks stacks.
struct Follower {
    tracker: Tracker,
    modules: ModuleStore,
    dumps: JitDumps,
    unwinder: Unwinder,
    /// Whether a jitdump may describe code: what is known of it, the converter knows alone.
    has_dumps: bool,
    /// Whether cut stacks may be completed by what was read of them later, which the converter does.
    has_live_stacks: bool,
    /// Kept to save its memory.
    frames: Vec<FrameAddress>,
}

impl Follower {
    fn new(modules: ModuleStore) -> Self {
        Self {
            tracker: Tracker::default(),
            modules,
            dumps: JitDumps::default(),
            unwinder: Unwinder::new(),
            has_dumps: false,
            has_live_stacks: false,
            frames: Vec::new(),
        }
    }

    /// Takes note of what an event changes, and walks its stack if it has one.
    fn follow(&mut self, event: &mut Event) {
        let now = event.time;
        match &mut event.kind {
            // The converter knows whose the samples of a process without a number are.
            EventKind::Sample(sample) if sample.pid != NAMELESS => {
                self.know(now, (sample.pid, sample.tid));
                if let Some(unwound) = self.walk(now, sample) {
                    sample.user = UserStack::Unwound(Box::new(unwound));
                }
            }
            EventKind::Total { pid, tid, .. } => self.know(now, (*pid, *tid)),
            EventKind::Marker(marker) => self.know(now, (marker.pid, marker.thread())),
            EventKind::Counter(counter) => self.know(now, (counter.pid, Tid(counter.pid.0))),
            EventKind::Map(mapping) => {
                self.has_dumps |= jit::is_dump(mapping);
                self.tracker.map(mapping, now, &mut self.modules);
            }
            EventKind::Unmap { pid, start, len } => self.tracker.unmap(*pid, *start, *len),
            EventKind::Fork { pid, tid, parent_pid, parent_tid } => {
                self.tracker.fork(*pid, *tid, (*parent_pid, *parent_tid), now);
            }
            EventKind::Name { pid, tid, name, exec } => self.tracker.name(*pid, *tid, name, *exec, now),
            EventKind::Exit { pid, tid } => self.tracker.exit(*pid, *tid, now),
            EventKind::LiveStack(_) => self.has_live_stacks = true,
            _ => {}
        }
    }

    /// A thread is heard of, as the converter takes note of it: a process ends with the last thread that is known.
    fn know(&mut self, now: Timestamp, (pid, tid): (Pid, Tid)) {
        self.tracker.process(pid, now).thread(tid, now);
    }

    fn walk(&mut self, now: Timestamp, sample: &Sample) -> Option<Unwound> {
        if self.has_dumps {
            return None;
        }
        let UserStack::Copied { registers, stack, limited } = &sample.user else { return None };
        let (process, modules) = (self.tracker.process(sample.pid, now), &self.modules);
        let walker = Walker { unwinder: &mut self.unwinder, process, modules, dumps: &self.dumps };
        self.frames.clear();
        let walked = walker.walk((sample, now), registers, stack, &mut self.frames);
        if self.has_live_stacks && *limited && walked.ended_with_copy() {
            return None;
        }
        Some(Unwound {
            frames: self.frames.as_slice().into(),
            walked,
            copied: stack.len(),
            limited: *limited,
        })
    }
}
