//! Why a session of the kernel's events does not run.

use std::io;

use thiserror::Error;

/// Why the kernel's events are not recorded.
#[derive(Debug, Error)]
pub enum EtwDenied {
    /// The user lacks the rights.
    #[error("recording the kernel's events (ETW) needs the rights of an administrator")]
    NotAdministrator,
    /// The system has the functions, and no events behind them.
    #[error("Wine has no event traces (ETW)")]
    Wine,
    /// All sessions of the machine are in use, or there is no memory for one.
    #[error(
        "a session of the kernel's events (ETW) cannot be started: all eight of Windows are in use, or memory is short"
    )]
    NoSession,
    /// The interval between samples is not allowed.
    #[error("an interval of {} ms between samples is refused: {source}", milliseconds(*.requested_ns))]
    Interval {
        /// The requested interval, in nanoseconds.
        requested_ns: u64,
        /// The shortest one that the machine allows, in nanoseconds, if it says so.
        least_ns: Option<u64>,
        /// The system's error.
        source: io::Error,
    },
    /// A required call failed.
    #[error("{what}: {source}")]
    System {
        /// What was to be done.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl EtwDenied {
    /// Advice for the user, one line each. `by_suspending`: whether the processes can be recorded by
    /// suspending their threads as well.
    pub fn advice(&self, by_suspending: bool) -> Vec<String> {
        let without = "`--backend suspend` records the program without them".to_owned();
        let without = by_suspending.then_some(without);
        let own = match self {
            Self::NotAdministrator => Some(
                "run nyquist in a terminal that was opened by \"Run as administrator\", or by `sudo nyquist record` where Windows 11 has sudo"
                    .to_owned(),
            ),
            Self::Wine if !by_suspending => {
                Some("name a command, or processes by -p: these are recorded by suspending their threads".to_owned())
            }
            Self::NoSession => Some(
                "`logman query -ets` lists the sessions, and `logman stop NAME -ets` ends one".to_owned(),
            ),
            Self::Interval { least_ns: Some(least_ns), .. } => {
                Some(format!("the shortest interval of this machine is {} ms: lower the rate (-r)", milliseconds(*least_ns)))
            }
            Self::Interval { least_ns: None, .. } => Some("lower the rate (-r)".to_owned()),
            Self::Wine | Self::System { .. } => None,
        };
        own.into_iter().chain(without).collect()
    }
}

fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}
