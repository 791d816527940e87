//! The result of the attempt to trace: what is recorded, and what failed.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::{fmt, io};

use nyquist_convert::ProcessFile;
use nyquist_convert::event::Pid;
use thiserror::Error;

use crate::linux::limits::kernel_setting;
use crate::linux::proc::{self, FIND_PROCESSES};
use crate::linux::target_access;
use nyquist_system::read_kernel_text;

/// What is recorded, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtraceOutcome {
    /// Samples of every thread per second, if the budget allows as many.
    pub rate_hz: u32,
    /// Why perf was not used, and what would allow it.
    pub instead_of_perf: Option<String>,
    /// A notice that the command will not have the privileges that its file gives it.
    pub loses_privileges: Option<Notice>,
    /// The other limitations of the recording.
    pub notices: Vec<Notice>,
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
    /// Descendants of the attached processes that cannot be attached to.
    LeftOut {
        /// The processes.
        pids: Vec<Pid>,
        /// Why the first of them cannot be attached to.
        reason: String,
    },
    /// The program would gain privileges, which the kernel does not give to a traced program.
    LosesPrivileges {
        /// The program.
        program: PathBuf,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RateLowered { requested_hz, allowed_hz } => write!(
                f,
                "the rate is lowered from {requested_hz} to {allowed_hz} Hz, because a program that is stopped more often would hardly run"
            ),
            Self::LeftOut { pids, reason } => match pids[..] {
                [_] => write!(f, "a child process is not recorded: {reason}"),
                _ => write!(f, "{} child processes are not recorded; of the first: {reason}", pids.len()),
            },
            Self::LosesPrivileges { program } => write!(
                f,
                "{} runs without the privileges of its file (setuid or capabilities), because it is traced: record as root to keep them",
                program.display()
            ),
        }
    }
}

/// Why a process cannot be traced.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no such process, or it has ended meanwhile.
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
    /// Another program traces it.
    #[error("process {} is traced already, by process {tracer}", pid.0)]
    TracedAlready {
        /// The process.
        pid: Pid,
        /// The other tracer, such as a debugger.
        tracer: u32,
    },
    /// The Yama security module restricts tracing.
    #[error("process {} may not be traced: kernel.yama.ptrace_scope is {scope}", pid.0)]
    Yama {
        /// The process.
        pid: Pid,
        /// The setting.
        scope: i64,
    },
    /// The process has denied others access to itself, or runs a program that its user may not read.
    #[error("process {} may not be traced: it has denied access to its memory (PR_SET_DUMPABLE), or you may not read its program", pid.0)]
    NotDumpable {
        /// The process.
        pid: Pid,
    },
    /// The process belongs to another user, or has more privileges.
    #[error("process {} cannot be attached to: it is another user's, or has more privileges", pid.0)]
    AnotherUsers {
        /// The process.
        pid: Pid,
    },
    /// The user requests CPUs, which this backend does not support.
    #[error("--cpu cannot be used with ptrace, which samples threads on all CPUs")]
    CpusRequested,
    /// The kernel, or a seccomp filter, refuses ptrace.
    #[error("ptrace is refused: {source}")]
    Refused {
        /// The system's error.
        source: io::Error,
    },
    /// The kernel or the machine lacks a required feature.
    #[error("{what}")]
    Lacking {
        /// The missing feature.
        what: &'static str,
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
    /// Advice for the user.
    pub fn advice(&self) -> Option<String> {
        let advice = match self {
            Self::NoAccess { pid } => {
                return Some(format!("end it (`kill -9 {}`), or record without it", pid.0));
            }
            Self::Lacking { .. } | Self::System { .. } => return None,
            Self::NoSuchProcess { .. } => FIND_PROCESSES,
            Self::CpusRequested => {
                "leave out --cpu; `taskset -c LIST COMMAND` has a command run on some CPUs alone"
            }
            Self::TracedAlready { .. } => "a process has one tracer at a time: end the other one first",
            Self::Yama { scope: 1, .. } => {
                "let nyquist launch it, or use sudo, or `sudo sysctl kernel.yama.ptrace_scope=0`"
            }
            Self::Yama { scope: 2, .. } | Self::NotDumpable { .. } | Self::AnotherUsers { .. } => {
                "root can, and so can whoever has CAP_SYS_PTRACE"
            }
            Self::Yama { .. } => "this setting forbids it to everybody until the machine is started again",
            Self::Refused { .. } => {
                "a seccomp filter or a security module forbids it; in a container, `--cap-add=SYS_PTRACE` allows it"
            }
        };
        Some(advice.to_owned())
    }

    /// Converts the kernel's refusal to trace a process into an error.
    pub(crate) fn of_seizing(pid: Pid, source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(libc::ESRCH) => Self::NoSuchProcess { pid },
            // No process may trace one that has ended and was not reaped.
            Some(libc::EPERM | libc::EACCES) if proc::has_ended(pid.0) => Self::NoSuchProcess { pid },
            Some(libc::EPERM | libc::EACCES) => {
                let status = read_kernel_text(format!("/proc/{}/status", pid.0)).unwrap_or_default();
                let own = fs::read_to_string("/proc/self/status").unwrap_or_default();
                let access = match uids(&status) == uids(&own) {
                    false => ProcessAccess::AnotherUsers,
                    true if is_denied(pid, &status) => ProcessAccess::Denied,
                    true => ProcessAccess::Own,
                };
                let scope = kernel_setting("yama/ptrace_scope");
                Self::of_refusal(pid, proc::tracer(pid.0), access, scope, source)
            }
            _ => Self::Refused { source },
        }
    }

    fn of_refusal(
        pid: Pid,
        tracer: Option<u32>,
        access: ProcessAccess,
        yama: Option<i64>,
        source: io::Error,
    ) -> Self {
        match (tracer, yama) {
            (Some(tracer), _) => Self::TracedAlready { pid, tracer },
            (None, Some(3)) => Self::Yama { pid, scope: 3 },
            _ if access == ProcessAccess::AnotherUsers => Self::AnotherUsers { pid },
            _ if access == ProcessAccess::Denied => Self::NotDumpable { pid },
            (None, Some(scope)) if scope > 0 => Self::Yama { pid, scope },
            _ => Self::Refused { source },
        }
    }
}

/// What the owner of a process lets others of its user do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessAccess {
    Own,
    Denied,
    AnotherUsers,
}

/// Whether a process has denied others access to itself. Then its folder belongs to root (proc(5),
/// "/proc/pid"), and not to its effective user.
fn is_denied(pid: Pid, status: &str) -> bool {
    let effective = uids(status).and_then(|uids| uids.split_whitespace().nth(1)?.parse().ok());
    let owner = fs::metadata(format!("/proc/{}", pid.0)).map(|folder| folder.uid());
    effective.is_some_and(|effective: u32| effective != 0 && owner.is_ok_and(|owner| owner != effective))
}

/// Whether a process may be traced, without tracing it: opening its memory requires the same permission
/// (ptrace(2), "Ptrace access mode checking").
pub fn may_trace(pid: Pid) -> Result<(), OpenError> {
    if let Some(tracer) = proc::tracer(pid.0) {
        return Err(OpenError::TracedAlready { pid, tracer });
    }
    match target_access::process_file(pid.0, None, ProcessFile::Memory) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(OpenError::NoSuchProcess { pid }),
        Err(error) => Err(OpenError::of_seizing(pid, error)),
    }
}

/// The real and effective users of a process, from its `status`.
fn uids(status: &str) -> Option<&str> {
    status.lines().find_map(|line| line.strip_prefix("Uid:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zombie_counts_as_no_such_process() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = Pid(child.id());
        while !proc::has_ended(pid.0) {
            std::thread::yield_now();
        }
        for errno in [libc::EPERM, libc::ESRCH] {
            let error = OpenError::of_seizing(pid, io::Error::from_raw_os_error(errno));
            assert!(matches!(error, OpenError::NoSuchProcess { .. }), "{error}");
        }
        child.wait().unwrap();
    }

    #[test]
    fn a_refusal_has_its_reason() {
        use ProcessAccess::{AnotherUsers, Denied, Own};
        let check = |tracer, access, yama, expected: &str| {
            let source = io::ErrorKind::PermissionDenied.into();
            let error = OpenError::of_refusal(Pid(7), tracer, access, yama, source);
            let text = format!("{error}; {}", error.advice().unwrap_or_default());
            assert!(text.contains(expected), "{text}");
        };
        check(None, Own, Some(1), "kernel.yama.ptrace_scope is 1; let nyquist launch it");
        check(None, Own, Some(2), "ptrace_scope is 2; root can");
        check(None, Own, Some(3), "until the machine is started again");
        check(None, Own, Some(0), "ptrace is refused");
        check(None, Own, None, "--cap-add=SYS_PTRACE");
        check(Some(4711), Own, Some(1), "traced already, by process 4711");
        check(None, AnotherUsers, Some(1), "it is another user's");
        check(None, Denied, Some(1), "PR_SET_DUMPABLE");
        check(None, Denied, Some(3), "until the machine is started again");
    }
}
