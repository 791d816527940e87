//! Profiles for tests, written as stacks of words.

use nyquist_profile::{
    CategoryColor, CategoryId, Meta, Process, ProcessIndex, Profile, ProfileBuilder, Sample, StackId, Thread,
    ThreadIndex, well_known,
};

/// Builds a profile with an interval of 1 ms; the samples of a thread are 1 ms apart and have CPU deltas of 1
/// ms.
pub(crate) struct TestProfile {
    pub(crate) builder: ProfileBuilder,
    processes: Vec<(String, ProcessIndex)>,
    thread: Option<ThreadIndex>,
    user: CategoryId,
    kernel: CategoryId,
}

impl TestProfile {
    pub(crate) fn new() -> Self {
        let meta = Meta { interval: 1_000_000, has_cpu_deltas: true, lost_samples: 9, ..Meta::default() };
        let mut builder = ProfileBuilder::new(meta);
        let user = builder.add_category(well_known::USER, CategoryColor::Yellow);
        let kernel = builder.add_category(well_known::KERNEL, CategoryColor::Orange);
        Self { builder, processes: Vec::new(), thread: None, user, kernel }
    }

    /// Begins a thread; the samples that follow are its.
    pub(crate) fn thread(&mut self, pid: &str, name: &str) {
        let known = self.processes.iter().find(|(known, _)| known == pid).map(|(_, process)| *process);
        let process = known.unwrap_or_else(|| {
            let process = self.builder.add_process(Process { pid: pid.into(), ..Process::default() });
            self.processes.push((pid.into(), process));
            process
        });
        self.thread = Some(self.builder.add_thread(Thread::new(process, name, name)));
    }

    /// Adds a sample. Functions are separated by blanks, the outermost first; `user:` and `kernel:` give a
    /// category. Brackets stand for one function, blanks and all. No function is no stack.
    pub(crate) fn sample(&mut self, stack: &str, weight: u32) {
        let words: Vec<_> =
            if stack.starts_with('[') { vec![stack] } else { stack.split_whitespace().collect() };
        let mut prefix = None;
        for word in words {
            let (category, name) = match word.split_once(':') {
                Some(("user", name)) => (Some(self.user), name),
                Some(("kernel", name)) => (Some(self.kernel), name),
                _ => (None, word),
            };
            prefix = Some(self.builder.intern_label(prefix, name, category));
        }
        self.add(prefix, weight);
    }

    /// Adds a sample in a function that has called itself `depth` times.
    pub(crate) fn deep_sample(&mut self, name: &str, depth: usize) {
        let mut prefix = None;
        for _ in 0..depth {
            prefix = Some(self.builder.intern_label(prefix, name, None));
        }
        self.add(prefix, 1);
    }

    fn add(&mut self, stack: Option<StackId>, weight: u32) {
        let thread = self.thread.expect("a thread comes first");
        let time = self.builder.profile().thread(thread).samples.len() as u64 * 1_000_000;
        self.builder.add_sample(thread, Sample { time, cpu_delta: 1_000_000, stack, weight, off_cpu: false });
    }

    pub(crate) fn finish(self) -> Profile {
        self.builder.finish()
    }
}

pub(crate) fn thread_names<'a>(threads: impl Iterator<Item = &'a Thread>) -> Vec<&'a str> {
    threads.map(|thread| thread.name.as_str()).collect()
}
