//! A converter on a thread of its own, beside the one that reads the recording.

use std::panic::resume_unwind;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{Scope, ScopedJoinHandle};

use crate::converter::{Converter, Finished};
use crate::event::{Event, Timestamp};

/// How many steps are handed over at once: enough that waking the other thread costs next to nothing.
const BATCH: usize = 256;

/// How many batches may wait. The copies of stacks in them are memory that is read into next, which should stay in the
/// processor's caches.
const BATCHES_AHEAD: usize = 4;

/// What the converter is told, in order.
enum Step {
    Push(Event),
    Advance(Timestamp),
}

/// A converter that works while this thread goes on reading.
pub(super) struct ConverterBeside<'scope> {
    batch: Vec<Step>,
    sender: SyncSender<Vec<Step>>,
    thread: ScopedJoinHandle<'scope, Finished>,
}

impl<'scope> ConverterBeside<'scope> {
    /// Lets a converter work on a thread of this scope.
    pub(super) fn start(scope: &'scope Scope<'scope, '_>, converter: Converter) -> Self {
        let (sender, receiver) = mpsc::sync_channel(BATCHES_AHEAD);
        let thread = scope.spawn(move || convert(converter, &receiver));
        Self { batch: Vec::with_capacity(BATCH), sender, thread }
    }

    /// As [`Converter::push`].
    pub(super) fn push(&mut self, event: Event) {
        self.add(Step::Push(event));
    }

    /// As [`Converter::advance`].
    pub(super) fn advance(&mut self, complete_before: Timestamp) {
        self.add(Step::Advance(complete_before));
    }

    /// As [`Converter::finish`]: waits for all that was pushed to be converted.
    pub(super) fn finish(mut self) -> Finished {
        self.hand_over();
        drop(self.sender);
        self.thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn add(&mut self, step: Step) {
        self.batch.push(step);
        if self.batch.len() == BATCH {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        // Nobody takes it only where the thread has panicked, which `finish` hears of.
        let _ = self.sender.send(batch);
    }
}

fn convert(mut converter: Converter, batches: &Receiver<Vec<Step>>) -> Finished {
    for step in batches.iter().flatten() {
        match step {
            Step::Push(event) => converter.push(event),
            Step::Advance(complete_before) => converter.advance(complete_before),
        }
    }
    converter.finish()
}
