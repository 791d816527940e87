//! What is traced.

use nyquist_convert::event::Pid;

use crate::linux::options::Target;

/// What is traced, with all that it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A child that waits to call exec: what it becomes.
    Child(Pid),
    /// Processes that run, and all that descend from them.
    Attach(Vec<Pid>),
}

impl Subject {
    /// What a target is to ptrace; `None` where it is more than a command or processes.
    pub fn of(target: &Target) -> Option<Self> {
        match target {
            Target::Child(pid) => Some(Self::Child(*pid)),
            Target::Attach(pids) => Some(Self::Attach(pids.clone())),
            Target::System | Target::Cgroup(_) => None,
        }
    }

    /// The processes with the last of which the recording ends.
    pub(super) fn named(&self) -> &[Pid] {
        match self {
            Self::Child(pid) => std::slice::from_ref(pid),
            Self::Attach(pids) => pids,
        }
    }

    /// Whether this is the child, whose status is for whoever has launched it.
    pub(super) fn is_child(&self, pid: u32) -> bool {
        *self == Self::Child(Pid(pid))
    }
}
