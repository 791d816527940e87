//! Which part of a profile is asked about.

use nyquist_profile::{ProcessIndex, Profile, Thread, ThreadIndex};

/// Which part of a profile is asked about. Empty lists select everything; a thread must pass both lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The threads.
    pub threads: Vec<ThreadIndex>,
    /// The processes.
    pub processes: Vec<ProcessIndex>,
}

impl Filter {
    /// The threads of `profile` that the filter selects.
    pub fn select<'a>(&self, profile: &'a Profile) -> impl Iterator<Item = &'a Thread> {
        let ids = (0..).map(ThreadIndex::from_index);
        ids.zip(profile.threads()).filter(|(id, thread)| self.accepts(*id, thread)).map(|(_, thread)| thread)
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
