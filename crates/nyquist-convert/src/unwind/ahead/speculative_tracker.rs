//! What is mapped where, event after event, for the copies of stacks that are walked before their samples are converted.
//!
//! The events of a recording that runs are followed in their order. Those of a file are followed as they are read, for the thread
//! that has just read a stack has it in its processor's caches: but perf writes what one CPU has recorded behind what another one
//! has, so that nobody knows yet what is mapped at the time of a sample. So each stack is walked with what is mapped by all that
//! has been followed, and whoever converts, who follows the same events by time, takes the walk if that comes to the same, and
//! else walks the stack again.

use nyquist_perf::file::Place;

use super::batch::{Batch, Step};
use super::walk_pool::WalkPool;
use crate::event::{Event, EventKind, Mapping, NAMELESS, Pid, Tid, Timestamp, UserStack};
use crate::jit::dumps::JitDumps;
use crate::modules::mapping_kind::is_dump;
use crate::modules::store::ModuleStore;
use crate::processes::tracker::Tracker;
use crate::unwind::registers::unwindable;

/// Follows what is mapped where, event after event.
#[derive(Debug)]
pub(crate) struct SpeculativeTracker {
    tracker: Tracker,
    modules: ModuleStore,
    /// None: what is known of them, the converter knows alone.
    dumps: JitDumps,
    spare: WalkPool,
}

impl SpeculativeTracker {
    /// With the modules that a converter opens, too.
    pub(crate) fn new(modules: ModuleStore) -> Self {
        Self { tracker: Tracker::default(), modules, dumps: JitDumps::default(), spare: WalkPool::default() }
    }

    /// Takes memory that walks had, for others.
    pub(crate) fn use_again(&mut self, spare: &mut WalkPool) {
        self.spare.append(spare);
    }

    /// The converter knows more of a process's code: its stacks are not to be walked until it becomes another program.
    pub(crate) fn leave(&mut self, pid: Pid, now: Timestamp) {
        self.tracker.process(pid, now).jit.note_known_code();
    }

    /// Whether the file of a mapping was in none before.
    pub(crate) fn is_new(&self, mapping: &Mapping) -> bool {
        self.modules.known(mapping).is_none()
    }

    /// Takes note of what an event changes, and adds it to a batch: to be walked, if it has the copy of a stack, which stands at
    /// that place.
    pub(crate) fn follow<S: Step>(&mut self, event: Event, copy_at: Option<Place>, batch: &mut Batch<S>) {
        let now = event.time;
        match &event.kind {
            // The converter knows whose the samples of a thread without a number are.
            EventKind::Sample(sample) if sample.tid != NAMELESS => {
                self.know(now, (sample.pid, sample.tid));
                return self.add(event, copy_at, batch);
            }
            EventKind::Total { pid, tid, .. } => self.know(now, (*pid, *tid)),
            EventKind::Marker(marker) => self.know(now, (marker.pid, marker.thread())),
            EventKind::Counter(counter) => self.know(now, (counter.pid, Tid(counter.pid.0))),
            EventKind::Map(mapping) => {
                self.tracker.map(mapping, now, &mut self.modules);
                if let Some(pid) = mapping.pid.filter(|_| is_dump(mapping)) {
                    self.tracker.process(pid, now).jit.note_known_code();
                }
            }
            EventKind::Unmap { pid, start, len } => self.tracker.unmap(*pid, *start, *len),
            EventKind::Fork { pid, tid, parent_pid, parent_tid } => {
                self.tracker.fork(*pid, *tid, (*parent_pid, *parent_tid), now);
            }
            EventKind::Name { pid, tid, name, exec } => self.tracker.name(*pid, *tid, name, *exec, now),
            EventKind::Exit { pid, tid } => self.tracker.exit(*pid, *tid, now),
            _ => {}
        }
        batch.add(event.into());
    }

    /// A thread is heard of, as the converter takes note of it: a process ends with the last thread that is known.
    fn know(&mut self, now: Timestamp, (pid, tid): (Pid, Tid)) {
        self.tracker.process(pid, now).thread(tid, now);
    }

    /// Adds a sample to a batch, to be walked if that can be done here.
    fn add<S: Step>(&mut self, mut event: Event, copy_at: Option<Place>, batch: &mut Batch<S>) {
        let EventKind::Sample(sample) = &mut event.kind else { return batch.add(event.into()) };
        let process = self.tracker.process(sample.pid, event.time);
        let (registers, stack, limited) = match std::mem::replace(&mut sample.user, UserStack::None) {
            UserStack::Copied { registers, stack, limited } if !process.jit.knows_code() => {
                (registers, stack, limited)
            }
            other => {
                sample.user = other;
                return batch.add(event.into());
            }
        };
        let between_programs = sample.in_kernel
            && unwindable(&registers)
                .is_some_and(|registers| process.is_between_programs(&registers, &stack));
        let code = process.code_state(&self.modules);
        sample.user = self.spare.pending(code, registers, (stack, limited));
        if between_programs {
            return batch.add(event.into());
        }
        batch.add_to_walk(event, (code, process.address_space(&self.modules, &self.dumps)), copy_at);
    }
}
