//! The result of the attempt to open processes: what is recorded, and what failed.

use std::{fmt, io};

use nyquist_convert::event::Pid;
use thiserror::Error;

use super::LeftOut;
use super::here::LISTING_COMMAND;
use super::system::Refusal;

/// What is recorded, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Samples of every running thread per second of wall-clock time, if the budget allows as many.
    pub rate_hz: u32,
    /// The limitations of the recording.
    pub notices: Vec<Notice>,
}

impl Outcome {
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
        asked_hz: u32,
        /// The actual rate.
        allowed_hz: u32,
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
            Self::RateLowered { asked_hz, allowed_hz } => write!(
                f,
                "the rate is lowered from {asked_hz} to {allowed_hz} Hz, for a program that is stopped more often would not get to run"
            ),
            Self::LeftOut { pids, reason } => match pids[..] {
                [_] => write!(f, "a process that descends from what is recorded is left out: {reason}"),
                _ => write!(
                    f,
                    "{} processes that descend from what is recorded are left out: {reason}, and likewise the others",
                    pids.len()
                ),
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
    pub(crate) fn of((pid, refusal): (Pid, Refusal)) -> Self {
        match refusal {
            Refusal::Gone => Self::NoSuchProcess { pid },
            Refusal::Refused { reason, advice } => Self::Refused { pid, reason, advice },
        }
    }

    /// The process that does not exist or has ended, if that is the reason.
    pub fn no_such_process(&self) -> Option<Pid> {
        match self {
            Self::NoSuchProcess { pid } => Some(*pid),
            _ => None,
        }
    }

    /// Advice for the user, one line each.
    pub fn advice(&self) -> Vec<String> {
        match self {
            Self::NoSuchProcess { .. } => vec![format!(
                "`{LISTING_COMMAND}` lists the processes that run, and `nyquist record --name NAME` attaches to those of a name"
            )],
            Self::Refused { advice, .. } => advice.iter().cloned().collect(),
            Self::Itself { .. } | Self::System { .. } => Vec::new(),
        }
    }
}
