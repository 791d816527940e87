//! The profiles of a window: one of the samples, and one of the occurrences of each event, because a receiver has one
//! value for a stack.

use nyquist_profile::Profile;

/// Divides a profile. What has no sample is left out. O(profile) for each event.
pub(super) fn by_kind(profile: Profile, events: &[String]) -> Vec<Profile> {
    let occurrences = |event: &String| profile.without_samples().with_event_as_samples(event);
    let of_events: Vec<_> = events.iter().filter_map(occurrences).collect();
    let all = std::iter::once(profile).chain(of_events).map(Profile::without_markers);
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
        let profiles = by_kind(profile.clone(), &names);
        let summary: Vec<_> = profiles
            .iter()
            .map(|it| (&*it.meta().measure.name, it.threads()[0].samples.first().map(|it| it.weight)))
            .collect();
        assert_eq!(summary, [("CPU time", Some(1)), ("page-faults", Some(3))]);
        assert!(profiles.iter().all(|it| it.threads()[0].markers.is_empty()));
        assert!(by_kind(profile.without_samples().without_markers(), &[]).is_empty());
    }
}
