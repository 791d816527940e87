//! Several threads that walk the stacks of events that are in order, where so many wait that one thread would not keep up.
//!
//! Threads are started for one turn and end with it: a turn in which they are of use takes far longer than that does, and in all
//! others they are not there.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::batch::Batch;
use super::follower::Follower;
use super::spare::SpareWalks;
use crate::event::Event;
use crate::modules::ModuleStore;
use crate::walk::CopyWalker;

/// A thread is worth its start for so many batches.
const BATCHES_EACH: usize = 2;

/// Has stacks walked by some threads at once.
#[derive(Debug)]
pub(crate) struct Walkers {
    follower: Follower,
    /// That of the thread that converts, too, which walks where it would wait.
    own: CopyWalker,
    /// Those of the other threads that there may be.
    others: Vec<CopyWalker>,
    full: Vec<Batch<Event>>,
    batch: Batch<Event>,
}

impl Walkers {
    /// With so many threads beside the one that converts, and the modules that it opens.
    pub(crate) fn new(threads: usize, modules: ModuleStore) -> Self {
        Self {
            follower: Follower::new(modules),
            own: CopyWalker::default(),
            others: std::iter::repeat_with(CopyWalker::default).take(threads).collect(),
            full: Vec::new(),
            batch: Batch::new(),
        }
    }

    /// How many threads there may be beside the one that converts.
    pub(crate) fn threads(&self) -> usize {
        self.others.len()
    }

    /// Takes the memory of walks whose samples are converted.
    pub(crate) fn use_again(&mut self, spare: &mut SpareWalks) {
        self.follower.use_again(spare);
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
        let count = self.full.len();
        let threads = (count / BATCHES_EACH).min(self.others.len());
        let waiting = Waiting(Mutex::new(self.full.drain(..).enumerate().collect()));
        let (own, others) = (&mut self.own, self.others.iter_mut().take(threads));
        thread::scope(|scope| {
            let (out, walked) = mpsc::channel();
            for walker in others {
                let (waiting, out) = (&waiting, out.clone());
                scope.spawn(move || waiting.walk_all(walker, &out));
            }
            drop(out);
            let mut ready = BTreeMap::new();
            for place in 0..count {
                while !ready.contains_key(&place) {
                    ready.extend(walked.try_iter());
                    if !ready.contains_key(&place) {
                        let next = waiting.walk_one(own).or_else(|| walked.recv().ok());
                        // Where there is none, a thread has panicked, and this one will with it.
                        let Some((place, events)) = next else { return };
                        ready.insert(place, events);
                    }
                }
                ready.remove(&place).into_iter().flatten().for_each(&mut take);
            }
        });
    }
}

/// A batch whose stacks are walked, and its place among all.
type Walked = (usize, Vec<Event>);

/// The batches of a turn that nobody has begun to walk, the first first.
struct Waiting(Mutex<VecDeque<(usize, Batch<Event>)>>);

impl Waiting {
    /// Walks the first one.
    fn walk_one(&self, walker: &mut CopyWalker) -> Option<Walked> {
        let (place, batch) = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()?;
        Some((place, batch.walked(walker)))
    }

    /// Walks one after the other until none is left.
    fn walk_all(&self, walker: &mut CopyWalker, out: &Sender<Walked>) {
        while let Some(walked) = self.walk_one(walker) {
            // Who has gone away has panicked, and wants nothing more.
            let _ = out.send(walked);
        }
    }
}
