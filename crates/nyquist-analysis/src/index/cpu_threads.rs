//! The threads that stand for CPUs. They repeat the samples of other threads.

use nyquist_profile::{Profile, Thread, ThreadIndex};

/// Whether a thread repeats the samples of one CPU, or of all CPUs.
pub(crate) fn is_of_cpu(profile: &Profile, thread: &Thread) -> bool {
    profile.process(thread.process).is_of_cpus()
}

/// The threads of programs, which are those of a selection that names no threads.
pub(crate) fn program_threads(profile: &Profile) -> impl Iterator<Item = ThreadIndex> + '_ {
    let threads = (0..).map(ThreadIndex::from_index).zip(profile.threads());
    threads.filter(|(_, thread)| !is_of_cpu(profile, thread)).map(|(id, _)| id)
}
