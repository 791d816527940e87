//! A thread for each CPU, with all that ran on it.

use nyquist_profile::{
    self as profile, ProcessIndex, ProfileBuilder, Sample, StackId, ThreadIndex, well_known,
};
use rustc_hash::FxHashMap;

/// The rows of the CPUs that had samples so far.
#[derive(Debug, Default)]
pub(crate) struct Cpus {
    process: Option<ProcessIndex>,
    /// The row of all CPUs together.
    all: Option<ThreadIndex>,
    each: FxHashMap<u32, ThreadIndex>,
}

impl Cpus {
    /// Adds a sample to its CPU's row and to that of all CPUs; `label` is the root of its stack there.
    pub(crate) fn add_sample(&mut self, builder: &mut ProfileBuilder, cpu: u32, label: &str, sample: Sample) {
        let stack = Some(under_label(builder, label, sample.stack));
        for row in self.rows(builder, cpu) {
            builder.add_sample(row, Sample { stack, ..sample });
        }
    }

    /// The process that has the rows, if it exists.
    pub(crate) fn process(&self) -> Option<ProcessIndex> {
        self.process
    }

    /// The row of all CPUs, and that of one.
    pub(crate) fn rows(&mut self, builder: &mut ProfileBuilder, cpu: u32) -> [ThreadIndex; 2] {
        let process = *self.process.get_or_insert_with(|| {
            builder.add_process(profile::Process {
                pid: well_known::CPU_PROCESS_ID.to_owned(),
                name: well_known::CPU_PROCESS.to_owned(),
                ..profile::Process::default()
            })
        });
        let all = *self.all.get_or_insert_with(|| {
            let mut row = profile::Thread::new(process, "0", "All CPUs");
            row.is_main = true;
            builder.add_thread(row)
        });
        let own = *self.each.entry(cpu).or_insert_with(|| {
            // 0 is the row of all CPUs.
            let tid = u64::from(cpu) + 1;
            builder.add_thread(profile::Thread::new(process, tid.to_string(), format!("CPU {cpu}")))
        });
        [all, own]
    }
}

/// The stack with one more frame at its root.
fn under_label(builder: &mut ProfileBuilder, label: &str, stack: Option<StackId>) -> StackId {
    let profile = builder.profile();
    let stacks = stack.into_iter().flat_map(|stack| profile.ancestors(stack));
    let frames: Vec<_> = stacks.map(|stack| profile.stack(stack).frame).collect();
    let root = builder.intern_label(None, label, None);
    frames.into_iter().rev().fold(root, |prefix, frame| builder.intern_stack(Some(prefix), frame))
}
