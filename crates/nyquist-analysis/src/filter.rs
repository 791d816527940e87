//! Which part of a profile is asked about.

use nyquist_profile::{ProcessIndex, Profile, Thread, ThreadIndex, well_known};

/// Which part of a profile is asked about. Empty lists select everything; a thread must pass both lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The threads.
    pub threads: Vec<ThreadIndex>,
    /// The processes.
    pub processes: Vec<ProcessIndex>,
}

impl Filter {
    /// The threads of `profile` that the filter selects. The rows of CPUs, which show the samples of others a second
    /// time, are only among them where they are asked for.
    pub fn select<'a>(&self, profile: &'a Profile) -> impl Iterator<Item = &'a Thread> {
        let ids = (0..).map(ThreadIndex::from_index);
        let everything = self.threads.is_empty() && self.processes.is_empty();
        let repeats = |thread: &Thread| profile.process(thread.process).pid == well_known::CPU_PROCESS_ID;
        ids.zip(profile.threads())
            .filter(move |(id, thread)| self.accepts(*id, thread) && !(everything && repeats(thread)))
            .map(|(_, thread)| thread)
    }

    fn accepts(&self, id: ThreadIndex, thread: &Thread) -> bool {
        (self.threads.is_empty() || self.threads.contains(&id))
            && (self.processes.is_empty() || self.processes.contains(&thread.process))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::{TestProfile, thread_names};

    #[test]
    fn the_rows_of_cpus_count_only_where_they_are_asked_for() {
        let mut test = TestProfile::new();
        test.thread("1", "a");
        test.thread("0", "CPU 0");
        let profile = test.finish();
        assert_eq!(thread_names(Filter::default().select(&profile)), ["a"]);
        let of_cpus = Filter { processes: vec![profile.threads()[1].process], ..Filter::default() };
        assert_eq!(thread_names(of_cpus.select(&profile)), ["CPU 0"]);
    }

    #[test]
    fn a_filter_selects_threads_that_pass_both_lists() {
        let mut test = TestProfile::new();
        test.thread("1", "a");
        test.thread("1", "b");
        test.thread("2", "c");
        let profile = test.finish();
        let check = |threads: &[usize], processes: &[usize], expected: &[&str]| {
            let filter = Filter {
                threads: threads.iter().map(|&index| ThreadIndex::from_index(index)).collect(),
                processes: processes.iter().map(|&index| ProcessIndex::from_index(index)).collect(),
            };
            assert_eq!(thread_names(filter.select(&profile)), expected);
        };
        check(&[], &[], &["a", "b", "c"]);
        check(&[1, 2], &[], &["b", "c"]);
        check(&[], &[0], &["a", "b"]);
        check(&[1, 2], &[0], &["b"]);
    }
}
