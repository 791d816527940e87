//! The samples that the user wants of a recording: those of some processes, threads, CPUs, names or a
//! stretch of time.

use std::ops::Range;

use crate::event::{Pid, Tid};

/// Which samples are requested. An empty list selects all samples. If several lists are given, a sample must
/// match each.
///
/// Only samples are left out. The names and mappings of all processes are still tracked, because requested
/// processes inherit them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleSelection {
    /// Of these processes.
    pub pids: Vec<Pid>,
    /// Of these threads.
    pub tids: Vec<Tid>,
    /// Of processes or threads that have one of these names when they are sampled.
    pub names: Vec<String>,
    /// On these CPUs. A sample whose CPU is not known matches none of them.
    pub cpus: Vec<u32>,
    /// In this stretch of time, in nanoseconds since the profile's zero.
    pub time: Option<Range<u64>>,
}

impl SampleSelection {
    /// Whether a sample of this thread, on this CPU at this time, may be requested. Everything except names is
    /// checked.
    pub(crate) fn wants(&self, (pid, tid): (Pid, Tid), cpu: Option<u32>, time: u64) -> bool {
        is_in(&self.pids, &pid) && is_in(&self.tids, &tid) && self.wants_moment(cpu, time)
    }

    /// Whether events of any thread may be requested, on this CPU at this time.
    pub(crate) fn wants_moment(&self, cpu: Option<u32>, time: u64) -> bool {
        (self.cpus.is_empty() || cpu.is_some_and(|cpu| self.cpus.contains(&cpu)))
            && self.time.as_ref().is_none_or(|range| range.contains(&time))
    }

    /// Whether names are checked.
    pub(crate) fn filters_by_name(&self) -> bool {
        !self.names.is_empty()
    }

    /// Whether a thread with this name, in a process with this name, is requested.
    pub(crate) fn wants_name(&self, process: &str, thread: &str) -> bool {
        self.names.iter().any(|name| name == process || name == thread)
    }
}

fn is_in<T: PartialEq>(requested: &[T], value: &T) -> bool {
    requested.is_empty() || requested.contains(value)
}
