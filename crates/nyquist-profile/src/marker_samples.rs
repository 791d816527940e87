//! A profile with the markers of one name in place of its samples.

use std::collections::BTreeSet;

use crate::marker::{Marker, MarkerTiming};
use crate::measure::{Measure, Unit};
use crate::profile::Profile;
use crate::sample::Sample;
use crate::thread::Thread;

/// The sampling interval of a profile of durations, in ns.
const INTERVAL: u64 = 1000;

impl Profile {
    /// The names of the markers that have stacks. O(markers).
    pub fn markers_with_stacks(&self) -> Vec<&str> {
        let markers = self.threads.iter().flat_map(|thread| &thread.markers);
        let names: BTreeSet<_> = markers.filter(|it| it.stack.is_some()).map(|it| it.name).collect();
        names.into_iter().map(|name| self.string(name)).collect()
    }

    /// The same profile with the markers of a name instead of the samples. They count their durations, or if
    /// none has one, their number. `None` if none of them has a stack. O(markers × log markers).
    pub fn with_markers_as_samples(mut self, name: &str) -> Option<Self> {
        let of_thread = |thread: &Thread| {
            let markers = thread.markers.iter();
            let requested = markers.filter(|it| it.stack.is_some() && self.string(it.name) == name);
            let mut samples: Vec<_> = requested.map(sample_of).collect();
            samples.sort_by_key(|(sample, _)| sample.time);
            samples
        };
        let by_thread: Vec<_> = self.threads.iter().map(of_thread).collect();
        let longest = by_thread.iter().flatten().map(|(_, length)| *length).max()?;
        let (unit, interval) = match longest {
            0 => (Unit::Count, 1),
            longest => (Unit::Time, longest.div_ceil(u32::MAX.into()).max(INTERVAL)),
        };
        for (thread, samples) in self.threads.iter_mut().zip(by_thread) {
            let weighed = samples.into_iter().map(|(sample, length)| {
                let periods = if longest == 0 { 1 } else { length.div_ceil(interval) };
                Sample { weight: periods, ..sample }
            });
            thread.samples = weighed.collect();
        }
        self.meta.measure = Measure { name: name.to_owned(), unit };
        self.meta.interval = interval;
        self.meta.has_cpu_deltas = false;
        self.meta.has_exact_times = false;
        self.meta.lost_samples = 0;
        Some(self)
    }
}

/// The sample at the end of a marker, and the marker's length in ns.
fn sample_of(marker: &Marker) -> (Sample, u64) {
    let (time, length) = match marker.timing {
        MarkerTiming::Interval(start, end) => (end.max(start), end.saturating_sub(start)),
        timing => (timing.first(), 0),
    };
    (Sample::new(time, marker.stack, 0), length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::ProfileBuilder;
    use crate::category::CategoryColor;
    use crate::meta::Meta;
    use crate::thread::Process;

    fn profile(timings: &[MarkerTiming]) -> Profile {
        let mut builder = ProfileBuilder::new(Meta { interval: 9, has_cpu_deltas: true, ..Meta::default() });
        let category = builder.add_category("Other", CategoryColor::Grey);
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        let stack = Some(builder.intern_label(None, "f", None));
        builder.add_sample(thread, Sample::new(1, stack, 1));
        for (name, stack) in [("lock", stack), ("lock", None), ("other", stack)] {
            let name = builder.intern_string(name);
            for &timing in timings {
                let marker = Marker { name, timing, category, schema: None, values: Vec::new(), stack };
                builder.add_marker(thread, marker);
            }
        }
        builder.finish()
    }

    fn samples(profile: &Profile) -> Vec<(u64, u64)> {
        profile.threads()[0].samples.iter().map(|sample| (sample.time, sample.weight)).collect()
    }

    #[test]
    fn durations_are_counted() {
        let profile = profile(&[MarkerTiming::Interval(5000, 9000), MarkerTiming::Instant(6000)]);
        assert_eq!(profile.markers_with_stacks(), ["lock", "other"]);
        let locks = profile.without_samples().with_markers_as_samples("lock").unwrap();
        assert_eq!(samples(&locks), [(6000, 0), (9000, 4)]);
        assert_eq!(locks.meta().measure, Measure { name: "lock".into(), unit: Unit::Time });
        assert!(profile.with_markers_as_samples("nothing").is_none());
    }

    #[test]
    fn moments_are_counted_by_number() {
        let profile = profile(&[MarkerTiming::Instant(6000), MarkerTiming::Instant(7000)]);
        let locks = profile.with_markers_as_samples("lock").unwrap();
        assert_eq!((samples(&locks), locks.meta().measure.unit), (vec![(6000, 1), (7000, 1)], Unit::Count));
    }
}
