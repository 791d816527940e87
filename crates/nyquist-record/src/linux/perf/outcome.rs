//! The result of opening the events: what the machine allowed, and what it refused.

use std::fmt;
use std::time::Duration;

use super::attr::Trigger;
use crate::linux::options::CallGraph;

/// What the events cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// Threads, each with its own events, which its descendants inherit. Each thread starts a new clock: a
    /// thread that lives for less than an interval is never sampled, but its CPU time is known.
    Threads,
    /// A control group: one clock on each CPU, which runs while a thread of the group runs.
    Group,
    /// Whole CPUs: one clock on each, which always runs.
    Cpus,
}

/// What was attached to. Nothing was stopped for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachSummary {
    /// The threads that were found, including those that ended meanwhile.
    pub threads: usize,
    /// The processes that were alive at the end.
    pub processes: usize,
    /// How many passes over the threads were needed until one found no new thread.
    pub rounds: u32,
    /// How long it took.
    pub took: Duration,
}

/// What is recorded, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfOutcome {
    /// What was attached to, thread by thread.
    pub attached: Option<AttachSummary>,
    /// What the events cover.
    pub coverage: Coverage,
    /// What triggers a sample.
    pub trigger: Trigger,
    /// Samples per second of a thread's CPU time.
    pub rate_hz: u32,
    /// Whether kernel code is sampled, with its stacks.
    pub kernel: bool,
    /// How the callers are found.
    pub call_graph: CallGraph,
    /// The size of each stack copy in bytes; 0 if stacks are not copied.
    pub stack_bytes: u32,
    /// The number of CPUs on which samples are recorded.
    pub cpus: usize,
    /// The size of a CPU's ring for samples in bytes.
    pub sample_ring_bytes: usize,
    /// The size of a CPU's ring for mappings, names and tasks in bytes; `None` if they share the one for
    /// samples.
    pub sideband_ring_bytes: Option<usize>,
    /// Whether the stacks of threads that begin to wait are recorded with the kernel's part.
    pub switch_stacks: bool,
    /// Whether a program in the kernel copies what lies beyond the stack copies.
    pub copies_outer_stacks: bool,
    /// The limitations of the recording, and their reasons.
    pub notices: Vec<Notice>,
}

impl PerfOutcome {
    /// Whether a command that is launched has to inherit its events
    /// ([`start_with_inherited_events`](crate::linux::launch::SuspendedChild::start_with_inherited_events)).
    pub fn command_inherits_events(&self) -> bool {
        self.coverage == Coverage::Threads && self.attached.is_none()
    }
}

/// A limitation of the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The rate was lowered to what the kernel allows.
    RateLowered {
        /// The requested rate.
        requested_hz: u32,
        /// The actual rate.
        allowed_hz: u32,
        /// Whether the limit is `kernel.perf_event_max_sample_rate`, rather than the rate at which a program
        /// can still run.
        by_kernel: bool,
    },
    /// Kernel code is not sampled.
    KernelNotPermitted {
        /// `kernel.perf_event_paranoid`, if it is readable.
        paranoid: Option<i64>,
        /// Whether this process runs as root, but lacks root's privileges, as in a container.
        is_root: bool,
    },
    /// Less memory could be locked than the limits promise, so the rings are smaller.
    SmallerRings {
        /// The intended size of a CPU's ring for samples in bytes.
        requested: usize,
        /// The actual size in bytes.
        given: usize,
    },
    /// Mappings, names and tasks share the ring for samples.
    SharedRings,
    /// Less of each stack is copied than requested, because there is too little memory for rings.
    StackLowered {
        /// The requested size in bytes.
        requested: u32,
        /// The actual size in bytes.
        given: u32,
    },
    /// The command could not get its own control group, so whole CPUs are sampled and samples of other
    /// processes are dropped.
    NoGroup {
        /// The reason.
        reason: String,
    },
    /// There are too many threads for an event on each, so whole CPUs are sampled and samples of other
    /// processes are dropped.
    ManyThreads {
        /// The threads.
        threads: usize,
        /// The number of events that they would need.
        events: u64,
    },
    /// The kernel hides its addresses (`kallsyms_show_value` in `kernel/ksyms_common.c`), so kernel code cannot be
    /// named.
    KernelAddressesHidden {
        /// `kernel.kptr_restrict`: at 0, addresses are shown if `perf_event_paranoid` is at most 1; otherwise
        /// they need CAP_SYSLOG.
        kptr_restrict: Option<i64>,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RateLowered { requested_hz, allowed_hz, by_kernel } => {
                let why = if *by_kernel {
                    "because kernel.perf_event_max_sample_rate is the limit"
                } else {
                    "because the program would hardly run at a higher one"
                };
                write!(f, "the rate is lowered from {requested_hz} to {allowed_hz} Hz, {why}")
            }
            Self::KernelNotPermitted { is_root: true, .. } => write!(
                f,
                "kernel code is not sampled, because root lacks CAP_PERFMON here: `--cap-add=PERFMON` gives it to a container"
            ),
            Self::KernelNotPermitted { paranoid: Some(level), .. } => write!(
                f,
                "kernel code is not sampled, because kernel.perf_event_paranoid is {level}: `sudo sysctl kernel.perf_event_paranoid=1` allows it, or record with sudo"
            ),
            Self::KernelNotPermitted { paranoid: None, .. } => {
                write!(
                    f,
                    "kernel code is not sampled, because that needs root or CAP_PERFMON: record with sudo"
                )
            }
            Self::SmallerRings { requested, given } => write!(
                f,
                "each CPU's buffer has {} kB instead of {} kB, because other programs hold locked memory, so samples are lost sooner: raise `ulimit -l` or kernel.perf_event_mlock_kb",
                given / 1024,
                requested / 1024
            ),
            Self::SharedRings => {
                write!(
                    f,
                    "samples, mappings and names share buffers, because too little memory can be locked: raise `ulimit -l` or kernel.perf_event_mlock_kb"
                )
            }
            Self::StackLowered { requested, given } => write!(
                f,
                "{given} bytes of each stack are copied instead of {requested}, because too little memory can be locked for buffers: raise `ulimit -l` or kernel.perf_event_mlock_kb"
            ),
            Self::NoGroup { reason } => write!(
                f,
                "whole CPUs are sampled and other processes are left out, because no control group can be created for the command ({reason}): `nyquist doctor` says what helps"
            ),
            Self::ManyThreads { threads, events } => write!(
                f,
                "whole CPUs are sampled and other processes are left out, because {threads} threads would need {events} events"
            ),
            Self::KernelAddressesHidden { kptr_restrict: Some(0) } => write!(
                f,
                "kernel functions have no names, because kernel.perf_event_paranoid is above 1: `sudo sysctl kernel.perf_event_paranoid=1` shows their addresses, or record with sudo"
            ),
            Self::KernelAddressesHidden { .. } => write!(
                f,
                "kernel functions have no names, because kernel.kptr_restrict hides their addresses: `sudo sysctl kernel.kptr_restrict=0` shows them, or record with sudo"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Notice;

    #[test]
    fn the_setting_hiding_kernel_addresses_is_named() {
        let check = |kptr_restrict, setting: &str, other: &str| {
            let text = Notice::KernelAddressesHidden { kptr_restrict }.to_string();
            assert!(
                text.contains(&format!("sudo sysctl kernel.{setting}`")) && !text.contains(other),
                "{text}"
            );
        };
        check(Some(0), "perf_event_paranoid=1", "kptr_restrict");
        check(Some(1), "kptr_restrict=0", "perf_event_paranoid");
        check(None, "kptr_restrict=0", "perf_event_paranoid");
    }
}
