//! The profile so far, with the names and lifetimes of its processes and threads.

use super::counters::drop_idle;
use super::markers;
use super::row_names::{name_main_threads, name_process};
use super::sink::ProfileSink;
use crate::account::heap::AllocatedGroup;
use crate::event::Timestamp;
use crate::processes::state::ProcessState;
use crate::statistics::Statistics;
use nyquist_profile::{CounterId, ExtraInfo, Meta, Profile, ProfileBuilder, Samples, Thread};
use rustc_hash::FxHashSet;

/// How long after the last event a profile ends, in ns: the Firefox Profiler leaves out samples at the end
/// itself. It must also exceed the rounding error of sums of times in milliseconds.
const BEYOND_LAST: u64 = 1_000;

impl ProfileSink {
    /// The profile so far, with these allocations.
    pub(crate) fn snapshot(
        &self,
        processes: &ProcessState,
        statistics: &Statistics,
        last_time: Timestamp,
        allocations: &[AllocatedGroup],
    ) -> Profile {
        let builder = self.with_allocations(self.builder.clone(), allocations);
        self.named_builder(builder, processes, statistics, last_time).finish()
    }

    /// The profile, which gets nothing more.
    pub(crate) fn finish(
        mut self,
        processes: &ProcessState,
        statistics: &Statistics,
        last_time: Timestamp,
    ) -> Profile {
        let builder = std::mem::replace(&mut self.builder, ProfileBuilder::new(Meta::default()));
        self.named_builder(builder, processes, statistics, last_time).finish()
    }

    /// The processes and threads with the names and lifetimes that are known by now, without samples and markers.
    pub(super) fn named_rows(&self, processes: &ProcessState) -> ProfileBuilder {
        let mut builder = ProfileBuilder::new(Meta::default());
        self.append_rows(&mut builder);
        self.name_rows(&mut builder, processes);
        builder
    }

    /// Appends the processes and threads that are new to those that an earlier call returned, with the names that are
    /// known by now. The others keep theirs. Costs less than all names.
    pub(super) fn name_new_rows(&self, named: &mut ProfileBuilder, processes: &ProcessState) {
        let known = (named.profile().processes().len(), named.profile().threads().len());
        self.append_rows(named);
        if known == (named.profile().processes().len(), named.profile().threads().len()) {
            return;
        }
        for process in processes.all() {
            let is_new = process.index.is_some_and(|row| row.index() >= known.0);
            let mut rows = process.threads.values().filter_map(|thread| thread.index);
            if is_new || rows.any(|row| row.index() >= known.1) {
                name_process(named, process, self.start);
            }
        }
    }

    /// Appends the processes and threads that a profile does not have yet, without samples and markers.
    fn append_rows(&self, named: &mut ProfileBuilder) {
        let profile = self.builder.profile();
        let (processes, threads) = (named.profile().processes().len(), named.profile().threads().len());
        for process in profile.processes().iter().skip(processes) {
            named.add_process(process.clone());
        }
        for Thread { process, tid, name, start, end, is_main, .. } in profile.threads().iter().skip(threads) {
            let mut row = Thread::new(*process, tid.as_str(), name.as_str());
            (row.start, row.end, row.is_main, row.samples) = (*start, *end, *is_main, Samples::new());
            named.add_thread(row);
        }
    }

    /// Gives the processes and threads of a profile the names and lifetimes that are known by now.
    fn name_rows(&self, builder: &mut ProfileBuilder, processes: &ProcessState) {
        let mut processes: Vec<_> = processes.all().collect();
        // If several processes share a row, the last one determines the row's end.
        processes.sort_unstable_by_key(|process| process.start);
        for process in &processes {
            name_process(builder, process, self.start);
        }
        // A row that several processes share only has their name, without a distinguishing word.
        if !self.shape.reuse_threads {
            name_main_threads(builder, &processes);
        }
    }

    /// Adds what is known only at the end of a profile.
    fn named_builder(
        &self,
        mut builder: ProfileBuilder,
        processes: &ProcessState,
        statistics: &Statistics,
        last_time: Timestamp,
    ) -> ProfileBuilder {
        self.name_rows(&mut builder, processes);
        complete(&mut builder, statistics, self.time(last_time), &self.counters.accompanying());
        builder
    }
}

/// Completes a profile that ends at a time, in ns since its zero: drops what says nothing, and adds figures.
pub(crate) fn complete(
    builder: &mut ProfileBuilder,
    statistics: &Statistics,
    end: u64,
    accompanying: &FxHashSet<CounterId>,
) {
    markers::drop_lonely_flows(builder);
    let meta = builder.meta_mut();
    meta.profiling_start = Some(0);
    meta.profiling_end = Some(end.saturating_add(BEYOND_LAST));
    meta.extra.push(ExtraInfo {
        section: "Recording".to_owned(),
        label: "Lost samples".to_owned(),
        value: statistics.lost.to_string(),
    });
    if statistics.completed > 0 {
        meta.extra.push(ExtraInfo {
            section: "Recording".to_owned(),
            label: "Stacks completed from the running program's memory".to_owned(),
            value: statistics.completed.to_string(),
        });
    }
    drop_idle(builder, accompanying);
}
