//! Launching the command: it is forked first, sampled from its start, and then allowed to run.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, RawFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nyquist_convert::event::Pid;
use thiserror::Error;

use super::Command;
use super::limits::original_descriptor_limit;
use super::privileges;
use super::sys::process::{self, ExecBy, LaunchPlan, Stage, UserIds};

/// Why a command was not launched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A word of the command or of its environment cannot be passed to a program.
    #[error("the command contains a zero byte, which cannot be passed to a program")]
    ZeroByte(#[from] std::ffi::NulError),
    /// The system could not make a process.
    #[error("no process could be made for `{program}`: {source}")]
    Fork {
        /// The program, as the user typed it.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// The command's empty input could not be opened.
    #[error("/dev/null cannot be opened as the input of `{program}`: {source}")]
    Input {
        /// The program, as the user typed it.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// The process could not become the user that the command should run as.
    #[error("`{program}` cannot be run as user {uid}: {source}")]
    Credentials {
        /// The program, as the user typed it.
        program: String,
        /// The user.
        uid: u32,
        /// The system's error.
        source: io::Error,
    },
    /// The program could not be executed.
    #[error("`{program}` cannot be run: {source}")]
    Exec {
        /// The program, as the user typed it.
        program: String,
        /// The system's error.
        source: io::Error,
    },
}

impl LaunchError {
    /// The exit status of a shell for this error: 127 if the program was not found, 126 otherwise.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Exec { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            _ => 126,
        }
    }
}

/// A process that will become the command, and waits.
///
/// Dropping it ends the process, and leaves no zombie.
#[derive(Debug)]
pub struct SuspendedChild {
    waiting: Option<process::WaitingChild>,
    process: CommandProcess,
    program: String,
    candidates: Vec<CString>,
    uid: u32,
}

/// Makes the process that will become the command.
///
/// It has the default signal mask and actions, except that signals ignored before this program began stay
/// ignored. It inherits those descriptors of this process that are not close-on-exec.
pub fn prepare(command: &Command) -> Result<SuspendedChild, LaunchError> {
    prepare_with(command, None)
}

/// As [`prepare`], for a command that does not have the terminal to itself: its output goes to `output`, and
/// its input is empty.
pub fn prepare_with_output(command: &Command, output: BorrowedFd<'_>) -> Result<SuspendedChild, LaunchError> {
    let program = command.program.to_string_lossy().into_owned();
    let nothing = File::open("/dev/null").map_err(|source| LaunchError::Input { program, source })?;
    prepare_with(command, Some([nothing.as_raw_fd(), output.as_raw_fd(), output.as_raw_fd()]))
}

fn prepare_with(command: &Command, streams: Option<[RawFd; 3]>) -> Result<SuspendedChild, LaunchError> {
    let plan = LaunchPlan {
        candidates: command.candidates()?,
        args: command.arguments()?,
        env: command.environment()?,
        run_as: command.run_as.clone().map(|user| UserIds {
            uid: user.uid,
            gid: user.gid,
            groups: user.groups,
        }),
        descriptors: original_descriptor_limit(),
        streams,
    };
    let program = command.program.to_string_lossy().into_owned();
    let uid = command.run_as.as_ref().map_or(0, |user| user.uid);
    match process::fork(&plan) {
        Ok(waiting) => {
            let process = CommandProcess::new(waiting.pid);
            Ok(SuspendedChild { waiting: Some(waiting), process, program, candidates: plan.candidates, uid })
        }
        Err(source) => Err(LaunchError::Fork { program, source }),
    }
}

impl SuspendedChild {
    /// The process.
    pub fn pid(&self) -> Pid {
        Pid(self.process.pid)
    }

    /// The command's file, if it gives privileges that are lost when this process traces it.
    pub fn loses_privileges(&self) -> Option<PathBuf> {
        privileges::lost_under_ptrace(&self.candidates)
    }

    /// Lets the process become the command, and returns when it has.
    pub fn start(self) -> Result<RunningChild, LaunchError> {
        self.start_by(ExecBy::FirstThread)
    }

    /// As [`start`](Self::start), but a new thread of the process becomes the command, with the same number.
    ///
    /// Then all events of the command are inherited ones, in the same order. Only between threads with such
    /// events can the kernel switch as fast as without events. The thread that is recorded from the start
    /// must not be traced.
    pub fn start_with_inherited_events(self) -> Result<RunningChild, LaunchError> {
        self.start_by(ExecBy::NewThread)
    }

    fn start_by(mut self, by: ExecBy) -> Result<RunningChild, LaunchError> {
        let program = self.program.clone();
        let Some(waiting) = self.waiting.take() else {
            return Ok(RunningChild { process: self.process.clone() });
        };
        match waiting.start(by) {
            Ok(Ok(())) => Ok(RunningChild { process: self.process.clone() }),
            Ok(Err((Stage::Exec, source))) => Err(self.reap(LaunchError::Exec { program, source })),
            Ok(Err((Stage::Credentials, source))) => {
                let uid = self.uid;
                Err(self.reap(LaunchError::Credentials { program, uid, source }))
            }
            Err(source) => Err(self.reap(LaunchError::Fork { program, source })),
        }
    }

    /// Waits for the process, which is ending.
    fn reap(&self, error: LaunchError) -> LaunchError {
        // The process's status adds nothing to the error.
        let _ = self.process.wait();
        error
    }
}

impl Drop for SuspendedChild {
    fn drop(&mut self) {
        // The process ends when its pipe is closed.
        if self.waiting.take().is_some() {
            let _ = self.process.wait();
        }
    }
}

/// The command, running.
#[derive(Debug)]
pub struct RunningChild {
    process: CommandProcess,
}

impl RunningChild {
    /// The process.
    pub fn pid(&self) -> Pid {
        Pid(self.process.pid)
    }

    /// Waits until the command has ended.
    pub fn wait(&self) -> io::Result<ChildExit> {
        self.process.wait()
    }

    /// A handle that sends signals from any thread.
    pub fn signaller(&self) -> Signaller {
        Signaller { process: self.process.clone() }
    }
}

/// Sends signals to the command, and never to another process that got its pid.
#[derive(Clone, Debug)]
pub struct Signaller {
    process: CommandProcess,
}

impl Signaller {
    /// Sends a signal. It is no error if the command has ended already.
    pub fn send(&self, signal: i32) -> io::Result<()> {
        self.process.signal(signal)
    }
}

/// How a command ended, and its resource usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildExit {
    /// How it ended.
    pub status: ExitStatus,
    /// The CPU time in user code, including the children that it waited for.
    pub user: Duration,
    /// The CPU time in the kernel, including the children that it waited for.
    pub system: Duration,
    /// The other counts that the kernel always keeps.
    pub usage: Usage,
}

/// The kernel's counts for a command and the children that it waited for (getrusage(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Page faults that did not read from a disk.
    pub minor_faults: u64,
    /// Page faults that read from a disk.
    pub major_faults: u64,
    /// How often a thread gave up its CPU or lost it.
    pub context_switches: u64,
    /// The largest resident memory of any single process, in bytes.
    pub peak_memory: u64,
}

impl Usage {
    fn of(usage: &libc::rusage) -> Self {
        let number = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
        Self {
            minor_faults: number(usage.ru_minflt),
            major_faults: number(usage.ru_majflt),
            context_switches: number(usage.ru_nvcsw).saturating_add(number(usage.ru_nivcsw)),
            peak_memory: number(usage.ru_maxrss).saturating_mul(1024),
        }
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// By itself, with this code.
    Code(u8),
    /// By this signal.
    Signal(u8),
}

impl ExitStatus {
    /// The code, or 128 + the signal, as a shell reports it.
    pub fn shell_code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128_u8.saturating_add(signal),
        }
    }

    /// Parses the wait(2) status of a process that has ended.
    fn from_wait(status: i32) -> Self {
        let [low, high, ..] = status.to_le_bytes();
        match low & 0x7f {
            0 => Self::Code(high),
            signal => Self::Signal(signal),
        }
    }
}

/// A child process. Its pid is not reused until it is reaped, which happens under the lock.
#[derive(Clone, Debug)]
struct CommandProcess {
    pid: u32,
    ended: Arc<Mutex<Option<ChildExit>>>,
}

impl CommandProcess {
    fn new(pid: u32) -> Self {
        Self { pid, ended: Arc::default() }
    }

    fn ended(&self) -> MutexGuard<'_, Option<ChildExit>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self) -> io::Result<ChildExit> {
        if self.ended().is_none() {
            process::await_end(self.pid)?;
        }
        let mut ended = self.ended();
        if let Some(ended) = *ended {
            return Ok(ended);
        }
        let (status, usage) = process::wait(self.pid)?;
        let duration = |time: libc::timeval| {
            Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
        };
        Ok(*ended.insert(ChildExit {
            status: ExitStatus::from_wait(status),
            user: duration(usage.ru_utime),
            system: duration(usage.ru_stime),
            usage: Usage::of(&usage),
        }))
    }

    fn signal(&self, signal: i32) -> io::Result<()> {
        let ended = self.ended();
        if ended.is_some() { Ok(()) } else { process::signal(self.pid, signal) }
    }
}
