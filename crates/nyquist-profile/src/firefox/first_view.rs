//! Selects the threads that the front end shows and selects when it opens a profile.
//!
//! By default, it shows the fifteen busiest threads and hides those with less than a twentieth of the
//! busiest one's CPU time. This hides threads that have markers but no samples. If a row sums up all CPUs,
//! it also hides most threads of the program.

use std::cmp::Reverse;

use crate::marker::MarkerDisplay;
use crate::profile::Profile;
use crate::thread::Thread;
use crate::well_known::CPU_PROCESS_ID;

/// The maximum number of threads that are shown because of their CPU time.
const MAX_BUSY: usize = 15;

/// The maximum number of threads that are shown only because of their markers, and of rows of CPUs.
const MAX_OTHERS: usize = 10;

/// A thread is shown if it used at least a twentieth of the busiest one's time.
const BUSY_FRACTION: u64 = 20;

/// The threads of the first view, by their indexes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FirstView {
    /// The threads to show.
    pub(super) visible: Vec<usize>,
    /// The thread whose samples are shown.
    pub(super) selected: Option<usize>,
}

impl FirstView {
    /// The first view of a profile. O(samples + markers).
    pub(super) fn of(profile: &Profile) -> Self {
        let is_cpu = |thread: &Thread| profile.process(thread.process).pid == CPU_PROCESS_ID;
        let threads = || profile.threads().iter().enumerate();
        let mut busy: Vec<_> = threads()
            .filter(|(_, thread)| !is_cpu(thread))
            .map(|(index, thread)| (index, on_cpu_weight(thread)))
            .filter(|(_, weight)| *weight > 0)
            .collect();
        // The sort is stable, so among equally busy threads the first ones are shown.
        busy.sort_by_key(|(_, weight)| Reverse(*weight));
        let most = busy.first().map_or(0, |(_, weight)| *weight);
        busy.retain(|(_, weight)| weight.saturating_mul(BUSY_FRACTION) >= most);
        busy.truncate(MAX_BUSY);
        let selected = busy.first().map(|(index, _)| *index);
        let mut visible: Vec<_> = busy.into_iter().map(|(index, _)| index).collect();

        let mut marked: Vec<_> = threads()
            .filter(|(index, thread)| {
                shows_markers(profile, thread) && !visible.contains(index) && !is_cpu(thread)
            })
            .map(|(index, thread)| (index, thread.markers.len()))
            .collect();
        marked.sort_by_key(|(_, markers)| Reverse(*markers));
        let cpus = threads().filter(|(_, thread)| is_cpu(thread)).map(|(index, _)| index);
        let others = marked.into_iter().map(|(index, _)| index).take(MAX_OTHERS);
        visible.extend(others.chain(cpus.take(MAX_OTHERS)));
        visible.sort_unstable();
        Self { selected: selected.or(visible.first().copied()), visible }
    }
}

/// The number of sampling intervals that a thread was on a CPU.
fn on_cpu_weight(thread: &Thread) -> u64 {
    let on_cpu = thread.samples.iter().filter(|sample| !sample.off_cpu);
    on_cpu.map(|sample| sample.weight).fold(0, u64::saturating_add)
}

/// Whether a thread has markers that its track shows.
pub(super) fn shows_markers(profile: &Profile, thread: &Thread) -> bool {
    thread
        .markers
        .iter()
        .filter_map(|marker| marker.schema)
        .any(|schema| profile.marker_schema(schema).display.contains(&MarkerDisplay::TimelineOverview))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::ProfileBuilder;
    use crate::category::CategoryColor;
    use crate::marker::{Marker, MarkerSchema, MarkerTiming};
    use crate::meta::Meta;
    use crate::sample::Sample;
    use crate::thread::Process;

    /// The first view of threads with these weights and numbers of markers; the CPUs have pid 0.
    fn first_view(threads: &[(&str, u64, usize)]) -> FirstView {
        let mut builder = ProfileBuilder::new(Meta::default());
        let category = builder.add_category("Other", CategoryColor::Grey);
        let name = builder.intern_string("marker");
        let shown =
            MarkerSchema { display: vec![MarkerDisplay::TimelineOverview], ..MarkerSchema::default() };
        let schema = Some(builder.add_marker_schema(shown));
        let processes = ["0", "7"].map(|pid| {
            let pid = pid.to_owned();
            builder.add_process(Process { pid, ..Process::default() })
        });
        for (at, &(pid, weight, markers)) in threads.iter().enumerate() {
            let process = processes[usize::from(pid != "0")];
            let thread = builder.add_thread(Thread::new(process, at.to_string(), ""));
            builder.add_sample(thread, Sample { weight, ..Sample::new(1, None, 0) });
            for time in 0..markers {
                let timing = MarkerTiming::Instant(time as u64);
                let marker = Marker { name, timing, category, schema, values: Vec::new(), stack: None };
                builder.add_marker(thread, marker);
            }
            // The same as context switches, of which a thread has thousands.
            let timing = MarkerTiming::Instant(0);
            let marker = Marker { name, timing, category, schema: None, values: Vec::new(), stack: None };
            builder.add_marker(thread, marker);
        }
        FirstView::of(&builder.finish())
    }

    fn check(threads: &[(&str, u64, usize)], visible: &[usize], selected: Option<usize>) {
        let expected = FirstView { visible: visible.to_vec(), selected };
        assert_eq!(first_view(threads), expected, "{threads:?}");
    }

    #[test]
    fn busy_threads_are_shown_and_idle_ones_are_not() {
        check(&[("7", 1, 0), ("7", 100, 0), ("7", 5, 0)], &[1, 2], Some(1));
    }

    #[test]
    fn threads_with_markers_alone_are_shown() {
        check(&[("7", 100, 0), ("7", 0, 3), ("7", 0, 0)], &[0, 1], Some(0));
        check(&[("7", 0, 0), ("7", 0, 3)], &[1], Some(1));
    }

    #[test]
    fn rows_of_cpus_hide_no_thread() {
        check(&[("0", 1000, 0), ("0", 500, 0), ("7", 10, 0), ("7", 20, 0)], &[0, 1, 2, 3], Some(3));
    }

    #[test]
    fn many_threads_are_cut_to_the_busiest() {
        let threads: Vec<_> = (0..40).map(|at| ("7", 100 + at, 1)).collect();
        let FirstView { visible, selected } = first_view(&threads);
        assert_eq!((visible.len(), selected), (MAX_BUSY + MAX_OTHERS, Some(39)));
    }

    #[test]
    fn a_profile_without_threads_has_no_view() {
        check(&[], &[], None);
    }
}
