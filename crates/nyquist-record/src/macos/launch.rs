//! Launching the command: its process is made suspended, sampled from its start, and then allowed to run.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{env, fs, io, thread};

use nyquist_convert::event::Pid;
use thiserror::Error;

use super::Command;
use super::copies::Copy;
use super::pure::launching::{self, Launched, Machine, NotLaunched};
use super::pure::refusal::Facts;
use super::pure::status;
pub use super::pure::status::ExitStatus;
use super::sign::{Entitlement, sign_file};
use super::signals::KILL;
use super::sys::spawn::{self, Reaped};
use super::sys::{file, task};
use super::system::facts;
use crate::suspend::system::Refusal;

/// How often, and at which interval, a process that must end is signalled.
const MOST_ATTEMPTS: u32 = 100;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(10);
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
pub struct Suspended {
    process: Arc<Process>,
    program: String,
    is_started: bool,
}

/// Makes the process of the command, which waits. It has this process's terminal and standard streams.
pub fn prepare(command: &Command) -> Result<Suspended, LaunchError> {
    let program = command.program.to_string_lossy().into_owned();
    let exec = |source| LaunchError::Exec { program: program.clone(), source };
    let path = find(command).map_err(exec)?;
    let mut launcher = Launcher::of(command).map_err(exec)?;
    match launching::launch(&mut launcher, &path) {
        Ok(Launched { child, copy }) => {
            let process =
                Process { pid: child.take(), ended: Mutex::new(None), _copy: copy.map(|(_, copy)| copy) };
            Ok(Suspended { process: Arc::new(process), program, is_started: false })
        }
        Err(NotLaunched::Exec(source)) => Err(exec(source)),
        Err(NotLaunched::Refused(Refusal::Refused { reason, advice })) => {
            Err(LaunchError::Refused { program, reason, advice })
        }
        Err(NotLaunched::Refused(Refusal::Gone)) => Err(exec(io::ErrorKind::NotFound.into())),
    }
}

/// The file of a program. A name without a slash is searched in the folders of the command's PATH.
fn find(command: &Command) -> io::Result<PathBuf> {
    let program = Path::new(&command.program);
    if command.program.as_bytes().contains(&b'/') {
        file::may_be_run(program)?;
        return Ok(program.to_owned());
    }
    let own = || env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    let given = command.env.iter().rfind(|(name, _)| name == "PATH");
    let folders = given.map_or_else(own, |(_, value)| value.clone());
    let mut error = io::Error::from(io::ErrorKind::NotFound);
    for folder in env::split_paths(&folders) {
        let path = folder.join(program);
        match file::may_be_run(&path) {
            Ok(()) if path.is_file() => return Ok(path),
            Err(refused) if refused.kind() == io::ErrorKind::PermissionDenied && path.is_file() => {
                error = refused;
            }
            _ => {}
        }
    }
    Err(error)
}

/// Starts the program of a command.
struct Launcher {
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

/// A process that waits. It is ended when it is dropped.
struct Child(u32);

impl Child {
    /// The process, which lives on.
    fn take(self) -> u32 {
        let pid = self.0;
        std::mem::forget(self);
        pid
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        end(self.0);
    }
}

/// Ends a process that has not run, so that nothing is lost. It is not waited for for ever, because a suspended
/// process may be slow to end.
fn end(pid: u32) {
    for _ in 0..MOST_ATTEMPTS {
        let _ = spawn::signal(pid, KILL);
        let _ = spawn::resume(pid);
        match spawn::reap_if_ended(pid) {
            Ok(None) => thread::sleep(BETWEEN_ATTEMPTS),
            Ok(Some(_)) | Err(_) => return,
        }
    }
}

impl Launcher {
    fn of(command: &Command) -> io::Result<Self> {
        let words = [&command.program].into_iter().chain(&command.args);
        let arguments = words.map(|word| Ok(CString::new(word.as_bytes())?)).collect::<io::Result<_>>()?;
        let is_set = |name: &OsStr| command.env.iter().any(|(given, _)| given == name);
        let kept = env::vars_os().filter(|(name, _)| !is_set(name));
        let variables = kept.chain(command.env.iter().cloned());
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

impl Machine for Launcher {
    type Child = Child;
    type Copy = Copy;

    fn spawn(&mut self, program: &Path) -> io::Result<Child> {
        let program = CString::new(program.as_os_str().as_bytes())?;
        spawn::suspended(&program, &self.arguments, &self.environment).map(Child)
    }

    fn may_sample(&mut self, child: &Child) -> bool {
        task::of_process(child.0).is_some()
    }

    fn facts(&mut self, child: &Child) -> Facts {
        facts(child.0)
    }

    fn end(&mut self, child: Child) {
        drop(child);
    }

    fn signed_copy(&mut self, program: &Path) -> Result<(PathBuf, Copy), String> {
        let (path, copy) = Copy::of(program).map_err(|error| format!("it cannot be made: {error}"))?;
        sign_file(&path, Entitlement::GetTaskAllow)?;
        Ok((path, copy))
    }

    fn is_same(&mut self, path: &str, program: &Path) -> bool {
        let real = |path: &Path| fs::canonicalize(path).ok();
        real(Path::new(path)).is_some_and(|path| real(program) == Some(path))
    }
}

impl Suspended {
    /// The process.
    pub fn pid(&self) -> Pid {
        Pid(self.process.pid)
    }

    /// Lets the command run.
    pub fn start(mut self) -> Result<Running, LaunchError> {
        match spawn::resume(self.process.pid) {
            Ok(()) => {
                self.is_started = true;
                Ok(Running { process: Arc::clone(&self.process) })
            }
            Err(source) => Err(LaunchError::Start { program: self.program.clone(), source }),
        }
    }
}

impl Drop for Suspended {
    fn drop(&mut self) {
        if !self.is_started {
            end(self.process.pid);
        }
    }
}

/// The command, running.
#[derive(Debug)]
pub struct Running {
    process: Arc<Process>,
}

impl Running {
    /// The process.
    pub fn pid(&self) -> Pid {
        Pid(self.process.pid)
    }

    /// Waits until the command has ended.
    pub fn wait(&self) -> io::Result<ChildExit> {
        self.process.wait()
    }

    /// A handle that signals the command from any thread.
    pub fn signaller(&self) -> Signaller {
        Signaller { process: Arc::clone(&self.process) }
    }
}

/// Signals the command, and never another process that got its number.
#[derive(Clone, Debug)]
pub struct Signaller {
    process: Arc<Process>,
}

impl Signaller {
    /// Sends a signal. It is no error if the command has ended already.
    pub fn send(&self, signal: i32) -> io::Result<()> {
        self.process.signal(signal)
    }
}

/// How a command ended, and its CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildExit {
    /// How it ended.
    pub status: ExitStatus,
    /// Its CPU time in user code, with that of the children that it has waited for.
    pub user: Duration,
    /// Its CPU time in the kernel, with that of the children that it has waited for.
    pub system: Duration,
}

/// A child, whose number is not used again until it is reaped.
#[derive(Debug)]
struct Process {
    pid: u32,
    /// Its end, when it is reaped.
    ended: Mutex<Option<Reaped>>,
    /// The file that it runs, if that is a copy.
    _copy: Option<Copy>,
}

impl Process {
    fn wait(&self) -> io::Result<ChildExit> {
        // Nobody is kept from signalling it meanwhile. If another thread has reaped it, the wait fails.
        let _ = spawn::await_end(self.pid);
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let reaped = match *ended {
            Some(reaped) => reaped,
            None => *ended.insert(spawn::reap(self.pid)?),
        };
        let status = ExitStatus::of_wait(reaped.status);
        Ok(ChildExit { status, user: reaped.user, system: reaped.system })
    }

    fn signal(&self, signal: i32) -> io::Result<()> {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.is_some() {
            return Ok(());
        }
        match spawn::signal(self.pid, signal) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            result => result,
        }
    }
}
