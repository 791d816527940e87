//! Passes events from the reader to the converter.

use std::collections::VecDeque;
use std::sync::Arc;

use nyquist_perf::file::{Place, PlacedFiles};

use super::converting::Converting;
use crate::conversion_result::ConversionResult;
use crate::converter::Converter;
use crate::event::{Event, EventKind, Sample, Timestamp};
use crate::options::Options;
use crate::processes::memory::ProcessMemory;
use crate::recycler::{RecycledSamples, recycler};
use crate::unwind::ahead::batch::{Batch, Step};
use crate::unwind::ahead::speculative_tracker::SpeculativeTracker;
use crate::unwind::copy_walker::CopyWalker;

/// Receives events in the order in which they are read, and has their stacks walked and the events converted.
pub(super) struct Conversion {
    tracker: Option<SpeculativeTracker>,
    /// Full batches that were not handed over yet.
    full: VecDeque<Batch>,
    batch: Batch,
    converting: Arc<Converting>,
    recycled: RecycledSamples,
}

/// A batch whose stacks are to be walked, and the queue that gets it afterwards.
pub(super) struct WalkBatch {
    batch: Batch,
    /// The number of the batch.
    place: usize,
    converting: Arc<Converting>,
    /// Samples that are not needed any more. They are freed outside of the sequential part, because freeing
    /// takes time.
    recycled: Vec<Vec<Sample>>,
}

impl WalkBatch {
    /// Whether there is anything to walk.
    pub(super) fn has_walks(&self) -> bool {
        self.batch.has_walks()
    }

    /// Walks the stacks, and hands the batch over. Returns the queue in which it is converted.
    pub(super) fn walk(self, walker: &mut CopyWalker) -> Arc<Converting> {
        drop(self.recycled);
        self.converting.put(self.place, self.batch.walked(walker));
        self.converting
    }
}

impl Conversion {
    /// Starts a conversion of events whose stack copies are in these files. If `walk_early`, stacks are
    /// walked before the converter gets them.
    pub(super) fn start(options: Options, copies_in: PlacedFiles, walk_early: bool) -> Self {
        let (sender, recycled) = recycler();
        let memory = ProcessMemory::new(options.process_memory);
        let converter = Converter::of_file(options, copies_in, sender);
        let tracker =
            walk_early.then(|| SpeculativeTracker::new(converter.shared_module_store(), memory.mappings));
        let converting = Arc::new(Converting::new(converter));
        Self { tracker, full: VecDeque::new(), batch: Batch::new(), converting, recycled }
    }

    /// Adds an event, and the place of its stack copy in the file.
    pub(super) fn push(&mut self, event: Event, copy_at: Option<Place>) {
        if let (EventKind::Map(mapping), Some(tracker)) = (&event.kind, &self.tracker)
            && tracker.is_new(mapping)
        {
            // The converting thread compiles its unwind information, which the next stacks will need.
            self.batch.add(Step::Note(mapping.clone()));
            self.end_batch();
        }
        match &mut self.tracker {
            Some(tracker) => tracker.follow(event, copy_at, &mut self.batch),
            None => self.batch.add(Step::Push(event)),
        }
        self.end_full_batch();
    }

    /// States that all events older than `complete_before` have been pushed.
    pub(super) fn advance(&mut self, complete_before: Timestamp) {
        self.batch.add(Step::Advance(complete_before));
        self.end_full_batch();
    }

    /// The next batch to be walked outside of the sequential part. It is a full batch, or if
    /// `even_if_not_full`, the current one.
    pub(super) fn walks(&mut self, even_if_not_full: bool) -> Option<WalkBatch> {
        if even_if_not_full && self.full.is_empty() && !self.batch.is_empty() {
            self.end_batch();
        }
        let batch = self.full.pop_front()?;
        let (place, converting) = (self.converting.next_place(), Arc::clone(&self.converting));
        Some(WalkBatch { batch, place, converting, recycled: self.recycled.so_far() })
    }

    /// The profile of all events. It is complete when all batches that were handed over have been walked.
    pub(super) fn finish(mut self) -> ConversionResult {
        let mut walker = CopyWalker::default();
        while let Some(walks) = self.walks(true) {
            walks.walk(&mut walker);
        }
        // The walking threads are joined before this is called, so they hold no reference any more.
        Arc::into_inner(self.converting).expect("whoever has walked has ended").finish()
    }

    fn end_full_batch(&mut self) {
        if self.batch.is_full() {
            self.end_batch();
        }
    }

    fn end_batch(&mut self) {
        self.full.push_back(std::mem::replace(&mut self.batch, Batch::new()));
    }
}
