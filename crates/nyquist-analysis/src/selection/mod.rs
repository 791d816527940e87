//! Selections: which samples, and which frames of their stacks.

pub(crate) mod patterns;
pub(crate) mod selected_samples;
pub(crate) mod sum_plan;
pub(crate) mod transform;

use std::ops::Range;

use nyquist_profile::{CategoryId, LibId, ProcessIndex, Profile, Thread, ThreadIndex};

use crate::index::cpu_threads::is_of_cpu;
use crate::names::pattern::Pattern;
use crate::sample_state::SampleState;
use crate::selection::transform::Transform;

/// The selected part of a profile. The default is all CPU time.
///
/// A list that is `None` selects everything, an empty one nothing. A sample has to pass all lists.
/// Patterns have the same meaning as in pprof. They are matched against the name of a function, the path
/// of its source file and the name of its lib. A sample without any remaining frame is left out. They
/// apply before the transforms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// The threads.
    pub threads: Option<Vec<ThreadIndex>>,
    /// The processes.
    pub processes: Option<Vec<ProcessIndex>>,
    /// The libs of the samples' innermost frames.
    pub libs: Option<Vec<LibId>>,
    /// The categories of the samples' innermost frames.
    pub categories: Option<Vec<CategoryId>>,
    /// The times, in ns since the profile's zero, without the end. A sample is inside if its time ends
    /// inside. A sample of [exact times](nyquist_profile::Meta::has_exact_times) is inside if the range
    /// covers all of it; [`Profile::split_samples`] splits those at the range's ends.
    pub range: Option<Range<u64>>,
    /// Whether samples on the CPU, off the CPU or both are selected.
    pub state: SampleState,
    /// Keep only samples that have a frame that one of these matches. An empty list keeps all.
    pub focus: Vec<Pattern>,
    /// Leave out samples that have a frame that one of these matches.
    pub ignore: Vec<Pattern>,
    /// Keep only frames that one of these matches. An empty list keeps all.
    pub show: Vec<Pattern>,
    /// Remove frames that one of these matches; their time goes to their callers.
    pub hide: Vec<Pattern>,
    /// Changes of the stacks, one after the other.
    pub transforms: Vec<Transform>,
}

impl Selection {
    /// The selected threads of `profile`. The threads of CPUs, which repeat samples of other threads, are
    /// included only if threads or processes are listed.
    pub fn select_threads<'p>(
        &self,
        profile: &'p Profile,
    ) -> impl Iterator<Item = (ThreadIndex, &'p Thread)> + use<'p, '_> {
        let ids = (0..).map(ThreadIndex::from_index);
        let unlisted = self.threads.is_none() && self.processes.is_none();
        ids.zip(profile.threads()).filter(move |(id, thread)| {
            self.accepts_thread(*id, thread) && !(unlisted && is_of_cpu(profile, thread))
        })
    }

    fn accepts_thread(&self, id: ThreadIndex, thread: &Thread) -> bool {
        self.threads.as_ref().is_none_or(|threads| threads.contains(&id))
            && self.processes.as_ref().is_none_or(|processes| processes.contains(&thread.process))
    }

    /// The times that are selected.
    pub(crate) fn times(&self) -> Range<u64> {
        self.range.clone().unwrap_or(0..u64::MAX)
    }

    /// All patterns of the selection.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        [&self.focus, &self.ignore, &self.show, &self.hide].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::{TestProfile, with_view};
    use nyquist_profile::{Process, well_known};

    #[test]
    fn cpu_threads_count_only_where_they_are_listed() {
        let mut test = TestProfile::new();
        test.thread("1", "a");
        test.thread("0", "CPU 0");
        let cpus = test.builder.profile().threads()[1].process;
        test.builder.process_mut(cpus).name = well_known::CPU_PROCESS.to_owned();
        // A program with that number in another format is an ordinary process.
        let other = Process { pid: well_known::CPU_PROCESS_ID.into(), ..Process::default() };
        let other = test.builder.add_process(other);
        test.builder.add_thread(Thread::new(other, "0", "imported"));
        let profile = test.finish();
        let names = |selection: Selection| -> Vec<String> {
            selection.select_threads(&profile).map(|(_, thread)| thread.name.clone()).collect()
        };
        assert_eq!(names(Selection::default()), ["a", "imported"]);
        assert_eq!(names(Selection { processes: Some(vec![cpus]), ..Selection::default() }), ["CPU 0"]);
        with_view(&profile, &Selection::default(), |view| {
            assert_eq!(view.by_core().iter().map(|row| row.name).collect::<Vec<_>>(), ["CPU 0"]);
            assert_eq!(view.by_thread().len(), 2);
        });
    }

    #[test]
    fn a_thread_must_pass_both_lists() {
        let mut test = TestProfile::new();
        test.thread("1", "a");
        test.thread("1", "b");
        test.thread("2", "c");
        let profile = test.finish();
        let check = |threads: Option<&[usize]>, processes: Option<&[usize]>, expected: &[&str]| {
            let selection = Selection {
                threads: threads
                    .map(|list| list.iter().map(|&index| ThreadIndex::from_index(index)).collect()),
                processes: processes
                    .map(|list| list.iter().map(|&index| ProcessIndex::from_index(index)).collect()),
                ..Selection::default()
            };
            let names: Vec<_> =
                selection.select_threads(&profile).map(|(_, thread)| thread.name.as_str()).collect();
            assert_eq!(names, expected);
        };
        check(None, None, &["a", "b", "c"]);
        check(Some(&[1, 2]), None, &["b", "c"]);
        check(None, Some(&[0]), &["a", "b"]);
        check(Some(&[1, 2]), Some(&[0]), &["b"]);
        check(Some(&[]), None, &[]);
    }
}
