//! What the source dropped, and when it paused: counted, and markers with their time and CPU.

use super::Stages;
use super::notes::schema;
use crate::build::markers::Content;
use crate::event::{FieldValue, Timestamp};
use crate::filter::Filter;
use crate::processes::thread::Used;
use crate::selection::Selection;
use nyquist_profile::{
    MarkerDisplay, MarkerFormat, MarkerSchema, MarkerTiming, Thread, ThreadIndex, well_known,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// What is known of the losses of a recording.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// How many records each CPU has lost.
    on_cpus: BTreeMap<Option<u32>, Lost>,
    /// When each CPU had its last sample: what it lost, it lost later.
    last_samples: FxHashMap<u32, Timestamp>,
    /// Since when each CPU takes no samples.
    pauses: BTreeMap<Option<u32>, Timestamp>,
    /// What all that was recorded has used of the CPUs, in nanoseconds, as the source itself has counted, where it does.
    cpu_time_ns: u64,
    /// What has no place yet, for nothing is in the profile.
    unplaced: Vec<Gap>,
    /// The row that has what is not on the rows of CPUs.
    row: Option<ThreadIndex>,
}

/// How many records were dropped.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    /// As was told each time that some were.
    told: u64,
    /// As the source itself has counted in all, where it does.
    counted: u64,
    /// How many of those that were told have not become time of a thread.
    unshown: u64,
    /// When the last ones were told.
    until: Timestamp,
}

/// A time in which samples may be missing.
#[derive(Debug)]
struct Gap {
    /// When it began; `None` where only its end is known.
    start: Option<Timestamp>,
    end: Timestamp,
    cpu: Option<u32>,
    /// How many records were dropped in it; `None` where the kernel has taken no samples.
    records: Option<u64>,
}

impl Losses {
    /// Takes as many of the records that were lost on a CPU as a thread was due in time for which it has no sample: the
    /// nearest number of intervals. Only a thread that was last heard of before they were told can have lost them.
    pub(super) fn take_intervals(&mut self, cpu: Option<u32>, used: Used, interval_ns: u64) -> u32 {
        let Some(lost) = self.on_cpus.get_mut(&cpu).filter(|lost| used.since < lost.until) else { return 0 };
        let due = used.ns.saturating_add(interval_ns / 2) / interval_ns;
        let taken = u32::try_from(due.min(lost.unshown)).unwrap_or(u32::MAX);
        lost.unshown -= u64::from(taken);
        taken
    }

    /// How many records were dropped that nobody told of when they were, by CPU.
    fn untold(&self) -> BTreeMap<Option<u32>, u64> {
        let rest = |lost: &Lost| lost.counted.saturating_sub(lost.told);
        let mut untold: BTreeMap<_, _> = self.on_cpus.iter().map(|(cpu, lost)| (*cpu, rest(lost))).collect();
        // Of what was counted on no CPU, those were told of that were told of on any.
        let of_cpus = self.on_cpus.iter().filter(|(cpu, _)| cpu.is_some());
        let told =
            of_cpus.fold(0, |sum: u64, (_, lost)| sum.saturating_add(lost.told.saturating_sub(lost.counted)));
        if let Some(nowhere) = untold.get_mut(&None) {
            *nowhere = nowhere.saturating_sub(told);
        }
        untold.retain(|_, records| *records > 0);
        untold
    }
}

/// Records that the source had no room for.
static LOST_SAMPLES: LazyLock<Arc<MarkerSchema>> = LazyLock::new(|| {
    gap_schema(
        "LostSamples",
        &[("records", "Records", MarkerFormat::Integer), ("cpu", "CPU", MarkerFormat::String)],
        "{marker.data.records} on {marker.data.cpu}",
        "There was no room for records of this CPU, samples among them. Whose they were is not known: the thread that has the marker \
         need not be it.",
    )
});

/// A time in which the kernel took no samples.
static SAMPLING_PAUSED: LazyLock<Arc<MarkerSchema>> = LazyLock::new(|| {
    gap_schema(
        "SamplingPaused",
        &[("cpu", "CPU", MarkerFormat::String)],
        "{marker.data.cpu}",
        "The kernel took no samples on this CPU, as they cost too much time (kernel.perf_event_max_sample_rate).",
    )
});

/// A kind of gap, which is shown wherever time is.
fn gap_schema(
    name: &str,
    fields: &[(&str, &str, MarkerFormat)],
    label: &str,
    description: &str,
) -> Arc<MarkerSchema> {
    let mut schema = schema(name, fields, [label, label], description);
    schema.display.push(MarkerDisplay::TimelineOverview);
    Arc::new(schema)
}

impl Stages {
    /// A CPU has a sample, whoever's.
    pub(super) fn note_sampled(&mut self, now: Timestamp, cpu: Option<u32>) {
        if let Some(cpu) = cpu {
            self.losses.last_samples.insert(cpu, now);
        }
    }

    /// Records were dropped since the CPU's last sample.
    pub(super) fn lose(&mut self, now: Timestamp, cpu: Option<u32>, records: u64) {
        self.processes.tracker.lose_records();
        let lost = self.losses.on_cpus.entry(cpu).or_default();
        lost.told = lost.told.saturating_add(records);
        lost.unshown = lost.unshown.saturating_add(records);
        lost.until = now;
        self.mark_loss(now, cpu, records);
    }

    /// One of the source's counters says how much it has dropped in all.
    pub(super) fn count_losses(&mut self, cpu: Option<u32>, records: u64) {
        let lost = self.losses.on_cpus.entry(cpu).or_default();
        lost.counted = lost.counted.saturating_add(records);
    }

    /// The source's counters say what all that was recorded has used of the CPUs.
    pub(super) fn count_cpu_time(&mut self, used_ns: u64) {
        self.losses.cpu_time_ns = self.losses.cpu_time_ns.saturating_add(used_ns);
    }

    /// Adds a loss to the profile.
    fn mark_loss(&mut self, end: Timestamp, cpu: Option<u32>, records: u64) {
        self.statistics.lost = self.statistics.lost.saturating_add(records);
        self.builder.meta_mut().lost_samples = self.statistics.lost;
        let start = cpu.and_then(|cpu| self.losses.last_samples.get(&cpu)).copied();
        self.mark_gap(Gap { start, end, cpu, records: Some(records) });
    }

    /// A CPU takes no samples from now on.
    pub(super) fn pause(&mut self, now: Timestamp, cpu: Option<u32>) {
        self.statistics.throttled += 1;
        self.losses.pauses.entry(cpu).or_insert(now);
    }

    /// A CPU takes samples again.
    pub(super) fn resume(&mut self, now: Timestamp, cpu: Option<u32>) {
        if let Some(start) = self.losses.pauses.remove(&cpu) {
            self.mark_gap(Gap { start: Some(start), end: now, cpu, records: None });
        }
    }

    /// Ends all pauses with the recording, and marks the losses that nobody has told of: the last ones have no record.
    pub(crate) fn end_gaps(&mut self) {
        let end = self.last_time;
        for (cpu, start) in std::mem::take(&mut self.losses.pauses) {
            self.mark_gap(Gap { start: Some(start), end, cpu, records: None });
        }
        for (cpu, records) in self.losses.untold() {
            self.mark_loss(end, cpu, records);
        }
    }

    /// Makes a marker of a gap, if that time is wanted.
    fn mark_gap(&mut self, gap: Gap) {
        if self.selection.wants_moment(gap.cpu, self.profile_time(gap.end)) {
            self.losses.unplaced.push(gap);
        }
        self.place_gaps();
    }

    /// Adds the markers that have no place yet, if there is one.
    pub(crate) fn place_gaps(&mut self) {
        if self.builder.profile().threads().is_empty() {
            return;
        }
        for gap in std::mem::take(&mut self.losses.unplaced) {
            let end = self.profile_time(gap.end);
            let timing = match gap.start {
                Some(start) => MarkerTiming::Interval(self.profile_time(start).min(end), end),
                None => MarkerTiming::Instant(end),
            };
            let cpu = gap.cpu.map_or("unknown CPU".to_owned(), |cpu| format!("CPU {cpu}"));
            let cpu = FieldValue::String(cpu.into());
            let (name, schema, values) = match gap.records {
                Some(records) => ("Lost samples", &LOST_SAMPLES, vec![count(records), cpu]),
                None => ("Sampling paused", &SAMPLING_PAUSED, vec![cpu]),
            };
            let content = Content { name, schema: Some(schema), values: &values, category: None };
            for row in self.rows_of_gaps(gap.cpu) {
                self.markers.add(&mut self.builder, row, content, timing);
            }
        }
    }

    /// Adds a sample for what is left of all CPU time where records were lost, among them those that say what threads had used when
    /// they ended: whose it was is not known.
    pub(crate) fn show_rest(&mut self) {
        if self.losses.cpu_time_ns == 0 || self.statistics.lost == 0 || self.leaves_out() {
            return;
        }
        let Some(row) = self.first_main_row() else { return };
        let samples = self.rows_of_threads().flat_map(|(_, thread)| &thread.samples);
        let shown =
            samples.filter(|sample| !sample.off_cpu).map(|sample| u64::from(sample.weight)).sum::<u64>();
        let rest = (self.losses.cpu_time_ns / self.interval()).saturating_sub(shown);
        let Some(rest) = u32::try_from(rest).ok().filter(|rest| *rest > 0) else { return };
        // When the recording ended is not known to whoever imports it, and when the last records were lost is.
        let last_loss = self.losses.on_cpus.values().map(|lost| lost.until).max();
        let at = last_loss.filter(|at| at.0 > 0).unwrap_or(self.last_time);
        self.add_stand_in_row(at, row, well_known::NOT_SAMPLED, rest);
    }

    /// The rows that are threads', and not CPUs'.
    fn rows_of_threads(&self) -> impl Iterator<Item = (ThreadIndex, &Thread)> {
        let (rows, cpus) = (self.builder.profile().threads(), self.cpus.process());
        let rows = rows.iter().enumerate().filter(move |(_, row)| Some(row.process) != cpus);
        rows.map(|(at, row)| (ThreadIndex::from_index(at), row))
    }

    /// The row of the first main thread, or of the first thread where no main thread has one.
    fn first_main_row(&self) -> Option<ThreadIndex> {
        let mains = self.rows_of_threads().filter(|(_, row)| row.is_main);
        mains.chain(self.rows_of_threads()).map(|(at, _)| at).next()
    }

    /// Whether some of what was recorded is not wanted in the profile.
    fn leaves_out(&self) -> bool {
        self.shape.main_threads_only || self.filter != Filter::All || self.selection != Selection::default()
    }

    /// Where markers of gaps are: on the rows of their CPU, where CPUs have some, and else all together on the first main
    /// thread, for whose samples are missing is not known.
    fn rows_of_gaps(&mut self, cpu: Option<u32>) -> Vec<ThreadIndex> {
        if let (true, Some(cpu)) = (self.shape.cpu_threads, cpu) {
            return self.cpus.rows(&mut self.builder, cpu).to_vec();
        }
        let first = self.losses.row.or_else(|| self.first_main_row());
        vec![*self.losses.row.insert(first.unwrap_or(ThreadIndex::from_index(0)))]
    }
}

/// A number of records as a marker's value.
fn count(records: u64) -> FieldValue {
    FieldValue::Integer(i64::try_from(records).unwrap_or(i64::MAX))
}
