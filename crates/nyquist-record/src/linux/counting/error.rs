//! Why nothing can be counted.

use std::io;

use nyquist_convert::event::Pid;
use thiserror::Error;

use crate::linux::ptrace::OpenError;

/// Why counting cannot begin.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CountError {
    /// A process has ended.
    #[error("there is no process {}", .0.0)]
    NoProcess(Pid),
    /// Whoever looks at the process waits for it.
    #[error("process {} cannot be counted: it calls exec, which waits for a file system that does not answer", .0.0)]
    NoAccess(Pid),
    /// More descriptors are needed than this process may have.
    #[error("{0} events on {1} threads or CPUs need more open files than the limit allows")]
    TooManyFiles(usize, usize),
    /// The kernel returned an unexpected error.
    #[error("the event `{event}` cannot be opened: {source}")]
    Open {
        /// The event's name.
        event: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The command cannot be traced, which is required to count each of its threads.
    #[error("the command's threads cannot be counted separately: {0}")]
    Trace(#[from] OpenError),
    /// The CPUs or threads cannot be listed.
    #[error("the kernel does not list {0}: {1}")]
    NoList(&'static str, io::Error),
}

impl CountError {
    /// Advice for the user, one line each.
    pub fn advice(&self) -> Vec<String> {
        match self {
            Self::NoProcess(_) => vec!["`ps -e` lists the processes that run".to_owned()],
            Self::NoAccess(pid) => vec![format!("end it (`kill -9 {}`), or count without it", pid.0)],
            Self::TooManyFiles(..) => {
                vec!["raise the limit of open files (`ulimit -n 65536`), or name fewer events".to_owned()]
            }
            Self::Trace(error) => error.advice().into_iter().collect(),
            Self::Open { .. } | Self::NoList(..) => Vec::new(),
        }
    }
}
