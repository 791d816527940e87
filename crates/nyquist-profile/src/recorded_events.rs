//! Events recorded in addition to the samples, as markers: their names, and a profile with an event's samples.

use crate::allocations::AllocationMeasure;
use crate::id::MarkerSchemaId;
use crate::marker::{Marker, MarkerValue};
use crate::measure::{Measure, Unit};
use crate::profile::Profile;
use crate::sample::Sample;
use crate::samples::Samples;
use crate::thread::Thread;
use crate::well_known;

impl Profile {
    /// The names of the events recorded in addition to the samples, and of the measures of allocations.
    /// O(kinds of markers).
    pub fn recorded_events(&self) -> Vec<&str> {
        let allocations = self.allocation_measures().iter().map(|measure| measure.name());
        self.occurring_events().into_iter().chain(allocations).collect()
    }

    /// The names of the events alone.
    fn occurring_events(&self) -> Vec<&str> {
        let schemas = self.marker_schemas.iter();
        let counts = schemas
            .filter(|schema| schema.fields.first().is_some_and(|it| it.key == well_known::EVENT_COUNT));
        counts.filter_map(|schema| well_known::event_of_schema(&schema.name)).collect()
    }

    /// The recorded event with a name: the full name, or the part after the last colon (`malloc` for
    /// `libc:malloc`), if only one event has that. O(kinds of markers).
    pub fn recorded_event(&self, name: &str) -> Option<&str> {
        let events = self.recorded_events();
        if let Some(event) = events.iter().find(|event| **event == name) {
            return Some(event);
        }
        let mut ending =
            events.into_iter().filter(|event| event.rsplit_once(':').is_some_and(|(_, end)| end == name));
        ending.next().filter(|_| ending.next().is_none())
    }

    /// A copy without the samples. O(stacks + markers).
    #[must_use]
    pub fn without_samples(&self) -> Self {
        let thread = |thread: &Thread| Thread {
            process: thread.process,
            tid: thread.tid.clone(),
            name: thread.name.clone(),
            samples: Samples::new(),
            markers: thread.markers.clone(),
            ..*thread
        };
        Self {
            meta: self.meta.clone(),
            strings: self.strings.clone(),
            libs: self.libs.clone(),
            sources: self.sources.clone(),
            funcs: self.funcs.clone(),
            native_symbols: self.native_symbols.clone(),
            frames: self.frames.clone(),
            stacks: self.stacks.clone(),
            categories: self.categories.clone(),
            marker_schemas: self.marker_schemas.clone(),
            processes: self.processes.clone(),
            threads: self.threads.iter().map(thread).collect(),
            counters: self.counters.clone(),
        }
    }

    /// The same profile with the occurrences of an event instead of the samples. Each stands for the
    /// number of events that it states. `None` if no such event ([`recorded_event`](Self::recorded_event))
    /// was recorded. O(markers × log markers).
    pub fn with_event_as_samples(mut self, event: &str) -> Option<Self> {
        let event = self.recorded_event(event)?.to_owned();
        if let Some(measure) = AllocationMeasure::of_name(&event)
            && !self.occurring_events().contains(&&*event)
        {
            return self.with_allocations_as_samples(measure);
        }
        let name = well_known::event_schema(&event);
        let schema = self.marker_schemas.iter().position(|schema| schema.name == name)?;
        let schema = MarkerSchemaId::from_index(schema);
        for thread in &mut self.threads {
            let markers = thread.markers.iter().filter_map(|marker| Some((marker, count(marker, schema)?)));
            let mut samples: Vec<Sample> = markers
                .map(|(marker, weight)| Sample {
                    weight,
                    ..Sample::new(marker.timing.first(), marker.stack, 0)
                })
                .collect();
            // Markers of a file may be in any order, but samples may not.
            samples.sort_by_key(|sample| sample.time);
            thread.samples = samples.into_iter().collect();
        }
        self.meta.measure = Measure { name: event, unit: Unit::Count };
        self.meta.interval = 1;
        self.meta.has_cpu_deltas = false;
        self.meta.has_exact_times = false;
        self.meta.lost_samples = 0;
        Some(self)
    }
}

/// The number of events of a marker of this kind; `None` for another kind, or if it states no number.
fn count(marker: &Marker, schema: MarkerSchemaId) -> Option<u64> {
    let first = marker.values.first().filter(|_| marker.schema == Some(schema))?;
    match first {
        MarkerValue::Integer(count) => u64::try_from(*count).ok().filter(|count| *count > 0),
        // A file may write whole numbers as floating-point numbers.
        MarkerValue::Number(count) if *count >= 1.0 => Some(*count as u64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::ProfileBuilder;
    use crate::id::{CategoryId, ThreadIndex};
    use crate::marker::{MarkerField, MarkerFormat, MarkerSchema, MarkerTiming};
    use crate::meta::Meta;
    use crate::thread::{Process, Thread};

    fn schema(name: &str, key: &str) -> MarkerSchema {
        let field = MarkerField { key: key.to_owned(), label: None, format: MarkerFormat::Integer };
        MarkerSchema { name: name.to_owned(), fields: vec![field], ..MarkerSchema::default() }
    }

    /// A profile with a sample at 1, and markers of three kinds with these counts at 10, 11 and so on.
    fn profile(counts: &[(usize, MarkerValue)]) -> Profile {
        let mut builder =
            ProfileBuilder::new(Meta { interval: 1000, has_cpu_deltas: true, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        let kinds = [
            builder.add_marker_schema(schema("Event: faults", well_known::EVENT_COUNT)),
            builder.add_marker_schema(schema("Event: other", "x")),
            builder.add_marker_schema(schema("Event: a:b", well_known::EVENT_COUNT)),
        ];
        let stack = Some(builder.intern_label(None, "f", None));
        builder.add_sample(thread, Sample::new(1, stack, 0));
        let name = builder.intern_string("m");
        for ((kind, value), time) in counts.iter().zip(10..) {
            let (timing, schema) = (MarkerTiming::Instant(time), Some(kinds[*kind]));
            let category = CategoryId::from_index(0);
            builder
                .add_marker(thread, Marker { name, timing, category, schema, values: vec![*value], stack });
        }
        builder.finish()
    }

    fn samples(profile: &Profile) -> Vec<(u64, u64)> {
        let thread = profile.thread(ThreadIndex::from_index(0));
        thread.samples.iter().map(|sample| (sample.time, sample.weight)).collect()
    }

    #[test]
    fn the_markers_of_an_event_become_the_samples() {
        let integer = MarkerValue::Integer;
        let counts = [
            (0, integer(3)),
            (2, integer(9)),
            (0, integer(0)),
            (0, MarkerValue::Number(4.0)),
            (0, MarkerValue::Missing),
        ];
        let before = profile(&counts);
        assert_eq!(before.recorded_events(), ["faults", "a:b"]);
        let after = before.clone().with_event_as_samples("faults").unwrap();
        assert_eq!(samples(&after), [(10, 3), (13, 4)]);
        let meta = after.meta();
        assert_eq!((&*meta.measure.name, meta.measure.unit, meta.interval), ("faults", Unit::Count, 1));
        assert!(!meta.has_cpu_deltas);
        assert_eq!(after.threads()[0].samples.first().unwrap().stack, before.threads()[0].markers[0].stack);
        assert_eq!(samples(&before.clone().with_event_as_samples("a:b").unwrap()), [(11, 9)]);
        assert_eq!((before.recorded_event("b"), before.recorded_event("a")), (Some("a:b"), None));
        let mut reversed = before.clone();
        reversed.threads[0].markers.reverse();
        assert_eq!(samples(&reversed.with_event_as_samples("faults").unwrap()), [(10, 3), (13, 4)]);
        for unknown in ["other", "", "Event: faults"] {
            assert!(before.clone().with_event_as_samples(unknown).is_none(), "{unknown}");
        }
    }

    #[test]
    fn great_counts_are_kept() {
        let count = i64::from(u32::MAX) * 10;
        let after = profile(&[(0, MarkerValue::Integer(count)), (0, MarkerValue::Integer(11))]);
        let after = after.with_event_as_samples("faults").unwrap();
        assert_eq!((after.meta().interval, samples(&after)), (1, vec![(10, count as u64), (11, 11)]));
    }
}
