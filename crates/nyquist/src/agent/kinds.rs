//! The profiles of a window: one of the samples, one of the occurrences of each event, and one of each value of
//! allocations, because a receiver has one value for a stack.

use nyquist_formats::pprof::HEAP_VALUES;
use nyquist_profile::{AllocationMeasure, Profile};

/// What is sent of allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllocationValues {
    /// What was allocated, and what was live at the end.
    All,
    /// What was allocated: it is not known what is live.
    Allocated,
}

impl AllocationValues {
    fn has(self, measure: AllocationMeasure) -> bool {
        let is_live = matches!(measure, AllocationMeasure::Live | AllocationMeasure::LiveBlocks);
        self == Self::All || !is_live
    }
}

/// Divides a profile. What has no sample is left out. O(profile) for each event and value.
pub(super) fn by_kind(profile: Profile, events: &[String], values: AllocationValues) -> Vec<Profile> {
    let occurrences = |event: &String| profile.without_samples().with_event_as_samples(event);
    let of_events = events.iter().filter_map(occurrences);
    let of_values = HEAP_VALUES.into_iter().filter_map(|(name, measure)| {
        let is_sent = values.has(measure) && !profile.allocation_measures().is_empty();
        let measured = is_sent.then(|| profile.without_samples())?.with_allocations_as_samples(measure)?;
        Some(measured.with_measure_name(name))
    });
    let others: Vec<_> = of_events.chain(of_values).collect();
    let all = std::iter::once(profile).chain(others).map(Profile::without_markers);
    all.filter(has_samples).collect()
}

fn has_samples(profile: &Profile) -> bool {
    profile.threads().iter().any(|thread| !thread.samples.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_profile::{
        CategoryColor, Marker, MarkerField, MarkerFormat, MarkerSchema, MarkerTiming, MarkerValue, Meta,
        Process, ProfileBuilder, Sample, Thread, well_known,
    };

    #[test]
    fn each_event_has_a_profile_of_its_own() {
        let mut builder = ProfileBuilder::new(Meta { interval: 10, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        builder.add_sample(thread, Sample::new(5, None, 0));
        let count = well_known::EVENT_COUNT.to_owned();
        let field = MarkerField { key: count, label: None, format: MarkerFormat::Integer };
        let name = well_known::event_schema("page-faults");
        let schema = Some(builder.add_marker_schema(MarkerSchema {
            name,
            fields: vec![field],
            ..MarkerSchema::default()
        }));
        let (name, category) =
            (builder.intern_string("x"), builder.add_category("Other", CategoryColor::Grey));
        let (timing, values) = (MarkerTiming::Instant(7), vec![MarkerValue::Integer(3)]);
        builder.add_marker(thread, Marker { name, timing, category, schema, values, stack: None });
        let profile = builder.finish();
        let names = ["page-faults".to_owned(), "never".to_owned()];
        let profiles = by_kind(profile.clone(), &names, AllocationValues::All);
        let summary: Vec<_> = profiles
            .iter()
            .map(|it| (&*it.meta().measure.name, it.threads()[0].samples.first().map(|it| it.weight)))
            .collect();
        assert_eq!(summary, [("CPU time", Some(1)), ("page-faults", Some(3))]);
        assert!(profiles.iter().all(|it| it.threads()[0].markers.is_empty()));
        let empty = profile.without_samples().without_markers();
        assert!(by_kind(empty, &[], AllocationValues::All).is_empty());
    }

    #[test]
    fn each_value_of_allocations_has_a_profile() {
        let mut builder = ProfileBuilder::new(Meta { interval: 10, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        let schema = Some(builder.add_marker_schema(nyquist_profile::allocation_schema()));
        let (name, category) =
            (builder.intern_string("x"), builder.add_category("Other", CategoryColor::Grey));
        // In the order of the measures: live, peak, total, temporary, live blocks, blocks at the peak, allocations; and
        // the distance of samples.
        for amounts in
            [[70.0, 80.0, 0.0, 0.0, 7.0, 8.0, 0.0, 512.0], [5.0, 9.0, 30.0, 1.0, 1.0, 2.0, 3.0, 512.0]]
        {
            let values = amounts.map(MarkerValue::Number).to_vec();
            let timing = MarkerTiming::Instant(7);
            builder.add_marker(thread, Marker { name, timing, category, schema, values, stack: None });
        }
        let profile = builder.finish();
        let sums = |values| {
            let sum = |it: &Profile| it.threads()[0].samples.iter().map(|it| it.weight).sum::<u64>();
            let profiles = by_kind(profile.clone(), &[], values);
            profiles.iter().map(|it| (it.meta().measure.name.clone(), sum(it))).collect::<Vec<_>>()
        };
        let named = |name: &str, sum: u64| (name.to_owned(), sum);
        let allocated = [named("alloc_objects", 3), named("alloc_space", 30)];
        assert_eq!(sums(AllocationValues::Allocated), allocated);
        let all = [&allocated[..], &[named("inuse_objects", 8), named("inuse_space", 75)]].concat();
        assert_eq!(sums(AllocationValues::All), all);
    }
}
