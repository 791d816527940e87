//! What to record and how.

use std::time::Duration;

use nyquist_convert::event::Pid;

/// What to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingTarget {
    /// A process that was made for the command, and waits for its start. It is sampled from its
    /// start on, with all its threads and children.
    Child(Pid),
    /// Running processes: all their threads, all their descendants, and all threads and processes that these
    /// will start.
    Attach(Vec<Pid>),
    /// All processes of the machine. Only the kernel's events show them.
    #[cfg(windows)]
    Machine,
}

impl RecordingTarget {
    /// The processes whose end ends the recording.
    pub(crate) fn named(&self) -> &[Pid] {
        match self {
            Self::Child(pid) => std::slice::from_ref(pid),
            Self::Attach(pids) => pids,
            #[cfg(windows)]
            Self::Machine => &[],
        }
    }
}

/// How to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Samples of each running thread per second of wall-clock time.
    pub rate_hz: u32,
    /// How long to record, if it should end before the process does.
    pub duration: Option<Duration>,
    /// The largest copy of a stack in bytes; `None` for [`Options::MAX_STACK_BYTES`].
    pub stack_bytes: Option<u32>,
    /// How threads are sampled.
    #[cfg(windows)]
    pub method: crate::windows::SamplingMethod,
}

impl Options {
    /// The largest copy of a stack in bytes, because its thread is suspended for as long as it takes.
    pub const MAX_STACK_BYTES: u32 = super::MAX_COPY_BYTES as u32;
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rate_hz: 1000,
            duration: None,
            stack_bytes: None,
            #[cfg(windows)]
            method: crate::windows::SamplingMethod::default(),
        }
    }
}
