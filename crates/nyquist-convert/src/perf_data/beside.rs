//! Work on threads of their own, beside the one that reads the recording: each takes what the one before hands over.

use std::panic::resume_unwind;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{Scope, ScopedJoinHandle};

use crate::converter::{Converter, Finished};
use crate::event::{Event, EventKind, Mapping, Sample, Timestamp, UserStack};

/// How many steps are handed over at once: enough that waking the other thread costs next to nothing.
const BATCH: usize = 256;

/// How many bytes of copied stacks are handed over at once at most.
const BATCH_BYTES: usize = 512 << 10;

/// How many batches may wait: of copied stacks as many as a large round of a recording has. All samples of a round are let go
/// at once, and where far fewer can wait, each thread sleeps while the other works. Where more can, copies fall out of the
/// processor's caches before they are walked.
const BATCHES_AHEAD: usize = 16;

/// What is handed over, in order.
pub(super) enum Step {
    /// As [`Converter::push`].
    Push(Event),
    /// As [`Converter::advance`].
    Advance(Timestamp),
    /// As [`Converter::prepare_mapping`].
    Note(Mapping),
}

/// What takes steps, and makes a profile of them in the end.
pub(super) trait Worker: Send {
    /// Takes a step.
    fn take(&mut self, step: Step);

    /// Makes the profile of everything that was taken.
    fn finish(self) -> Finished;
}

impl Worker for Converter {
    fn take(&mut self, step: Step) {
        match step {
            Step::Push(event) => self.push(event),
            Step::Advance(complete_before) => self.advance(complete_before),
            Step::Note(mapping) => self.prepare_mapping(&mapping),
        }
    }

    fn finish(self) -> Finished {
        Self::finish(self)
    }
}

/// A worker on a thread of its own.
pub(super) struct Beside<'scope> {
    batch: Vec<Step>,
    /// The copied stacks in it.
    bytes: usize,
    sender: SyncSender<Vec<Step>>,
    thread: ScopedJoinHandle<'scope, Finished>,
}

impl<'scope> Beside<'scope> {
    /// Lets a worker work on a thread of this scope.
    pub(super) fn start(scope: &'scope Scope<'scope, '_>, worker: impl Worker + 'scope) -> Self {
        let (sender, receiver) = mpsc::sync_channel(BATCHES_AHEAD);
        let thread = scope.spawn(move || work(worker, &receiver));
        Self { batch: Vec::with_capacity(BATCH), bytes: 0, sender, thread }
    }

    /// Hands over a step, after all before.
    pub(super) fn add(&mut self, step: Step) {
        self.bytes += copied_bytes(&step);
        self.batch.push(step);
        if self.batch.len() == BATCH || self.bytes >= BATCH_BYTES {
            self.hand_over();
        }
    }

    /// Waits for the profile of all that was handed over.
    pub(super) fn finish(mut self) -> Finished {
        self.hand_over();
        drop(self.sender);
        self.thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Hands over a step that cannot wait for others.
    pub(super) fn add_now(&mut self, step: Step) {
        self.batch.push(step);
        self.hand_over();
    }

    fn hand_over(&mut self) {
        self.bytes = 0;
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        // Nobody takes it only where the thread has panicked, which `finish` hears of.
        let _ = self.sender.send(batch);
    }
}

/// How large the copy of a stack is that a step has.
fn copied_bytes(step: &Step) -> usize {
    match step {
        Step::Push(Event {
            kind: EventKind::Sample(Sample { user: UserStack::Copied { stack, .. }, .. }),
            ..
        }) => stack.len(),
        _ => 0,
    }
}

fn work(mut worker: impl Worker, batches: &Receiver<Vec<Step>>) -> Finished {
    for step in batches.iter().flatten() {
        worker.take(step);
    }
    worker.finish()
}
