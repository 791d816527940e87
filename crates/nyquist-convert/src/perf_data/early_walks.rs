//! What is mapped where, as far as it is read, for the copies of stacks that are walked by the thread that has just read them,
//! while they are in its processor's caches.
//!
//! Perf writes what one CPU has recorded behind what another one has, so that nobody knows yet what is mapped at the time of a
//! sample. So each stack is walked with what is mapped by all that has been read, and the converter, which follows the same
//! events by time, takes the walk if that comes to the same, and else walks the stack again.

use nyquist_perf::file::Place;

use super::batch::{Batch, Step};
use crate::event::{Event, EventKind, Mapping, Pid, Sample, Tid, Timestamp, UserStack};
use crate::jit::{self, JitDumps};
use crate::modules::ModuleStore;
use crate::stages::NAMELESS;
use crate::track::Tracker;
use crate::walk::unwindable;

/// Follows what is mapped where, event after event as they are read.
pub(super) struct EarlyWalks {
    tracker: Tracker,
    modules: ModuleStore,
    dumps: JitDumps,
    /// Whether a jitdump may describe code: what is known of it, the converter knows alone.
    has_dumps: bool,
}

impl EarlyWalks {
    /// With the modules that a converter opens, too.
    pub(super) fn new(modules: ModuleStore) -> Self {
        Self { tracker: Tracker::default(), modules, dumps: JitDumps::default(), has_dumps: false }
    }

    /// Whether the file of a mapping was in none before.
    pub(super) fn is_new(&self, mapping: &Mapping) -> bool {
        self.modules.known(mapping).is_none()
    }

    /// Takes note of what an event changes, and adds it to a batch: to be walked, if it has the copy of a stack, which stands at
    /// that place.
    pub(super) fn follow(&mut self, event: Event, copy_at: Option<Place>, batch: &mut Batch) {
        let now = event.time;
        match &event.kind {
            // The converter knows whose the samples of a process without a number are.
            EventKind::Sample(sample) if sample.pid != NAMELESS => {
                self.know(now, (sample.pid, sample.tid));
                return self.add(event, copy_at, batch);
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
            _ => {}
        }
        batch.add(Step::Push(event));
    }

    /// A thread is heard of, as the converter takes note of it: a process ends with the last thread that is known.
    fn know(&mut self, now: Timestamp, (pid, tid): (Pid, Tid)) {
        self.tracker.process(pid, now).thread(tid, now);
    }

    /// Adds a sample to a batch, to be walked if that can be done here.
    fn add(&mut self, event: Event, copy_at: Option<Place>, batch: &mut Batch) {
        let EventKind::Sample(Sample {
            pid,
            in_kernel,
            user: UserStack::Copied { registers, stack, .. },
            ..
        }) = &event.kind
        else {
            return batch.add(Step::Push(event));
        };
        if self.has_dumps {
            return batch.add(Step::Push(event));
        }
        let process = self.tracker.process(*pid, event.time);
        let between_programs = *in_kernel
            && unwindable(registers)
                .is_some_and(|registers| process.is_between_programs(registers.instruction_pointer(), stack));
        let code = process.code_state(&self.modules);
        let space = process.address_space(&self.modules, &self.dumps);
        batch.add_to_walk(event, (code, space), between_programs, copy_at);
    }
}
