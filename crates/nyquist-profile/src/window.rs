//! A part of a long recording as a profile of its own.

use crate::profile::Profile;
use crate::sample::Sample;

impl Profile {
    /// The profile of a window that began at `start`, in ns since this profile's zero, and at `start_time`, in µs since
    /// 1970. That is the zero of the new profile, which ends `duration` ns later. What began before is at its zero.
    /// O(samples).
    #[must_use]
    pub fn window(mut self, start: u64, start_time: u64, duration: u64) -> Self {
        for process in &mut self.processes {
            process.start = process.start.saturating_sub(start);
            process.end = process.end.map(|end| end.saturating_sub(start));
        }
        for thread in &mut self.threads {
            thread.start = thread.start.saturating_sub(start);
            thread.end = thread.end.map(|end| end.saturating_sub(start));
            let samples = thread.samples.iter();
            thread.samples =
                samples.map(|sample| Sample { time: sample.time.saturating_sub(start), ..sample }).collect();
            thread.markers.clear();
        }
        self.counters.clear();
        self.meta.start_time = start_time;
        self.meta.profiling_start = Some(0);
        self.meta.profiling_end = Some(duration);
        self
    }
}

#[cfg(test)]
mod tests {
    use crate::{Meta, Process, ProfileBuilder, Sample, Thread};

    #[test]
    fn a_window_begins_at_its_own_zero() {
        let mut builder = ProfileBuilder::new(Meta { interval: 10, ..Meta::default() });
        let process = builder.add_process(Process { start: 40, ..Process::default() });
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        for time in [90, 130] {
            builder.add_sample(thread, Sample::new(time, None, 0));
        }
        let window = builder.finish().window(100, 7, 50);
        let times: Vec<_> = window.threads()[0].samples.iter().map(|sample| sample.time).collect();
        assert_eq!((times, window.processes()[0].start), (vec![0, 30], 0));
        assert_eq!((window.meta().start_time, window.duration()), (7, 50));
    }
}
