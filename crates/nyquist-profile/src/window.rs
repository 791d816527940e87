//! A part of a long recording as a profile of its own.

use crate::marker::MarkerTiming;
use crate::profile::Profile;
use crate::sample::Sample;

impl Profile {
    /// The same profile without markers and counters. O(threads).
    #[must_use]
    pub fn without_markers(mut self) -> Self {
        for thread in &mut self.threads {
            thread.markers = Vec::new();
        }
        self.counters = Vec::new();
        self
    }

    /// The same profile with another name of what its samples count.
    #[must_use]
    pub fn with_measure_name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.meta.measure.name);
        self
    }

    /// The profile of a window that began at `start`, in ns since this profile's zero, and at `start_time`, in µs since
    /// 1970. That is the zero of the new profile, which ends `duration` ns later. What began before is at its zero.
    /// O(samples, markers and values of counters).
    #[must_use]
    pub fn beginning_at(mut self, start: u64, start_time: u64, duration: u64) -> Self {
        let later = |time: u64| time.saturating_sub(start);
        for process in &mut self.processes {
            process.start = later(process.start);
            process.end = process.end.map(later);
        }
        for thread in &mut self.threads {
            thread.start = later(thread.start);
            thread.end = thread.end.map(later);
            let samples = thread.samples.iter();
            thread.samples = samples.map(|sample| Sample { time: later(sample.time), ..sample }).collect();
            for marker in &mut thread.markers {
                marker.timing = match marker.timing {
                    MarkerTiming::Instant(at) => MarkerTiming::Instant(later(at)),
                    MarkerTiming::Interval(from, to) => MarkerTiming::Interval(later(from), later(to)),
                    MarkerTiming::IntervalStart(from) => MarkerTiming::IntervalStart(later(from)),
                    MarkerTiming::IntervalEnd(to) => MarkerTiming::IntervalEnd(later(to)),
                };
            }
        }
        for sample in self.counters.iter_mut().flat_map(|counter| &mut counter.samples) {
            sample.time = later(sample.time);
        }
        self.meta.start_time = start_time;
        self.meta.profiling_start = Some(0);
        self.meta.profiling_end = Some(duration);
        self
    }
}

#[cfg(test)]
mod tests {
    use crate::{CategoryColor, Marker, MarkerTiming, Meta, Process, ProfileBuilder, Sample, Thread};

    #[test]
    fn a_window_begins_at_its_own_zero() {
        let mut builder = ProfileBuilder::new(Meta { interval: 10, ..Meta::default() });
        let process = builder.add_process(Process { start: 40, ..Process::default() });
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        for time in [90, 130] {
            builder.add_sample(thread, Sample::new(time, None, 0));
        }
        let window = builder.finish().beginning_at(100, 7, 50);
        let times: Vec<_> = window.threads()[0].samples.iter().map(|sample| sample.time).collect();
        assert_eq!((times, window.processes()[0].start), (vec![0, 30], 0));
        assert_eq!((window.meta().start_time, window.duration()), (7, 50));
    }

    #[test]
    fn a_later_beginning_moves_markers_and_counters() {
        let mut builder = ProfileBuilder::new(Meta { interval: 10, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        let name = builder.intern_string("request");
        let category = builder.add_category("Other", CategoryColor::Grey);
        let timing = MarkerTiming::Interval(90, 130);
        builder
            .add_marker(thread, Marker { name, timing, category, schema: None, values: vec![], stack: None });
        let moved = builder.finish().beginning_at(100, 7, 50);
        assert_eq!(moved.threads()[0].markers[0].timing, MarkerTiming::Interval(0, 30));
        assert!(moved.without_markers().threads()[0].markers.is_empty());
    }
}
