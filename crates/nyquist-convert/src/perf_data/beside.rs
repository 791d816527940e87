//! The converter on a thread of its own, beside those that read the recording and walk its stacks.

use std::panic::resume_unwind;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{Scope, ScopedJoinHandle};

use super::batch::Step;
use crate::converter::{Converter, Finished};

/// How many batches may wait. Of copied stacks that are not walked before, that is as many as a large round of a recording has:
/// where far fewer can wait, each thread sleeps while the other works.
const BATCHES_AHEAD: usize = 16;

/// The converter on a thread of its own.
pub(super) struct Beside<'scope> {
    batches: SyncSender<Receiver<Vec<Step>>>,
    thread: ScopedJoinHandle<'scope, Finished>,
}

impl<'scope> Beside<'scope> {
    /// Lets a converter work on a thread of this scope.
    pub(super) fn start(scope: &'scope Scope<'scope, '_>, converter: Converter) -> Self {
        let (batches, receiver) = mpsc::sync_channel(BATCHES_AHEAD);
        let thread = scope.spawn(move || work(converter, &receiver));
        Self { batches, thread }
    }

    /// Where the next batch is to be handed over, which may take its time: those after it wait for it.
    pub(super) fn next(&self) -> SyncSender<Vec<Step>> {
        let (sender, batch) = mpsc::sync_channel(1);
        // Nobody takes it only where the thread has panicked, which `finish` hears of.
        let _ = self.batches.send(batch);
        sender
    }

    /// Waits for the profile of all that was handed over.
    pub(super) fn finish(self) -> Finished {
        drop(self.batches);
        self.thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

fn work(mut converter: Converter, batches: &Receiver<Receiver<Vec<Step>>>) -> Finished {
    for step in batches.iter().filter_map(|batch| batch.recv().ok()).flatten() {
        match step {
            Step::Push(event) => converter.push(event),
            Step::Advance(complete_before) => converter.advance(complete_before),
            Step::Note(mapping) => converter.prepare_mapping(&mapping),
        }
    }
    converter.finish()
}
