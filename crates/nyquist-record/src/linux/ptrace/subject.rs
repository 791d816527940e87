//! The target of tracing.

use nyquist_convert::event::Pid;

use crate::linux::options::RecordingTarget;

/// The target of tracing, with all that it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TracedTarget {
    /// A child that waits to call exec, and the program that it becomes.
    Child(Pid),
    /// Running processes, and all their descendants.
    Attach(Vec<Pid>),
}

impl TracedTarget {
    /// Converts a target for ptrace; `None` if it is not a command or processes.
    pub fn of(target: &RecordingTarget) -> Option<Self> {
        match target {
            RecordingTarget::Child(pid) => Some(Self::Child(*pid)),
            RecordingTarget::Attach(pids) => Some(Self::Attach(pids.clone())),
            RecordingTarget::Thread { .. } | RecordingTarget::System | RecordingTarget::Cgroup(_) => None,
        }
    }

    /// The processes whose end ends the recording.
    pub(super) fn named(&self) -> &[Pid] {
        match self {
            Self::Child(pid) => std::slice::from_ref(pid),
            Self::Attach(pids) => pids,
        }
    }

    /// Whether this is the child, which its launcher reaps.
    pub(super) fn is_child(&self, pid: u32) -> bool {
        *self == Self::Child(Pid(pid))
    }
}
