//! The profile under construction: samples with their stacks, on the rows of their threads.

use super::counters::Counters;
use super::cpus::Cpus;
use super::gaps::Gaps;
use super::intern::Mode;
use super::markers::Markers;
use super::profile_time::since;
use super::row_pool::RowPool;
use super::sample_row::{SampleRow, WaitingSample};
use super::stack_table::StackTable;
use super::{condense, evict};
use crate::build::seen_addresses::AddressSender;
use crate::event::{Pid, Sample, Tid, Timestamp};
use crate::modules::lib_source::LibSource;
use crate::processes::state::ProcessState;
use crate::shape::Shape;
use crate::unwind::truncation::Truncation;
use nyquist_profile::{
    self as profile, CategoryColor, LibId, Meta, ProfileBuilder, StackId, ThreadIndex, well_known,
};
use nyquist_unwind::FrameAddress;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Receives everything that goes into the profile.
#[derive(Debug)]
pub(crate) struct ProfileSink {
    pub(super) builder: ProfileBuilder,
    pub(super) stacks: StackTable,
    pub(super) shape: Shape,
    pub(super) markers: Markers,
    pub(super) counters: Counters,
    /// Rows of threads that have ended. Empty unless the shape reuses rows.
    pub(super) pool: RowPool,
    pub(super) cpus: Cpus,
    pub(super) gaps: Gaps,
    /// Samples that wait for a jitdump to be written, by time.
    waiting: VecDeque<WaitingSample>,
    /// The profile's zero.
    pub(super) start: Timestamp,
    /// The time that a sample of weight 1 stands for, in nanoseconds.
    interval: u64,
    /// How often rows were removed, so that ids have changed.
    pub(super) epoch: u32,
}

impl ProfileSink {
    /// An empty profile of this shape, with this zero. A sample of weight 1 stands for `interval`
    /// nanoseconds.
    pub(crate) fn new(meta: Meta, shape: Shape, (start, interval): (Timestamp, u64)) -> Self {
        let mut builder = ProfileBuilder::new(meta);
        Self {
            stacks: StackTable::new(&mut builder),
            builder,
            shape,
            markers: Markers::default(),
            counters: Counters::default(),
            pool: RowPool::default(),
            cpus: Cpus::default(),
            gaps: Gaps::default(),
            waiting: VecDeque::new(),
            start,
            interval,
            epoch: 0,
        }
    }

    /// A time in the terms of the profile.
    pub(crate) fn time(&self, time: Timestamp) -> u64 {
        since(self.start, time)
    }

    /// Whether a thread is left out of the profile.
    pub(crate) fn is_left_out(&self, (pid, tid): (Pid, Tid)) -> bool {
        self.shape.main_threads_only && pid.0 != tid.0
    }

    /// The CPU that has a track of its own, and the sample's name there.
    pub(crate) fn cpu_track(
        &self,
        now: Timestamp,
        cpu: Option<u32>,
        id: (Pid, Tid),
        processes: &mut ProcessState,
    ) -> Option<(u32, String)> {
        let cpu = cpu.filter(|_| self.shape.cpu_threads)?;
        Some((cpu, cpu_label(&processes.thread(now, id).name, id)))
    }

    /// Adds a sample of a process with the stack that was looked up last. It waits if its code is described
    /// by a jitdump that is not yet written up to its time.
    pub(crate) fn add_sample(
        &mut self,
        row: SampleRow,
        pid: Pid,
        now: Timestamp,
        processes: &mut ProcessState,
    ) {
        if self.stacks.has_unknown()
            && let Some(dumps) = processes.unwritten_jitdumps(pid, now)
        {
            let places = self.stacks.places();
            self.waiting.push_back(WaitingSample { time: now, row, places, dumps });
        } else {
            self.add_row(row, processes);
        }
    }

    /// Adds the samples whose jitdumps have been read far enough; at the end, all of them.
    pub(crate) fn release_waiting(&mut self, is_end: bool, processes: &mut ProcessState) {
        while let Some(waiting) = self
            .waiting
            .pop_front_if(|waiting| is_end || processes.are_written_up_to(&waiting.dumps, waiting.time))
        {
            let WaitingSample { time, row, places, dumps } = waiting;
            self.stacks.take_up(places, |address| processes.find_in_jitdumps(&dumps, address, time));
            self.add_row(row, processes);
        }
    }

    fn add_row(&mut self, row: SampleRow, processes: &ProcessState) {
        let mut stack = self.stacks.intern(row.thread.index(), &mut self.builder, processes.modules());
        if let Some(label) = &row.waits_for {
            let category = self.builder.add_category(well_known::WAITING, CategoryColor::Grey);
            stack = Some(self.builder.intern_label(stack, label, Some(category)));
        }
        let sample = profile::Sample { stack, ..row.sample };
        self.builder.add_sample(row.thread, sample);
        if let Some((cpu, label)) = row.on_cpu {
            self.cpus.add_sample(&mut self.builder, cpu, &label, sample);
        }
    }

    /// Looks up a sample's whole stack. `frames` is the user's part, outermost first. Each frame has a flag
    /// that it was found beyond the end of the stack copy.
    pub(crate) fn place_stack(
        &mut self,
        sample: (&Sample, Timestamp),
        truncated: Option<Truncation>,
        frames: impl Iterator<Item = (FrameAddress, bool)>,
        processes: &mut ProcessState,
    ) {
        self.stacks.place(sample, truncated, frames, processes);
    }

    /// Interns the stack that was looked up last, which is of this thread.
    pub(crate) fn intern_stack(&mut self, tid: Tid, processes: &ProcessState) -> Option<StackId> {
        self.stacks.intern(tid.0 as usize, &mut self.builder, processes.modules())
    }

    /// Adds a sample whose stack is only a name.
    pub(crate) fn add_sample_without_stack(
        &mut self,
        now: Timestamp,
        id: (Pid, Tid),
        (label, weight): (&str, u64),
        processes: &mut ProcessState,
    ) {
        if weight == 0 {
            return;
        }
        let thread = self.thread_row(now, id, processes);
        self.add_row_without_stack(now, thread, label, weight);
    }

    /// Adds a sample whose stack is only a name to a row.
    pub(super) fn add_row_without_stack(
        &mut self,
        now: Timestamp,
        row: ThreadIndex,
        label: &str,
        weight: u64,
    ) {
        let category = match label {
            well_known::KERNEL_NOT_PERMITTED => self.stacks.category(Mode::Kernel),
            _ => self.builder.add_category(well_known::OTHER, CategoryColor::Grey),
        };
        let stack = Some(self.builder.intern_label(None, label, Some(category)));
        let cpu_delta = weight * self.interval;
        let time = self.time(now);
        let sample = profile::Sample { time, cpu_delta, stack, weight, off_cpu: false };
        self.builder.add_sample(row, sample);
    }

    /// The tables of the profile so far.
    pub(crate) fn tables(&self) -> &profile::Profile {
        self.builder.profile()
    }

    /// The libs of the profile, and where their symbols come from.
    pub(crate) fn lib_sources(&self, processes: &ProcessState) -> Vec<(LibId, LibSource)> {
        let libs = self.stacks.libs();
        let mut sources: Vec<_> = libs.map(|(lib, module)| (lib, processes.lib_source(module))).collect();
        sources.sort_by_key(|(lib, _)| *lib);
        sources
    }

    /// Sends the addresses that are new since the last call.
    pub(crate) fn send_seen_addresses(&self, sender: &mut AddressSender, processes: &ProcessState) {
        sender.send(self.builder.profile(), |lib| {
            let (_, module) = self.stacks.libs().find(|(known, _)| *known == lib)?;
            processes.early_lib_source(module)
        });
    }

    /// Notes that a thread has no more samples.
    pub(crate) fn end_samples(&mut self, row: ThreadIndex) {
        self.builder.end_samples(row);
    }

    /// Notes how many records the source has dropped so far.
    pub(crate) fn note_lost(&mut self, records: u64) {
        self.builder.meta_mut().lost_samples = records;
    }

    /// How many markers the profile has of each event. O(markers).
    pub(crate) fn event_markers(&self) -> FxHashMap<&str, u64> {
        let profile = self.builder.profile();
        let markers = profile.threads().iter().flat_map(|thread| &thread.markers);
        let mut counts = FxHashMap::default();
        for schema in markers.filter_map(|marker| marker.schema) {
            if let Some(event) = well_known::event_of_schema(&profile.marker_schema(schema).name) {
                *counts.entry(event).or_default() += 1;
            }
        }
        counts
    }

    /// How many stacks the profile has so far.
    pub(crate) fn stack_count(&self) -> usize {
        self.builder.profile().stacks().len()
    }

    /// Merges all samples before a time that have the same stack into one.
    pub(crate) fn condense(&mut self, before: Timestamp) {
        let before = self.time(before);
        self.epoch += 1;
        condense::samples_before(&mut self.builder, before);
    }

    /// Drops all samples and markers before a time, and the stacks that only they had, but not those that are used
    /// elsewhere. Returns the new id of each stack.
    pub(crate) fn evict(
        &mut self,
        before: Timestamp,
        used_stacks: impl Iterator<Item = StackId>,
    ) -> Vec<Option<StackId>> {
        let before = self.time(before);
        self.epoch += 1;
        let old = std::mem::replace(&mut self.builder, ProfileBuilder::new(Meta::default()));
        let (builder, new_stacks) = evict::samples_before(old, before, used_stacks);
        self.builder = builder;
        self.stacks.forget();
        new_stacks
    }
}

/// The root of a stack on a CPU's thread, which names the thread that ran.
fn cpu_label(name: &str, (pid, tid): (Pid, Tid)) -> String {
    format!("{name} (process {}, thread {})", pid.0, tid.0)
}
