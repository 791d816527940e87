//! Launching the command: its process is made suspended, sampled from its start, and then allowed to run.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, io, thread};

use nyquist_convert::event::Pid;
use thiserror::Error;

use super::Command;
use super::pure::child::{ChildCalls, ChildProcess, ReapedChild};
use super::pure::copies::ProgramCopy;
use super::pure::denied::ProgramFacts;
use super::pure::launching::{self, LaunchCalls, LaunchedChild, NotLaunched, SignedCopy};
use super::pure::program_file::{self, FileCalls};
use super::pure::status;
use super::sign::sign_copy;
use super::sys::{file, spawn, task};
use super::system::facts;
use crate::suspend::system::SamplingDenied;

pub use super::pure::child::ChildExit;
pub use super::pure::status::ExitStatus;

/// The folders in which programs are found if there is no PATH (`_PATH_DEFPATH`).
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// Why a command was not launched.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The program could not be executed.
    #[error("`{program}` cannot be run: {source}")]
    Exec {
        /// The program, as the user typed it.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// The system does not let the program be sampled.
    #[error("`{program}` cannot be recorded: {reason}")]
    Refused {
        /// The program, as the user typed it.
        program: String,
        /// Why.
        reason: String,
        /// What may help.
        advice: Option<String>,
    },
    /// The process was made, and could not be started.
    #[error("`{program}` cannot be started: {source}")]
    Start {
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
            Self::Exec { source, .. } | Self::Start { source, .. } => status::exit_code(source),
            Self::Refused { .. } => 126,
        }
    }

    /// Advice for the user, if there is any.
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::Refused { advice, .. } => advice.clone(),
            Self::Exec { source, .. } if source.raw_os_error() == Some(libc::ENOEXEC) => {
                Some("name the interpreter before a script, or begin the script with `#!`".to_owned())
            }
            Self::Exec { source, .. } if source.raw_os_error() == Some(libc::EBADARCH) => {
                Some("the program is for another processor: record a build for this one".to_owned())
            }
            Self::Exec { .. } | Self::Start { .. } => None,
        }
    }
}

/// A process of the command that has not run yet.
///
/// Dropping it ends the process.
#[derive(Debug)]
pub struct SuspendedChild {
    process: Arc<CommandProcess>,
    program: String,
    notice: Option<String>,
}

/// Makes the process of the command, which waits. It has this process's terminal and standard streams.
pub fn prepare(command: &Command) -> Result<SuspendedChild, LaunchError> {
    let program = command.program.to_string_lossy().into_owned();
    let exec = |source| LaunchError::Exec { program: program.clone(), source };
    let path = program_file::find(&command.program, &search_path(command), &SystemFiles).map_err(exec)?;
    let mut launcher = Launcher::of(command).map_err(exec)?;
    match launching::launch(&mut launcher, &path) {
        Ok(LaunchedChild { child, copy, notice }) => {
            Ok(SuspendedChild { process: Arc::new(CommandProcess { child, _copy: copy }), program, notice })
        }
        Err(NotLaunched::Exec(source)) => Err(exec(source)),
        Err(NotLaunched::Refused(SamplingDenied::Refused { reason, advice })) => {
            Err(LaunchError::Refused { program, reason, advice })
        }
        Err(NotLaunched::Refused(SamplingDenied::Gone)) => Err(exec(io::ErrorKind::NotFound.into())),
    }
}

/// The folders in which a command's program is searched.
fn search_path(command: &Command) -> OsString {
    let given = command.env.iter().rfind(|(name, _)| name == "PATH");
    let own = || env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    given.map_or_else(own, |(_, value)| value.clone())
}

/// The files of the system.
struct SystemFiles;

impl FileCalls for SystemFiles {
    fn may_be_run(&self, path: &Path) -> io::Result<()> {
        file::may_be_run(path)
    }

    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }
}

/// The system's calls for children.
#[derive(Debug)]
struct SystemCalls;

impl ChildCalls for SystemCalls {
    fn signal(&self, pid: u32, number: i32) -> io::Result<()> {
        spawn::signal(pid, number)
    }

    fn resume(&self, pid: u32) -> io::Result<()> {
        spawn::resume(pid)
    }

    fn await_end(&self, pid: u32) -> io::Result<()> {
        spawn::await_end(pid)
    }

    fn reap(&self, pid: u32) -> io::Result<ReapedChild> {
        spawn::reap(pid)
    }

    fn reap_if_ended(&self, pid: u32) -> io::Result<Option<ReapedChild>> {
        spawn::reap_if_ended(pid)
    }

    fn pause(&self, time: Duration) {
        thread::sleep(time);
    }
}

/// Starts the program of a command.
struct Launcher {
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Launcher {
    fn of(command: &Command) -> io::Result<Self> {
        let words = [&command.program].into_iter().chain(&command.args);
        let arguments = words.map(|word| Ok(CString::new(word.as_bytes())?)).collect::<io::Result<_>>()?;
        let is_set = |name: &OsStr| command.env.iter().any(|(given, _)| given == name);
        let retained = env::vars_os().filter(|(name, _)| !is_set(name));
        let variables = retained.chain(command.env.iter().cloned());
        let environment =
            variables.map(|(name, value)| assignment(name, &value)).collect::<io::Result<_>>()?;
        Ok(Self { arguments, environment })
    }
}

fn assignment(name: OsString, value: &OsStr) -> io::Result<CString> {
    let mut bytes = name.into_vec();
    bytes.push(b'=');
    bytes.extend_from_slice(value.as_bytes());
    Ok(CString::new(bytes)?)
}

impl LaunchCalls for Launcher {
    type Child = ChildProcess<SystemCalls>;
    type Copy = ProgramCopy;

    fn spawn(&mut self, program: &Path) -> io::Result<ChildProcess<SystemCalls>> {
        let program = CString::new(program.as_os_str().as_bytes())?;
        let pid = spawn::suspended(&program, &self.arguments, &self.environment)?;
        Ok(ChildProcess::new(pid, SystemCalls))
    }

    fn may_sample(&mut self, child: &ChildProcess<SystemCalls>) -> bool {
        task::of_process(child.pid).is_some()
    }

    fn has_ended(&mut self, child: &ChildProcess<SystemCalls>) -> bool {
        super::process_has_ended(child.pid)
    }

    fn facts(&mut self, child: &ChildProcess<SystemCalls>) -> ProgramFacts {
        facts(child.pid)
    }

    fn signed_copy(&mut self, program: &Path) -> Result<SignedCopy<ProgramCopy>, String> {
        let (path, copy) = ProgramCopy::of(program).map_err(|error| format!("it cannot be made: {error}"))?;
        let lost = sign_copy(&path)?;
        Ok(SignedCopy { path, copy, lost })
    }

    fn is_same(&mut self, path: &str, program: &Path) -> bool {
        let real = |path: &Path| fs::canonicalize(path).ok();
        real(Path::new(path)).is_some_and(|path| real(program) == Some(path))
    }

    fn mode(&mut self, program: &Path) -> Option<u32> {
        fs::metadata(program).ok().map(|file| file.mode())
    }
}

impl SuspendedChild {
    /// The process.
    pub fn pid(&self) -> Pid {
        Pid(self.process.child.pid)
    }

    /// What differs from the program that was named, to be shown to the user.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Lets the command run.
    pub fn start(self) -> Result<RunningChild, LaunchError> {
        match self.process.child.start() {
            Ok(()) => Ok(RunningChild { process: self.process }),
            Err(source) => Err(LaunchError::Start { program: self.program, source }),
        }
    }
}

/// The command, running.
#[derive(Debug)]
pub struct RunningChild {
    process: Arc<CommandProcess>,
}

impl RunningChild {
    /// The process.
    pub fn pid(&self) -> Pid {
        Pid(self.process.child.pid)
    }

    /// Waits until the command has ended.
    pub fn wait(&self) -> io::Result<ChildExit> {
        self.process.child.wait()
    }

    /// A handle that signals the command from any thread.
    pub fn signaller(&self) -> Signaller {
        Signaller { process: Arc::clone(&self.process) }
    }
}

/// Signals the command, and never another process that got its number.
#[derive(Clone, Debug)]
pub struct Signaller {
    process: Arc<CommandProcess>,
}

impl Signaller {
    /// Sends a signal. It is no error if the command has ended already.
    pub fn send(&self, signal: i32) -> io::Result<()> {
        self.process.child.signal(signal)
    }
}

/// The process, and the file that it runs, if that is a copy.
#[derive(Debug)]
struct CommandProcess {
    child: ChildProcess<SystemCalls>,
    _copy: Option<ProgramCopy>,
}
