//! What to record and how, for every backend.

use std::path::PathBuf;
use std::time::Duration;

use nyquist_convert::event::{Pid, Tid};

use super::recorded_event::RecordedEvent;
use super::ring_limits::{Copies, MAX_STACK_COPY};

/// What to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingTarget {
    /// A child that waits for permission to become the command. It is sampled from its exec on, with all its
    /// threads and children.
    Child(Pid),
    /// Running processes: all their threads, all their descendants, and all threads and processes that these
    /// will start.
    Attach(Vec<Pid>),
    /// One thread of a running process, without the threads and processes that it will start.
    Thread {
        /// Its process.
        pid: Pid,
        /// The thread.
        tid: Tid,
    },
    /// Every process of the machine. Requires root, CAP_PERFMON, or `kernel.perf_event_paranoid` at 0 or
    /// lower.
    System,
    /// The processes of a control group and of those below it: a path in the hierarchy, as in
    /// `/proc/PID/cgroup`, or in the file system. Requires the same as [`RecordingTarget::System`].
    Cgroup(PathBuf),
}

/// How the callers of a sampled instruction are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallGraph {
    /// By the method that finds the most: a copy of the stack.
    #[default]
    Auto,
    /// The kernel follows frame pointers. This is the cheapest, but works only in programs built with them
    /// throughout.
    FramePointers,
    /// From a copy of the stack, with the programs' unwind information.
    Dwarf,
    /// Not at all.
    None,
}

impl CallGraph {
    /// Whether samples contain a copy of the stack.
    pub(crate) fn copies_stacks(self) -> bool {
        matches!(self, Self::Auto | Self::Dwarf)
    }
}

/// How to record.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Options {
    /// Samples per second of a thread's CPU time.
    pub rate_hz: u32,
    /// How long to record, if it should end before the process does.
    pub duration: Option<Duration>,
    /// How long samples may stay in the rings; a chunk then comes at least this often, even without records. `None`
    /// leaves them there until a wake-up is worthwhile, which may take seconds: the least work for a recording without
    /// live display.
    pub hand_over_every: Option<Duration>,
    /// Whether they may stay for longer after a time without any, up to two seconds. The recorder of a program that
    /// sleeps then sleeps, too, and chunks come only if there are records, or were just now.
    pub hand_over_lazily: bool,
    /// Whether nothing is sampled before a request to resume.
    pub starts_paused: bool,
    /// Whether the recording goes on all the time, so that the CPU time of reading deep stacks has to be in proportion
    /// to its samples. Then some of them stay truncated.
    pub spares_cpu_time: bool,
    /// The CPUs on which samples are recorded; all online CPUs if empty.
    pub cpus: Vec<u32>,
    /// Whether events also report context switches.
    pub context_switches: bool,
    /// Whether samples of waiting threads contain the reason of the wait, if threads are sampled with ptrace.
    pub wait_reasons: bool,
    /// How the callers of a sample are found.
    pub call_graph: CallGraph,
    /// The size of each stack copy in bytes, if stacks are copied. `None` starts with 32 kB, and changes to
    /// the kernel's maximum if many stacks are deeper.
    pub stack_bytes: Option<u32>,
    /// The events that are recorded in addition to the sampling event.
    pub events: Vec<RecordedEvent>,
}

impl Options {
    /// The largest stack copy that the kernel makes.
    pub const MAX_STACK_BYTES: u32 = MAX_STACK_COPY;

    /// Whether the user requested additional events, so that a recording without them would be useless.
    pub(crate) fn asks_for_events(&self) -> bool {
        self.events.iter().any(|event| !event.is_optional())
    }

    /// How much of each stack is copied.
    pub(crate) fn copies(&self) -> Copies {
        match self.stack_bytes {
            _ if !self.call_graph.copies_stacks() => Copies::None,
            Some(bytes) => Copies::Fixed(bytes),
            None => Copies::Largest,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rate_hz: 1000,
            duration: None,
            hand_over_every: None,
            hand_over_lazily: false,
            starts_paused: false,
            spares_cpu_time: false,
            cpus: Vec::new(),
            context_switches: false,
            wait_reasons: false,
            call_graph: CallGraph::Auto,
            stack_bytes: None,
            events: Vec::new(),
        }
    }
}
