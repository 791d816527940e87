//! Several threads that walk the stacks of events that are in order, where so many wait that one thread would not keep up.

use super::batch::Batch;
use super::speculative_tracker::SpeculativeTracker;
use super::walk_pool::WalkPool;
use crate::event::{Event, Pid, Timestamp};
use crate::modules::store::ModuleStore;
use crate::thread_pool::ThreadPool;
use crate::unwind::copy_walker::CopyWalker;

/// A thread is worth being woken for so many batches.
const BATCHES_EACH: usize = 2;

/// Has stacks walked by some threads at once.
#[derive(Debug)]
pub(crate) struct Walkers {
    follower: SpeculativeTracker,
    /// That of the thread that converts, which walks where it would wait.
    own: CopyWalker,
    threads: ThreadPool<Batch<Event>, Vec<Event>>,
    full: Vec<Batch<Event>>,
    batch: Batch<Event>,
}

impl Walkers {
    /// With so many threads beside the one that converts, and the modules that it opens.
    pub(crate) fn new(threads: usize, modules: ModuleStore) -> Self {
        Self {
            follower: SpeculativeTracker::new(modules),
            own: CopyWalker::default(),
            threads: ThreadPool::new("nyquist-walker", threads),
            full: Vec::new(),
            batch: Batch::new(),
        }
    }

    /// How many threads there may be beside the one that converts.
    pub(crate) fn threads(&self) -> usize {
        self.threads.most()
    }

    /// Takes the memory of walks whose samples are converted.
    pub(crate) fn use_again(&mut self, spare: &mut WalkPool) {
        self.follower.use_again(spare);
    }

    /// Leaves the stacks of a process to who converts from now on, who knows more of its code.
    pub(crate) fn leave(&mut self, pid: Pid, now: Timestamp) {
        self.follower.leave(pid, now);
    }

    /// Takes the next event.
    pub(crate) fn follow(&mut self, event: Event) {
        self.follower.follow(event, None, &mut self.batch);
        if self.batch.is_full() {
            self.full.push(std::mem::replace(&mut self.batch, Batch::new()));
        }
    }

    /// Gives out the events that were taken, in their order, with their stacks walked.
    pub(crate) fn give_out(&mut self, mut take: impl FnMut(Event)) {
        if !self.batch.is_empty() {
            self.full.push(std::mem::replace(&mut self.batch, Batch::new()));
        }
        let batches = std::mem::take(&mut self.full);
        let threads = batches.len() / BATCHES_EACH;
        let worker = || {
            let mut walker = CopyWalker::default();
            move |batch: Batch<Event>| batch.walked(&mut walker)
        };
        let own = |batch: Batch<Event>| batch.walked(&mut self.own);
        self.threads.do_all(batches, threads, worker, own, |events| events.into_iter().for_each(&mut take));
    }
}
