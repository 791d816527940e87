//! The rows of a profile: the sums of each stack of a thread, by time.

use nyquist_profile::{ProcessIndex, Profile, StackId, ThreadIndex};
use rustc_hash::FxHashMap;

use crate::pprof::{has_times, signed};
use crate::{ProcessLabels, SourcePaths};

/// How a profile becomes rows.
#[derive(Clone, Copy)]
pub struct WriteOptions<'a> {
    /// Where source files are.
    pub paths: SourcePaths<'a>,
    /// The time in ns within which samples of one stack are one row. `None`: the whole profile.
    pub slice: Option<u64>,
    /// The service and the labels of each process.
    pub labels: &'a dyn Fn(ProcessIndex) -> ProcessLabels,
}

impl std::fmt::Debug for WriteOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteOptions").field("slice", &self.slice).finish_non_exhaustive()
    }
}

/// A row: what a stack of a thread used within a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub process: ProcessIndex,
    pub thread: ThreadIndex,
    pub off_cpu: bool,
    pub slice: u64,
    pub stack: Option<StackId>,
    pub value: i64,
}

/// When rows begin and how long they are, in µs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slices {
    zero: u64,
    /// In ns.
    length: Option<u64>,
    /// The whole recording, in µs since its zero.
    whole: (u64, u64),
}

impl Slices {
    pub(super) fn new(profile: &Profile, length: Option<u64>) -> Self {
        let (meta, duration) = (profile.meta(), profile.duration());
        let length = length.filter(|length| *length > 0 && has_times(meta));
        let start = meta.profiling_start.unwrap_or(0) / 1000;
        let duration = if has_times(meta) { duration / 1000 } else { 0 };
        Self { zero: meta.start_time, length, whole: (start, duration) }
    }

    /// The slice of a sample, which stands for the time before it.
    fn of(&self, time: u64) -> u64 {
        self.length.map_or(0, |length| time.saturating_sub(1) / length)
    }

    /// When a slice begins, since 1970.
    pub(super) fn start(&self, slice: u64) -> i64 {
        let start = self.length.map_or(self.whole.0, |length| slice.saturating_mul(length) / 1000);
        signed(self.zero.saturating_add(start))
    }

    pub(super) fn duration(&self) -> i64 {
        signed(self.length.map_or(self.whole.1, |length| length / 1000))
    }
}

/// The rows, sorted as `SORTED_BY` states it.
pub(super) fn rows(profile: &Profile, slices: Slices, services: &[ProcessLabels]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (index, thread) in profile.threads().iter().enumerate() {
        let mut sums: FxHashMap<_, i64> = FxHashMap::default();
        for sample in thread.samples.iter().filter(|sample| sample.weight > 0) {
            let sum = sums.entry((sample.off_cpu, slices.of(sample.time), sample.stack)).or_default();
            *sum = sum.saturating_add(signed(sample.weight.saturating_mul(profile.meta().interval)));
        }
        rows.extend(sums.into_iter().map(|((off_cpu, slice, stack), value)| Row {
            process: thread.process,
            thread: ThreadIndex::from_index(index),
            off_cpu,
            slice,
            stack,
            value,
        }));
    }
    // `cpu` comes before `off_cpu`, which is all there is beside the kind of the other samples.
    rows.sort_unstable_by(|a, b| {
        let key = |row: &Row| (row.slice, row.process, row.thread, row.stack);
        let service = |row: &Row| &*services[row.process.index()].service;
        service(a)
            .cmp(service(b))
            .then_with(|| kind_key(profile, a).cmp(kind_key(profile, b)))
            .then_with(|| key(a).cmp(&key(b)))
    });
    rows
}

/// The kind of a row.
pub(super) fn kind(profile: &Profile, off_cpu: bool) -> &str {
    let measure = &profile.meta().measure;
    match off_cpu {
        true => super::OFF_CPU,
        false if measure.is_cpu_time() => super::CPU,
        false => &measure.name,
    }
}

fn kind_key<'p>(profile: &'p Profile, row: &Row) -> &'p str {
    kind(profile, row.off_cpu)
}
