//! The errors of opening events: why `perf_event_open` fails, and what the user can do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use nyquist_convert::event::Pid;
use thiserror::Error;

use crate::linux::limits::kernel_setting;
use crate::linux::proc::FIND_PROCESSES;

/// Why `perf_event_open` cannot record anything.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no such process.
    #[error("there is no process {}", pid.0)]
    NoSuchProcess {
        /// The process.
        pid: Pid,
    },
    /// Whoever looks at the process waits for it.
    #[error("process {} cannot be attached to: it calls exec, which waits for a file system that does not answer", pid.0)]
    NoAccess {
        /// The process.
        pid: Pid,
    },
    /// The process belongs to another user, or has more privileges.
    #[error("process {} cannot be attached to: it is another user's, or has more privileges", pid.0)]
    AnotherUsers {
        /// The process.
        pid: Pid,
    },
    /// There is no such CPU, or it is offline.
    #[error("there is no CPU {cpu}: the online CPUs are {online}")]
    NoSuchCpu {
        /// The CPU.
        cpu: u32,
        /// The online CPUs, as a list.
        online: String,
    },
    /// There is no such control group.
    #[error("there is no control group {}: {source}", path.display())]
    NoSuchGroup {
        /// The group, as the user named it.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Other processes may not be recorded.
    #[error("recording the whole system, or a control group, is not permitted")]
    OthersNotAllowed,
    /// The kernel, or a seccomp filter, refuses `perf_event_open` altogether.
    #[error("perf_event_open is refused ({source})")]
    Refused {
        /// The system's error.
        source: io::Error,
        /// What would allow it.
        hint: Hint,
    },
    /// There are not enough descriptors for an event for every thread and CPU.
    #[error("no more than {events} events can be opened, because the limit of open files is reached")]
    Descriptors {
        /// How many could be opened.
        events: usize,
    },
    /// There are not enough descriptors to attach to this many threads.
    #[error("attaching to {threads} threads needs {needed} open files, but the limit is lower")]
    TooFewDescriptors {
        /// The threads.
        threads: usize,
        /// The number of required descriptors.
        needed: u64,
    },
    /// Not even the smallest rings can be mapped.
    #[error("no buffers can be mapped for {cpus} CPUs: {source}")]
    Rings {
        /// The number of CPUs.
        cpus: usize,
        /// The system's error.
        source: io::Error,
    },
    /// An additional event cannot be recorded.
    #[error("the event `{event}` cannot be recorded: {denied} ({source})")]
    Event {
        /// Its name.
        event: String,
        /// Why not.
        denied: EventDenied,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel does not understand the filter of a tracepoint.
    #[error("the kernel refuses the filter `{filter}` of the event `{event}` ({source})")]
    Filter {
        /// The tracepoint.
        event: String,
        /// The filter.
        filter: String,
        /// The tracepoint's fields.
        fields: Vec<String>,
        /// The system's error.
        source: io::Error,
    },
    /// A probe of a command's children needs a control group, and none can be made.
    #[error(
        "the event `{event}` cannot be recorded, because no control group can be created for the command, to count its calls in"
    )]
    ProbeWithoutGroup {
        /// The probe.
        event: String,
    },
    /// A required system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl OpenError {
    /// The system's error, if it is about an additional event.
    pub(crate) fn into_source(self) -> io::Error {
        match self {
            Self::Event { source, .. } | Self::Filter { source, .. } => source,
            other => io::Error::other(other.to_string()),
        }
    }

    /// Advice for the user.
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::NoSuchCpu { .. } | Self::System { .. } => None,
            Self::Event { denied, .. } => denied.advice(),
            Self::Filter { fields, .. } if fields.is_empty() => None,
            Self::Filter { fields, .. } => Some(format!(
                "its fields are {}; a filter is such as `{} == 1 && {} != \"x\"`, with texts in quotes",
                fields.join(", "),
                fields.first().map_or("", String::as_str),
                fields.last().map_or("", String::as_str),
            )),
            Self::ProbeWithoutGroup { .. } => Some(
                "record with sudo; in a container, with a writable cgroup file system, or the running process with -p"
                    .to_owned(),
            ),
            Self::NoSuchProcess { .. } => Some(FIND_PROCESSES.to_owned()),
            Self::NoAccess { pid } => {
                Some(format!("end it (`kill -9 {}`), or record without it", pid.0))
            }
            Self::NoSuchGroup { .. } => {
                Some("`cat /proc/PID/cgroup` shows the control group of a process".to_owned())
            }
            Self::OthersNotAllowed => Some(
                "root can, and so can whoever has CAP_PERFMON; `sudo sysctl kernel.perf_event_paranoid=0` allows it to everybody"
                    .to_owned(),
            ),
            Self::AnotherUsers { .. } => {
                Some("root can, and so can whoever has CAP_PERFMON and CAP_SYS_PTRACE".to_owned())
            }
            Self::Refused { hint, .. } => Some(hint.to_string()),
            Self::TooFewDescriptors { needed, .. } => {
                Some(format!("raise the limit (`ulimit -n {needed}`), or record on fewer CPUs (--cpu)"))
            }
            Self::Descriptors { .. } => Some("raise the limit of open files (`ulimit -n`)".to_owned()),
            Self::Rings { .. } => Some("raise `ulimit -l` or kernel.perf_event_mlock_kb".to_owned()),
        }
    }
}

/// What would allow `perf_event_open`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The setting forbids it.
    Paranoid(i64),
    /// The setting would allow it, so a filter must have refused.
    Filter,
    /// The kernel has no perf events.
    NotBuilt,
    /// The kernel does not support what was requested.
    TooOld,
}

impl Hint {
    /// The likeliest reason for the system's error.
    pub(crate) fn for_error(error: &io::Error) -> Self {
        match (error.raw_os_error(), kernel_setting("perf_event_paranoid")) {
            (Some(libc::ENOSYS), _) | (_, None) => Self::NotBuilt,
            (Some(libc::EACCES | libc::EPERM), Some(level)) if level > 2 => Self::Paranoid(level),
            (Some(libc::EACCES | libc::EPERM), Some(_)) => Self::Filter,
            _ => Self::TooOld,
        }
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paranoid(level) => write!(
                f,
                "kernel.perf_event_paranoid is {level}; `sudo sysctl kernel.perf_event_paranoid=2` or CAP_PERFMON allows it"
            ),
            Self::Filter => write!(
                f,
                "a seccomp filter or a security module forbids it; in a container, `--cap-add=PERFMON` or `--security-opt seccomp=unconfined` allows it"
            ),
            Self::NotBuilt => write!(f, "this kernel was built without perf events"),
            Self::TooOld => write!(f, "this kernel does not know the events that are needed; Linux 4.3 does"),
        }
    }
}

/// Why the kernel refuses an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventDenied {
    /// This process may not observe the kernel.
    TracepointNotPermitted,
    /// This process may not place probes in programs.
    ProbeNotPermitted,
    /// This process may not count it.
    NotPermitted {
        /// Although kernel code is excluded.
        user_only: bool,
    },
    /// It can only be counted for whole CPUs.
    WholeMachineOnly,
    /// This machine cannot sample it.
    NotSupported,
    /// Too many files are open.
    Descriptors,
    /// The kernel's error is the reason.
    Other,
}

impl EventDenied {
    /// Advice for the user.
    pub(super) fn advice(self) -> Option<String> {
        let paranoid = kernel_setting("perf_event_paranoid");
        let level =
            paranoid.map_or_else(String::new, |level| format!(" (kernel.perf_event_paranoid is {level})"));
        Some(match self {
            Self::TracepointNotPermitted => format!("root can, and so can whoever has CAP_PERFMON and may read tracefs{level}: record with sudo"),
            Self::ProbeNotPermitted => format!("root can, and so can whoever has CAP_PERFMON{level}: record with sudo"),
            Self::NotPermitted { user_only: false } => format!(
                "`:u` behind its name leaves the kernel out{level}; root, or `sudo sysctl kernel.perf_event_paranoid=1`, can have both"
            ),
            Self::NotPermitted { user_only: true } => format!("root can, and so can whoever has CAP_PERFMON{level}"),
            Self::WholeMachineOnly => "-a records the whole machine".to_owned(),
            Self::NotSupported => "`nyquist list` says which events this machine has; a virtual machine often has none of the processor's".to_owned(),
            Self::Descriptors => "raise the limit of open files (`ulimit -n 65536`), or name fewer events".to_owned(),
            Self::Other => return None,
        })
    }
}

impl fmt::Display for EventDenied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TracepointNotPermitted => "tracepoints are not permitted",
            Self::ProbeNotPermitted => "probes of programs are not permitted",
            Self::NotPermitted { .. } => "it is not permitted",
            Self::WholeMachineOnly => "its PMU counts only whole CPUs",
            Self::NotSupported => "this machine cannot sample it",
            Self::Descriptors => "too many files are open",
            Self::Other => "the kernel refuses it",
        })
    }
}

/// A failed system call as an error.
pub(super) fn system_error(what: &'static str) -> impl Fn(io::Error) -> OpenError {
    move |source| OpenError::System { what, source }
}
