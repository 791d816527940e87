//! The result of the attempt to open processes: what is recorded, and what failed.

use std::{fmt, io};

use nyquist_convert::event::Pid;
use thiserror::Error;

use super::LeftOut;
use super::here::LISTING_COMMAND;
use super::system::SamplingDenied;

/// What is recorded, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingOutcome {
    /// Samples of every running thread per second of wall-clock time, if the budget allows as many.
    pub rate_hz: u32,
    /// The time between two samples in nanoseconds.
    pub interval_ns: u64,
    /// How threads are sampled.
    pub sampled: SampledBy,
    /// The limitations of the recording.
    pub notices: Vec<Notice>,
}

/// How threads are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampledBy {
    /// By suspending them.
    Suspending,
    /// By the kernel's events.
    #[cfg(windows)]
    KernelEvents,
}

impl RecordingOutcome {
    /// What is sampled, and how, to be shown to the user.
    pub fn way(&self) -> String {
        match self.sampled {
            SampledBy::Suspending => format!("user code at {} Hz by suspending threads", self.rate_hz),
            #[cfg(windows)]
            SampledBy::KernelEvents => {
                format!("user and kernel code at {} Hz by the kernel's events (ETW)", self.rate_hz)
            }
        }
    }

    /// Samples of every running thread per second of wall-clock time.
    pub fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// Whether all CPU time has samples. Time in the kernel counts for the user code that called it.
    pub fn samples_all_cpu_time(&self) -> bool {
        true
    }

    /// The limitations of the recording, to be shown to the user.
    pub fn notices(&self) -> Vec<&dyn fmt::Display> {
        self.notices.iter().map(|notice| notice as &dyn fmt::Display).collect()
    }
}

/// A limitation of the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The rate was lowered.
    RateLowered {
        /// The requested rate.
        requested_hz: u32,
        /// The actual rate.
        allowed_hz: u32,
    },
    /// The rate was lowered to that of the machine's shortest interval between samples.
    #[cfg(windows)]
    LeastInterval {
        /// The requested rate.
        requested_hz: u32,
        /// The actual rate.
        allowed_hz: u32,
        /// The interval in nanoseconds.
        least_ns: u64,
    },
    /// Buffers with the kernel's events did not reach the recorder.
    #[cfg(windows)]
    BuffersLost {
        /// How many.
        count: u64,
    },
    /// The kernel's events ended before the recording did.
    #[cfg(windows)]
    SessionEnded {
        /// Why, if it is known. Otherwise, another program has stopped the session.
        reason: Option<String>,
    },
    /// Descendants of the recorded processes that cannot be sampled.
    LeftOut {
        /// The processes.
        pids: Vec<Pid>,
        /// Why the first of them cannot be sampled.
        reason: String,
    },
}

impl Notice {
    /// A notice of what was left out, if anything was.
    pub(crate) fn of(left_out: &[LeftOut]) -> Option<Self> {
        let first = left_out.first()?;
        let reason = match &first.advice {
            Some(advice) => format!("{} ({advice})", first.reason),
            None => first.reason.clone(),
        };
        Some(Self::LeftOut { pids: left_out.iter().map(|it| it.pid).collect(), reason })
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RateLowered { requested_hz, allowed_hz } => write!(
                f,
                "the rate is lowered from {requested_hz} to {allowed_hz} Hz, because a program that is stopped more often would hardly run"
            ),
            #[cfg(windows)]
            Self::LeastInterval { requested_hz, allowed_hz, least_ns } => write!(
                f,
                "the rate is lowered from {requested_hz} to {allowed_hz} Hz, because the shortest interval between samples is {} ms on this machine",
                *least_ns as f64 / 1e6
            ),
            #[cfg(windows)]
            Self::BuffersLost { count } => write!(
                f,
                "{count} buffers of the kernel's events were lost, with samples in them: a lower rate (-r) loses fewer"
            ),
            #[cfg(windows)]
            Self::SessionEnded { reason: Some(reason) } => write!(f, "the recording ended early: {reason}"),
            #[cfg(windows)]
            Self::SessionEnded { reason: None } => {
                f.write_str("the recording ended early: another program has stopped its session")
            }
            Self::LeftOut { pids, reason } => match pids[..] {
                [_] => write!(f, "a child process is not recorded: {reason}"),
                _ => write!(f, "{} child processes are not recorded; of the first: {reason}", pids.len()),
            },
        }
    }
}

/// Why nothing can be recorded.
#[derive(Debug, Error)]
pub enum OpenError {
    /// There is no such process, or it has ended meanwhile.
    #[error("there is no process {}", pid.0)]
    NoSuchProcess {
        /// The process.
        pid: Pid,
    },
    /// The system refuses to let it be sampled, or it is of a kind that is not sampled.
    #[error("{reason}")]
    Refused {
        /// The process.
        pid: Pid,
        /// Why.
        reason: String,
        /// What may help, if anything.
        advice: Option<String>,
    },
    /// The kernel's events are not recorded.
    #[cfg(windows)]
    #[error("{denied}")]
    Etw {
        /// Why.
        denied: crate::etw::EtwDenied,
        /// Whether the target can be recorded by suspending its threads as well.
        by_suspending: bool,
    },
    /// The recorder itself is named.
    #[error("process {} is nyquist itself, which cannot suspend its own threads", pid.0)]
    Itself {
        /// The process.
        pid: Pid,
    },
    /// A required system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was to be done.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl OpenError {
    /// The error of a process that cannot be opened.
    pub(crate) fn of((pid, denied): (Pid, SamplingDenied)) -> Self {
        match denied {
            SamplingDenied::Gone => Self::NoSuchProcess { pid },
            SamplingDenied::Refused { reason, advice } => Self::Refused { pid, reason, advice },
        }
    }

    /// The process that does not exist or has ended, if that is the reason.
    pub fn no_such_process(&self) -> Option<Pid> {
        match self {
            Self::NoSuchProcess { pid } => Some(*pid),
            _ => None,
        }
    }

    /// Whether the same command works if an administrator runs it.
    #[cfg(windows)]
    pub fn needs_administrator(&self) -> bool {
        matches!(self, Self::Etw { denied: crate::etw::EtwDenied::NotAdministrator, .. })
    }

    /// Advice for the user, one line each.
    pub fn advice(&self) -> Vec<String> {
        match self {
            Self::NoSuchProcess { .. } => vec![format!(
                "`{LISTING_COMMAND}` lists the processes that run, and `nyquist record --name NAME` attaches to those of a name"
            )],
            Self::Refused { advice, .. } => advice.iter().cloned().collect(),
            #[cfg(windows)]
            Self::Etw { denied, by_suspending } => denied.advice(*by_suspending),
            Self::Itself { .. } | Self::System { .. } => Vec::new(),
        }
    }
}
