//! Tracks mappings, event after event, for the copies of stacks that are walked before their samples are
//! converted.
//!
//! The tracker processes the events of a file as they are read, while a stack that was just read is in the
//! processor's caches. But perf writes the records of one CPU after those of another, so the mappings at the
//! time of a sample are not known yet. So each stack is walked with the mappings of all events so far. The
//! converter processes the same events by time. If it has the same mappings, it uses the walk. Otherwise it
//! walks the stack again.

use nyquist_perf::Budget;
use nyquist_perf::file::Place;

use super::batch::{Batch, Step};
use crate::event::{Event, EventKind, Mapping, Pid, PreUnwound, RELEASED_TID, Tid, Timestamp, UserStack};
use crate::jit::dumps::JitDumps;
use crate::modules::mapping_kind::is_dump;
use crate::modules::store::ModuleStore;
use crate::processes::tracker::Tracker;
use crate::unwind::registers::unwindable;

/// Follows mappings, event after event.
#[derive(Debug)]
pub(crate) struct SpeculativeTracker {
    tracker: Tracker,
    modules: ModuleStore,
    /// Empty, because only the converter knows them.
    dumps: JitDumps,
}

impl SpeculativeTracker {
    /// A tracker that shares modules with a converter. What it keeps of processes takes about as much memory as
    /// the budget has.
    pub(crate) fn new(modules: ModuleStore, budget: Budget) -> Self {
        Self { tracker: Tracker::new(budget), modules, dumps: JitDumps::default() }
    }

    /// Whether the file of a mapping was in no mapping before.
    pub(crate) fn is_new(&self, mapping: &Mapping) -> bool {
        self.modules.find_opened(mapping).is_none()
    }

    /// Processes an event, and adds it to a batch. If it has a stack copy, the copy will be walked, and is at
    /// `copy_at` in the file.
    pub(crate) fn follow(&mut self, event: Event, copy_at: Option<Place>, batch: &mut Batch) {
        let now = event.time;
        match &event.kind {
            // Only the converter knows the owner of a sample of a thread without a number.
            EventKind::Sample(sample) if sample.tid != RELEASED_TID => {
                self.know(now, (sample.pid, sample.tid));
                return self.add(event, copy_at, batch);
            }
            EventKind::Total { pid, tid, .. } => self.know(now, (*pid, *tid)),
            EventKind::Marker(marker) => self.know(now, (marker.pid, marker.thread())),
            EventKind::Counter(counter) => self.know(now, (counter.pid, Tid(counter.pid.0))),
            EventKind::Map(mapping) => {
                self.tracker.map(mapping, now, &mut self.modules);
                if let Some(pid) = mapping.pid.filter(|_| is_dump(mapping)) {
                    self.tracker.process(pid, now).code.jit.note_known_code();
                }
            }
            EventKind::Unmap { pid, start, len } => self.tracker.unmap(*pid, *start, *len),
            EventKind::Fork { pid, tid, parent_pid, parent_tid } => {
                if pid != parent_pid {
                    self.tracker.prepare_for_child(*parent_pid, &self.modules, &self.dumps);
                }
                self.tracker.fork(*pid, *tid, (*parent_pid, *parent_tid), now);
            }
            EventKind::Name { pid, tid, name, exec } => self.tracker.name(*pid, *tid, name, *exec, now),
            EventKind::Exit { pid, tid } => self.tracker.exit(*pid, *tid, now),
            _ => {}
        }
        batch.add(Step::Push(event));
    }

    /// Registers a thread. It is tracked in the same way as in the converter, where a process ends with its
    /// last known thread.
    fn know(&mut self, now: Timestamp, (pid, tid): (Pid, Tid)) {
        self.tracker.process(pid, now).thread(tid, now);
    }

    /// Adds a sample to a batch. Its stack will be walked if this is possible without the converter.
    fn add(&mut self, mut event: Event, copy_at: Option<Place>, batch: &mut Batch) {
        let EventKind::Sample(sample) = &mut event.kind else { return batch.add(Step::Push(event)) };
        let process = self.tracker.process(sample.pid, event.time);
        let (registers, stack, limited) = match std::mem::replace(&mut sample.user, UserStack::None) {
            UserStack::Copied { registers, stack, limited } if !process.code.jit.knows_code() => {
                (registers, stack, limited)
            }
            other => {
                sample.user = other;
                return batch.add(Step::Push(event));
            }
        };
        let between_programs = sample.in_kernel
            && unwindable(&registers)
                .is_some_and(|registers| process.code.is_between_programs(&registers, &stack));
        let code = process.code.code_state();
        sample.user = UserStack::PreUnwound(Box::new(PreUnwound::pending(code, registers, (stack, limited))));
        if between_programs {
            return batch.add(Step::Push(event));
        }
        batch.add_to_walk(event, (code, process.code.address_space(&self.modules, &self.dumps)), copy_at);
    }
}
