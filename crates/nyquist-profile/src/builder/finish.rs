//! The end of building: rows that are left out, the order by time, main threads, and the grey category.

use rustc_hash::{FxHashMap, FxHashSet};

use super::ProfileBuilder;
use crate::category::CategoryColor;
use crate::counter::Counter;
use crate::id::{CounterId, ProcessIndex};
use crate::profile::Profile;
use crate::thread::Thread;
use crate::well_known;

impl ProfileBuilder {
    /// Keeps only the counters that `keep` accepts. Earlier ids of counters become invalid.
    pub fn retain_counters(&mut self, mut keep: impl FnMut(CounterId, &Counter) -> bool) {
        let mut ids = (0..).map(CounterId::from_index);
        self.profile.counters.retain(|counter| ids.next().is_some_and(|id| keep(id, counter)));
    }

    /// Keeps only the threads that `keep` accepts, and the processes that still have one. Earlier ids of
    /// threads and processes become invalid.
    pub fn retain_threads(&mut self, keep: impl FnMut(&Thread) -> bool) {
        let profile = &mut self.profile;
        profile.threads.retain(keep);
        let used: FxHashSet<_> = profile.threads.iter().map(|thread| thread.process).collect();
        let mut old = (0..).map(ProcessIndex::from_index);
        let mut retained = Vec::new();
        profile.processes.retain(|_| {
            let id = old.next();
            let keep = id.is_some_and(|id| used.contains(&id));
            retained.extend(id.filter(|_| keep));
            keep
        });
        let new: FxHashMap<_, _> = retained.into_iter().zip((0..).map(ProcessIndex::from_index)).collect();
        for thread in &mut profile.threads {
            thread.process = new[&thread.process];
        }
        profile.counters.retain(|counter| new.contains_key(&counter.process));
        for counter in &mut profile.counters {
            counter.process = new[&counter.process];
        }
    }

    /// The profile. Samples and markers are sorted by time. Each process gets exactly one main thread: the
    /// first one marked as such, otherwise its first. The grey category is added if there is none.
    pub fn finish(mut self) -> Profile {
        self.order_by_time();
        self.settle_main_threads();
        self.ensure_grey_category();
        self.profile
    }

    /// The front end uses a grey category as the default, and does not load a profile without one.
    fn ensure_grey_category(&mut self) {
        if !self.profile.categories.iter().any(|category| category.color == CategoryColor::Grey) {
            let other = self.add_category(well_known::OTHER, CategoryColor::Grey);
            self.profile.categories[other.index()].color = CategoryColor::Grey;
        }
    }

    fn order_by_time(&mut self) {
        for thread in &mut self.profile.threads {
            thread.samples.sort_by_time();
            thread.samples.shrink_to_fit();
            thread.markers.sort_by_key(|marker| marker.timing.first());
        }
        for counter in &mut self.profile.counters {
            counter.samples.sort_by_key(|sample| sample.time);
        }
    }

    fn settle_main_threads(&mut self) {
        let mut main_of: FxHashMap<ProcessIndex, usize> = FxHashMap::default();
        for (index, thread) in self.profile.threads.iter().enumerate() {
            let main = main_of.entry(thread.process).or_insert(index);
            if thread.is_main && !self.profile.threads[*main].is_main {
                *main = index;
            }
        }
        for (index, thread) in self.profile.threads.iter_mut().enumerate() {
            thread.is_main = main_of.get(&thread.process) == Some(&index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::CategoryId;
    use crate::marker::Marker;
    use crate::meta::Meta;
    use crate::sample::Sample;
    use crate::thread::Process;

    fn builder() -> ProfileBuilder {
        ProfileBuilder::new(Meta::default())
    }

    #[test]
    fn each_process_gets_one_main_thread() {
        let check = |claims: &[bool], expected: &[bool]| {
            let mut builder = builder();
            let process = builder.add_process(Process::default());
            for &is_main in claims {
                builder.add_thread(Thread { is_main, ..Thread::new(process, "1", "") });
            }
            let main: Vec<_> = builder.finish().threads().iter().map(|thread| thread.is_main).collect();
            assert_eq!(main, expected, "{claims:?}");
        };
        check(&[false, false], &[true, false]);
        check(&[false, true, true], &[false, true, false]);
    }

    #[test]
    fn samples_are_put_in_the_order_of_their_times() {
        let mut builder = builder();
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", ""));
        for time in [3, 1, 2] {
            builder.add_sample(thread, Sample::new(time, None, 0));
        }
        let profile = builder.finish();
        let times: Vec<_> = profile.thread(thread).samples.iter().map(|sample| sample.time).collect();
        assert_eq!(times, [1, 2, 3]);
    }

    #[test]
    fn markers_are_put_in_the_order_of_their_begins() {
        use crate::MarkerTiming::{Instant, Interval, IntervalEnd, IntervalStart};
        let mut builder = builder();
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", ""));
        let (name, category) = (builder.intern_string("m"), CategoryId::from_index(0));
        for timing in [Instant(3), Interval(2, 9), IntervalEnd(8), IntervalStart(1)] {
            let marker = Marker { name, timing, category, schema: None, values: Vec::new(), stack: None };
            builder.add_marker(thread, marker);
        }
        let profile = builder.finish();
        let timings: Vec<_> = profile.thread(thread).markers.iter().map(|marker| marker.timing).collect();
        assert_eq!(timings, [IntervalStart(1), Interval(2, 9), Instant(3), IntervalEnd(8)]);
    }

    #[test]
    fn there_is_always_a_grey_category() {
        for color in [CategoryColor::Red, CategoryColor::Grey] {
            let mut builder = ProfileBuilder::without_categories(Meta::default());
            builder.add_category(well_known::OTHER, color);
            let profile = builder.finish();
            assert_eq!(profile.categories().len(), 1);
            assert_eq!(profile.categories()[0].color, CategoryColor::Grey);
        }
    }

    #[test]
    fn threads_left_out_take_their_processes_along() {
        let mut builder = builder();
        for pid in ["1", "2"] {
            let process = builder.add_process(Process { pid: pid.into(), ..Process::default() });
            builder.add_thread(Thread::new(process, pid, ""));
        }
        builder.retain_threads(|thread| thread.tid == "2");
        let profile = builder.finish();
        assert_eq!(profile.processes().len(), 1);
        assert_eq!(profile.process(profile.threads()[0].process).pid, "2");
    }
}
