//! The converter: drives events through the stages, and keeps the profile that they make.

use crate::account::occurrence_counts::OccurrenceCounts;
use crate::build::seen_addresses::AddressSender;
use crate::conversion_result::ConversionResult;
use crate::event::{Event, Mapping, Timestamp};
use crate::modules::lib_source::LibSource;
use crate::modules::store::ModuleStore;
use crate::options::Options;
use crate::order::Order;
use crate::pipeline::Pipeline;
use crate::recycler::SampleRecycler;
use crate::selection::process_filter::ProcessFilter;
use crate::spool::tap::SpoolTap;
use crate::statistics::Statistics;
use crate::unwind::active_completion::StackCopyFeedback;
use nyquist_object::BuildId;
use nyquist_perf::file::PlacedFiles;
use nyquist_profile::{LibId, Profile};
use nyquist_spool::Batch;

/// Turns events into a profile, incrementally: [`push`](Self::push) adds events, and
/// [`advance`](Self::advance) states how far they are complete. [`snapshot`](Self::snapshot) returns the
/// profile so far. [`evict`](Self::evict) drops samples that are too old to be kept.
#[derive(Debug)]
pub struct Converter {
    order: Order,
    pipeline: Pipeline,
    sender: Option<AddressSender>,
}

impl Converter {
    /// A converter without events.
    pub fn new(options: Options) -> Self {
        Self::with_recycler(options, PlacedFiles::default(), None)
    }

    /// A converter of a file that other threads read. Stack copies that they have walked are read again from
    /// `copies_in` if more is known at their turn. Converted samples are returned by `recycler`.
    pub(crate) fn of_file(options: Options, copies_in: PlacedFiles, recycler: SampleRecycler) -> Self {
        Self::with_recycler(options, copies_in, Some(recycler))
    }

    fn with_recycler(mut options: Options, copies_in: PlacedFiles, recycler: Option<SampleRecycler>) -> Self {
        let sender = options.address_sender.take();
        Self { order: Order::default(), pipeline: Pipeline::new(options, copies_in, recycler), sender }
    }

    /// Keeps only the samples that pass a filter, of those that are converted later.
    pub fn keep_only(&mut self, filter: ProcessFilter) {
        self.pipeline.keep_only(filter);
    }

    /// Adds an event.
    pub fn push(&mut self, event: Event) {
        self.pipeline.look_ahead(&event);
        self.order.push(event);
    }

    /// Opens the file of a mapping whose event comes later, and compiles its unwind information, because
    /// another thread will need it soon.
    pub(crate) fn prepare_mapping(&mut self, mapping: &Mapping) {
        self.pipeline.prepare_mapping(mapping);
    }

    /// The build ids of the files that were mapped and opened so far, by their paths. Paths that several
    /// files had are left out.
    pub fn build_ids(&self) -> Vec<(String, BuildId)> {
        self.pipeline.build_ids()
    }

    /// A store of modules that shares opened files with the converter's own.
    pub(crate) fn shared_module_store(&self) -> ModuleStore {
        self.pipeline.shared_module_store()
    }

    /// Converts all events older than `complete_before`. The caller guarantees that all of them have been
    /// pushed.
    pub fn advance(&mut self, complete_before: Timestamp) {
        self.pipeline.read_jitdumps();
        self.order.release(complete_before, |event| self.pipeline.convert(event));
        self.pipeline.catch_up(complete_before);
        if let Some(sender) = &mut self.sender {
            self.pipeline.send_seen_addresses(sender);
        }
    }

    /// Notes when the recording ended, if that was later than its last event, because a program that sleeps
    /// has no events.
    pub fn note_end(&mut self, time: Timestamp) {
        self.pipeline.note_end(time);
    }

    /// Counts the waits that have not ended up to a point in time, because a [`snapshot`](Self::snapshot)
    /// does not have them otherwise. Each of these waits then has several markers, one for each call.
    pub fn count_lasting_waits(&mut self, until: Timestamp) {
        self.pipeline.count_lasting_waits(until);
    }

    /// How many blocks are counted as allocated alone, or without their stacks, because there are too many.
    pub fn left_out_blocks(&self) -> u64 {
        self.pipeline.left_out_blocks()
    }

    /// The profile of all events that were converted so far. Its addresses have no names, like those of
    /// [`ConversionResult::profile`]. Copies the whole profile.
    pub fn snapshot(&self) -> Profile {
        self.pipeline.snapshot()
    }

    /// What is new since the last call with the same tap, for a spool. All events before `until` were converted.
    /// Its cost grows with what is new, and with the number of processes and threads.
    pub fn spool(&self, tap: &mut SpoolTap, until: Timestamp) -> Batch {
        self.pipeline.spool(tap, until)
    }

    /// The tables of the profile so far, for a look at what is new in them. They lack what a
    /// [`snapshot`](Self::snapshot) adds, such as the names and ends of processes.
    pub fn tables(&self) -> &Profile {
        self.pipeline.tables()
    }

    /// The profile of everything that was pushed.
    pub fn finish(mut self) -> ConversionResult {
        self.advance(Timestamp(u64::MAX));
        // The receiver waits for no more addresses.
        self.sender = None;
        let late = self.order.late();
        let result = self.pipeline.finish();
        ConversionResult { statistics: Statistics { late, ..result.statistics }, ..result }
    }

    /// Forgets all samples, markers and allocations before a point in time, and the stacks and frames that only they
    /// had. What is allocated and not freed stays, with its stacks, unless its process has ended.
    /// Costs as much as building the tables that stay.
    pub fn evict(&mut self, before: Timestamp) {
        self.pipeline.evict(before);
    }

    /// Keeps only the sums of everything before a point in time: one sample for each stack of a thread, and
    /// no markers. The size of the past then grows with the variety of stacks, and not with time. Reads every
    /// sample.
    pub fn condense(&mut self, before: Timestamp) {
        self.pipeline.condense(before);
    }

    /// How many stacks a [`snapshot`](Self::snapshot) has. Its size grows with them.
    pub fn stack_count(&self) -> usize {
        self.pipeline.stack_count()
    }

    /// Where the symbols of the libs of a [`snapshot`](Self::snapshot) come from. Libs keep their ids from
    /// one snapshot to the next.
    pub fn lib_sources(&self) -> Vec<(LibId, LibSource)> {
        self.pipeline.lib_sources()
    }

    /// The feedback on stack copies since the last call, for the source that made them.
    pub fn take_stack_copy_feedback(&mut self) -> StackCopyFeedback {
        self.pipeline.take_stack_copy_feedback()
    }

    /// How often the additional events have happened so far.
    pub fn occurrences(&self) -> &OccurrenceCounts {
        self.pipeline.occurrences()
    }

    /// The counters so far.
    pub fn statistics(&self) -> Statistics {
        Statistics { late: self.order.late(), ..self.pipeline.statistics() }
    }
}

#[cfg(test)]
pub(crate) mod tests;
