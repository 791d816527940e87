//! What to record and how, whichever backend does it.

use std::path::PathBuf;
use std::time::Duration;

use nyquist_convert::event::Pid;

use super::budget::{Copies, LARGEST_STACK};
use super::recorded_event::RecordedEvent;

/// What to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A child that waits for leave to become the command: sampled from its exec on, with all its threads and
    /// children.
    Child(Pid),
    /// Processes that run: all their threads, all processes that descend from them, and all threads and processes that
    /// these will start.
    Attach(Vec<Pid>),
    /// Every process of the machine. Takes root, CAP_PERFMON, or `kernel.perf_event_paranoid` at 0 or lower.
    System,
    /// The processes of a control group and of those below it: a path in the hierarchy, as `/proc/PID/cgroup` shows
    /// it, or in the file system. Takes what [`Target::System`] takes.
    Cgroup(PathBuf),
}

/// How the callers of a sampled instruction are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallGraph {
    /// By what gives the most: a copy of the stack.
    #[default]
    Auto,
    /// The kernel follows frame pointers: the least work, but only in programs that are built with them throughout.
    FramePointers,
    /// From a copy of the stack, by the programs' unwind information.
    Dwarf,
    /// Not at all.
    None,
}

impl CallGraph {
    /// Whether samples come with a copy of the stack.
    pub(crate) fn copies_stacks(self) -> bool {
        matches!(self, Self::Auto | Self::Dwarf)
    }
}

/// How to record.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Samples for every second of a thread's CPU time.
    pub rate_hz: u32,
    /// How long to record, where it should end before the process does.
    pub duration: Option<Duration>,
    /// How long what was sampled may lie in the rings. `None` leaves it there until they are worth a look, which may
    /// take seconds: the least work for a recording that nobody watches.
    pub hand_over_every: Option<Duration>,
    /// The CPUs on which samples are taken; all that are online where none is named.
    pub cpus: Vec<u32>,
    /// Whether events also tell when threads come to a CPU and leave it.
    pub context_switches: bool,
    /// Whether samples of threads that wait say what they wait for, where threads are looked at from outside (ptrace).
    pub wait_reasons: bool,
    /// How the callers of what is sampled are found.
    pub call_graph: CallGraph,
    /// The bytes of each stack that are copied, where they are; `None` begins with 32 kB, and goes on with the most that
    /// the kernel copies where many stacks are deeper.
    pub stack_bytes: Option<u32>,
    /// What is recorded beside the clock.
    pub events: Vec<RecordedEvent>,
}

impl Options {
    /// The most bytes of a stack that the kernel copies.
    pub const MOST_STACK_BYTES: u32 = LARGEST_STACK;

    /// Whether somebody has asked for events beside the clock, so that a recording without them is none.
    pub(crate) fn asks_for_events(&self) -> bool {
        self.events.iter().any(|event| !event.may_be_left_out())
    }

    /// What is copied of each stack.
    pub(crate) fn copies(&self) -> Copies {
        match self.stack_bytes {
            _ if !self.call_graph.copies_stacks() => Copies::None,
            Some(bytes) => Copies::Fixed(bytes),
            None => Copies::Growing,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rate_hz: 1000,
            duration: None,
            hand_over_every: None,
            cpus: Vec::new(),
            context_switches: false,
            wait_reasons: false,
            call_graph: CallGraph::Auto,
            stack_bytes: None,
            events: Vec::new(),
        }
    }
}
