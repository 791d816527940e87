//! Allocations of memory, as markers: groups of blocks with a stack, and a profile with one of their measures in
//! place of its samples.

use crate::allocation_callers::AllocationFunctions;
use crate::id::{MarkerSchemaId, StackId, ThreadIndex};
use crate::marker::{
    Marker, MarkerDisplay, MarkerField, MarkerFormat, MarkerSchema, MarkerTiming, MarkerValue,
};
use crate::measure::{Measure, Unit};
use crate::profile::Profile;
use crate::sample::Sample;
use crate::thread::Thread;

/// The kind of markers that stand for allocations: blocks that one thread has allocated at one stack, about the
/// same time.
const ALLOCATION_SCHEMA: &str = "Allocated blocks";

/// The last field of such a marker: the mean distance of samples in bytes, or 1 if each allocation was recorded.
const DISTANCE: &str = "distance";

/// A measure of allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AllocationMeasure {
    /// Bytes that were still allocated at the end.
    Live,
    /// Bytes that were allocated at the moment when the most were.
    Peak,
    /// Bytes that were ever allocated.
    Total,
    /// Blocks that were freed before the next allocation of their thread.
    Temporary,
    /// Blocks that were still allocated at the end.
    LiveBlocks,
    /// Blocks that were allocated at the moment when the most bytes were.
    PeakBlocks,
    /// Blocks that were ever allocated.
    Allocations,
}

impl AllocationMeasure {
    /// All of them, in the order of a marker's fields.
    pub const ALL: [Self; 7] = [
        Self::Live,
        Self::Peak,
        Self::Total,
        Self::Temporary,
        Self::LiveBlocks,
        Self::PeakBlocks,
        Self::Allocations,
    ];

    /// Its name as an event.
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Peak => "peak",
            Self::Total => "total",
            Self::Temporary => "temporary",
            Self::LiveBlocks => "live-blocks",
            Self::PeakBlocks => "peak-blocks",
            Self::Allocations => "allocations",
        }
    }

    /// The measure of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|measure| measure.name() == name)
    }

    /// What it counts.
    pub fn unit(self) -> Unit {
        match self {
            Self::Live | Self::Peak | Self::Total => Unit::Bytes,
            Self::Temporary | Self::LiveBlocks | Self::PeakBlocks | Self::Allocations => Unit::Count,
        }
    }

    fn field(self) -> usize {
        Self::ALL.iter().position(|measure| *measure == self).unwrap_or(0)
    }

    fn label(self) -> &'static str {
        match self {
            Self::Live => "Live at the end",
            Self::Peak => "Live at the peak",
            Self::Total => "Allocated",
            Self::Temporary => "Temporary allocations",
            Self::LiveBlocks => "Blocks live at the end",
            Self::PeakBlocks => "Blocks live at the peak",
            Self::Allocations => "Allocations",
        }
    }
}

/// The kind of markers that stand for allocations. Their values are those of [`AllocationMeasure::ALL`], in that
/// order, and the mean distance of samples.
pub fn allocation_schema() -> MarkerSchema {
    let field = |key: &str, label: &str, unit| MarkerField {
        key: key.to_owned(),
        label: Some(label.to_owned()),
        format: if unit == Unit::Bytes { MarkerFormat::Bytes } else { MarkerFormat::Decimal },
    };
    let measures =
        AllocationMeasure::ALL.iter().map(|measure| field(measure.name(), measure.label(), measure.unit()));
    MarkerSchema {
        name: ALLOCATION_SCHEMA.to_owned(),
        display: vec![MarkerDisplay::Table],
        fields: measures.chain([field(DISTANCE, "Mean distance of samples", Unit::Bytes)]).collect(),
        tooltip_label: Some("{marker.name}".to_owned()),
        table_label: Some("{marker.data.total} in {marker.data.allocations} blocks".to_owned()),
        chart_label: Some("{marker.name}".to_owned()),
        description: Some("Memory that was allocated at one stack, with what became of it.".to_owned()),
        is_stack_based: false,
    }
}

/// Blocks that one thread has allocated at one stack about the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AllocatedGroup {
    /// The stack.
    pub stack: Option<StackId>,
    /// When the first was allocated, in ns since the profile's zero.
    pub start: u64,
    /// When the last of those that are not live was freed, if that is known.
    pub end: Option<u64>,
    amounts: [f64; AllocationMeasure::ALL.len()],
}

impl AllocatedGroup {
    /// A measure of these blocks; not negative.
    pub fn amount(&self, measure: AllocationMeasure) -> f64 {
        self.amounts.get(measure.field()).copied().unwrap_or(0.0)
    }

    fn of_marker(marker: &Marker) -> Self {
        let (start, end) = match marker.timing {
            MarkerTiming::Interval(start, end) => (start, Some(end.max(start))),
            timing => (timing.first(), None),
        };
        let amounts = AllocationMeasure::ALL.map(|it| number(marker, it.field()).unwrap_or(0.0).max(0.0));
        Self { stack: marker.stack, start, end, amounts }
    }
}

impl Profile {
    /// The measures of allocations that the profile has. O(kinds of markers).
    pub fn allocation_measures(&self) -> &'static [AllocationMeasure] {
        if self.allocation_schema_id().is_some() { &AllocationMeasure::ALL } else { &[] }
    }

    fn allocation_schema_id(&self) -> Option<MarkerSchemaId> {
        let is_it = |schema: &MarkerSchema| {
            let keys = schema.fields.iter().map(|field| &*field.key);
            schema.name == ALLOCATION_SCHEMA
                && keys.eq(AllocationMeasure::ALL.iter().map(|it| it.name()).chain([DISTANCE]))
        };
        self.marker_schemas.iter().position(is_it).map(MarkerSchemaId::from_index)
    }

    /// Whether a marker of this profile stands for allocated blocks.
    pub fn is_allocated_group(&self, marker: &Marker) -> bool {
        marker.schema.is_some_and(|schema| self.marker_schema(schema).name == ALLOCATION_SCHEMA)
    }

    /// The groups of blocks of a thread, in the order of its markers.
    pub fn allocated_groups(&self, thread: ThreadIndex) -> impl Iterator<Item = AllocatedGroup> {
        self.allocated_by(self.thread(thread))
    }

    /// The same for one of its threads.
    pub(crate) fn allocated_by(&self, thread: &Thread) -> impl Iterator<Item = AllocatedGroup> {
        let schema = self.allocation_schema_id();
        let markers = thread.markers.iter();
        let groups = markers.filter(move |marker| schema.is_some() && marker.schema == schema);
        groups.map(AllocatedGroup::of_marker)
    }

    /// The same profile with a measure of allocations instead of the samples, each at the caller of the functions that
    /// only pass on to an allocator. `None` if it has no allocations. O(markers × log markers).
    pub fn with_allocations_as_samples(mut self, measure: AllocationMeasure) -> Option<Self> {
        let schema = self.allocation_schema_id()?;
        let of_kind = |marker: &&Marker| marker.schema == Some(schema);
        let markers = self.threads.iter().flat_map(|thread| &thread.markers).filter(of_kind);
        let distance = markers.filter_map(|it| number(it, AllocationMeasure::ALL.len())).fold(1.0, f64::max);
        let functions = AllocationFunctions::of(&self);
        let caller = |stack| functions.caller(&self, stack);
        let samples = self.threads.iter().map(|thread| samples(thread, schema, measure, caller).into_iter());
        let samples: Vec<_> = samples.map(Iterator::collect).collect();
        for (thread, samples) in self.threads.iter_mut().zip(samples) {
            thread.samples = samples;
        }
        self.meta.measure = Measure { name: measure.name().to_owned(), unit: measure.unit() };
        self.meta.interval = 1;
        self.meta.sample_distance = (distance > 1.0).then_some(distance as u64);
        self.meta.has_cpu_deltas = false;
        self.meta.has_exact_times = false;
        self.meta.lost_samples = 0;
        Some(self)
    }
}

/// The samples of a thread, by time, each with the stack of its caller. What rounding takes from one is added to the
/// next, so that sums stay right.
fn samples(
    thread: &Thread,
    schema: MarkerSchemaId,
    measure: AllocationMeasure,
    caller: impl Fn(Option<StackId>) -> Option<StackId>,
) -> Vec<Sample> {
    let markers = thread.markers.iter().filter(|marker| marker.schema == Some(schema));
    let mut rest = 0.0;
    let mut samples: Vec<_> = markers
        .filter_map(|marker| {
            let amount = number(marker, measure.field()).filter(|amount| *amount > 0.0)? + rest;
            let weight = amount.round().max(0.0);
            rest = amount - weight;
            let sample = Sample::new(marker.timing.first(), caller(marker.stack), 0);
            (weight > 0.0).then_some(Sample { weight: weight as u64, ..sample })
        })
        .collect();
    samples.sort_by_key(|sample| sample.time);
    samples
}

/// The number in a field of a marker.
fn number(marker: &Marker, field: usize) -> Option<f64> {
    match marker.values.get(field)? {
        MarkerValue::Integer(number) => Some(*number as f64),
        MarkerValue::Number(number) => Some(*number).filter(|number| number.is_finite()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::ProfileBuilder;
    use crate::id::CategoryId;
    use crate::meta::Meta;
    use crate::thread::Process;

    fn profile(rows: &[[f64; 8]]) -> Profile {
        let mut builder = ProfileBuilder::new(Meta { interval: 1000, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        let schema = Some(builder.add_marker_schema(allocation_schema()));
        let stack = Some(builder.intern_label(None, "f", None));
        let (name, category) = (builder.intern_string("allocations"), CategoryId::from_index(0));
        for (row, time) in rows.iter().zip(10..) {
            let values = row.iter().copied().map(MarkerValue::Number).collect();
            let timing = MarkerTiming::Instant(time);
            builder.add_marker(thread, Marker { name, timing, category, schema, values, stack });
        }
        builder.finish()
    }

    fn weights(profile: &Profile, name: &str) -> Vec<u64> {
        let measured = profile.clone().with_event_as_samples(name).unwrap();
        measured.threads()[0].samples.iter().map(|sample| sample.weight).collect()
    }

    #[test]
    fn each_measure_becomes_samples() {
        let profile = profile(&[[5.0, 6.0, 7.0, 1.0, 2.0, 3.0, 4.0, 9.0], [0.0; 8]]);
        let names: Vec<_> = AllocationMeasure::ALL.iter().map(|measure| measure.name()).collect();
        assert_eq!(profile.recorded_events(), names);
        let all: Vec<_> = names.iter().flat_map(|name| weights(&profile, name)).collect();
        assert_eq!(all, [5, 6, 7, 1, 2, 3, 4]);
        let meta = profile.clone().with_event_as_samples("peak").unwrap().meta().clone();
        assert_eq!((meta.measure.unit, meta.interval, meta.sample_distance), (Unit::Bytes, 1, Some(9)));
        assert!(profile.with_event_as_samples("space").is_none());
    }

    #[test]
    fn who_calls_an_allocation_function_allocates() {
        let mut builder = ProfileBuilder::new(Meta { interval: 1000, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        let schema = Some(builder.add_marker_schema(allocation_schema()));
        let mut stack = None;
        let (name, category) = (builder.intern_string("allocations"), CategoryId::from_index(0));
        let frames = ["operator new(unsigned long)", "f", "__rust_alloc", "__rdl_alloc"];
        for (function, time) in frames.into_iter().zip(10..) {
            stack = Some(builder.intern_label(stack, function, None));
            let values = vec![MarkerValue::Number(1.0); 8];
            let timing = MarkerTiming::Instant(time);
            builder.add_marker(thread, Marker { name, timing, category, schema, values, stack });
        }
        let profile = builder.finish().with_event_as_samples("total").unwrap();
        let innermost = |sample: &Sample| {
            let frame = profile.stack_frames(sample.stack.unwrap()).next().unwrap();
            profile.func_name(frame.func).to_owned()
        };
        let found: Vec<String> = profile.threads()[0].samples.iter().map(|it| innermost(&it)).collect();
        // Where nothing else has called it, the function itself has the bytes.
        assert_eq!(found, ["operator new(unsigned long)", "f", "f", "f"]);
    }

    #[test]
    fn rounding_changes_no_sums() {
        let rows = vec![[1.3; 8]; 1000];
        assert_eq!(weights(&profile(&rows), "allocations").iter().sum::<u64>(), 1300);
    }
}
