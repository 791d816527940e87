//! Times in which samples may be missing, as markers with their time and CPU.

use super::marker_kinds::schema;
use super::markers::Content;
use super::sink::ProfileSink;
use crate::account::gap::{Gap, GapCause};
use crate::event::{FieldValue, Timestamp};
use nyquist_profile::{
    MarkerDisplay, MarkerFormat, MarkerSchema, MarkerTiming, Thread, ThreadIndex, well_known,
};
use std::sync::{Arc, LazyLock};

/// Records that the source dropped because its buffer was full.
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
        "The kernel took no samples on this CPU, because they cost too much time (kernel.perf_event_max_sample_rate).",
    )
});

/// A time in which the user had paused the recording.
static RECORDING_PAUSED: LazyLock<Arc<MarkerSchema>> = LazyLock::new(|| {
    gap_schema(
        "RecordingPaused",
        &[],
        "on request",
        "Nothing was recorded, because the recording was paused on request.",
    )
});

/// A kind of gap, which is shown in all views with a time axis.
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

impl ProfileSink {
    /// Adds the marker of a gap, as soon as there is a row for it.
    pub(crate) fn add_gap(&mut self, gap: Gap) {
        self.gaps.unplaced.push(gap);
        self.place_gaps();
    }

    /// Adds the markers that have no row yet, if a row exists by now.
    pub(crate) fn place_gaps(&mut self) {
        if self.builder.profile().threads().is_empty() {
            return;
        }
        for gap in std::mem::take(&mut self.gaps.unplaced) {
            let end = self.time(gap.end);
            let timing = match gap.start {
                Some(start) => MarkerTiming::Interval(self.time(start).min(end), end),
                None => MarkerTiming::Instant(end),
            };
            let cpu = gap.cpu.map_or("unknown CPU".to_owned(), |cpu| format!("CPU {cpu}"));
            let cpu = FieldValue::String(cpu.into());
            let (name, schema, values) = match gap.cause {
                GapCause::Lost(records) => ("Lost samples", &LOST_SAMPLES, vec![count(records), cpu]),
                GapCause::Throttled => ("Sampling paused", &SAMPLING_PAUSED, vec![cpu]),
                GapCause::Paused => ("Recording paused", &RECORDING_PAUSED, Vec::new()),
            };
            let content =
                Content { name, schema: Some(schema), values: &values, category: None, stack: None };
            for row in self.rows_of_gaps(gap.cpu) {
                self.markers.add(&mut self.builder, row, content, timing);
            }
        }
    }

    /// The weight of all samples of threads that ran.
    pub(crate) fn weight_on_cpu(&self) -> u64 {
        let samples = self.rows_of_threads().flat_map(|(_, thread)| &thread.samples);
        samples.filter(|sample| !sample.off_cpu).map(|sample| sample.weight).fold(0, u64::saturating_add)
    }

    /// Adds a sample for time that was not sampled and whose thread is not known.
    pub(crate) fn add_rest(&mut self, at: Timestamp, weight: u64) {
        if let Some(row) = self.first_main_row() {
            self.add_row_without_stack(at, row, well_known::NOT_SAMPLED, weight);
        }
    }

    /// The rows of threads, without those of CPUs.
    fn rows_of_threads(&self) -> impl Iterator<Item = (ThreadIndex, &Thread)> {
        let (rows, cpus) = (self.builder.profile().threads(), self.cpus.process());
        let rows = rows.iter().enumerate().filter(move |(_, row)| Some(row.process) != cpus);
        rows.map(|(at, row)| (ThreadIndex::from_index(at), row))
    }

    /// The row of the first main thread, or of the first thread if no main thread has one.
    fn first_main_row(&self) -> Option<ThreadIndex> {
        let mains = self.rows_of_threads().filter(|(_, row)| row.is_main);
        mains.chain(self.rows_of_threads()).map(|(at, _)| at).next()
    }

    /// The rows of gap markers. If CPUs have rows, these are the rows of the gap's CPU. Otherwise all are on
    /// the first main thread, because it is not known which thread's samples are missing.
    fn rows_of_gaps(&mut self, cpu: Option<u32>) -> Vec<ThreadIndex> {
        if let (true, Some(cpu)) = (self.shape.cpu_threads, cpu) {
            return self.cpus.rows(&mut self.builder, cpu).to_vec();
        }
        let first = self.gaps.row.or_else(|| self.first_main_row());
        vec![*self.gaps.row.insert(first.unwrap_or(ThreadIndex::from_index(0)))]
    }
}

/// A number of records as a marker's value.
fn count(records: u64) -> FieldValue {
    FieldValue::Integer(i64::try_from(records).unwrap_or(i64::MAX))
}
