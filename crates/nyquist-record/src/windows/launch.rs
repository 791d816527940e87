//! Launching the command: its process is made suspended, sampled from its start, and then allowed to run.

use std::io;
use std::os::windows::io::OwnedHandle;
use std::os::windows::process::CommandExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nyquist_convert::event::Pid;
use thiserror::Error;
use windows_sys::Win32::Foundation::{
    ERROR_BAD_EXE_FORMAT, ERROR_ELEVATION_REQUIRED, ERROR_EXE_MACHINE_TYPE_MISMATCH, STATUS_CONTROL_C_EXIT,
};
use windows_sys::Win32::System::Threading::CREATE_SUSPENDED;

use super::Command;
use super::listing::ProcessListing;
use super::signals::EndSignal;
use super::sys::job::KillOnCloseJob;
use super::sys::{process, thread};

/// The exit code of a process that this program ends.
const ENDED_BY_REQUEST: u32 = 1;
/// The exit code of programs that Ctrl-C ends.
const CONTROL_C: u32 = STATUS_CONTROL_C_EXIT as u32;
/// The first exit code that is an error status of the system.
const FIRST_ERROR_STATUS: u32 = 0xc000_0000;

/// The exit status of a shell for a program that was not found.
const NOT_FOUND: u8 = 127;

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
            Self::Exec { source, .. } if source.kind() == io::ErrorKind::NotFound => NOT_FOUND,
            _ => 126,
        }
    }

    /// Advice for the user, if there is any.
    pub fn advice(&self) -> Option<String> {
        let (Self::Exec { program, source } | Self::Start { program, source }) = self;
        if self.exit_code() == NOT_FOUND {
            // The folder in which a command is typed is not searched, as in PowerShell.
            return Path::new(program)
                .is_file()
                .then(|| format!(".\\{program} is the program in this folder"));
        }
        let code = source.raw_os_error()? as u32;
        let advice = match code {
            ERROR_ELEVATION_REQUIRED => {
                "the program needs an administrator: run nyquist from a terminal that was opened as one"
            }
            ERROR_BAD_EXE_FORMAT | ERROR_EXE_MACHINE_TYPE_MISMATCH => {
                "only programs and batch files can be run: name the interpreter before a script"
            }
            _ => return None,
        };
        Some(advice.to_owned())
    }
}

/// A process of the command that has not run yet.
///
/// Dropping it ends the process.
#[derive(Debug)]
pub struct SuspendedChild {
    process: CommandProcess,
    program: String,
    is_started: bool,
    /// Ends the process if this program is ended by force. Systems that refuse it leave a process that waits.
    job: Option<KillOnCloseJob>,
}

/// Makes the process of the command, which waits. It has this process's console, standard streams and inherited
/// handles. The program is found in the folders of the command's PATH, in those of the system, and beside this
/// program.
pub fn prepare(command: &Command) -> Result<SuspendedChild, LaunchError> {
    let program = command.program.to_string_lossy().into_owned();
    let mut made = std::process::Command::new(&command.program);
    made.args(&command.args).envs(command.env.iter().map(|(name, value)| (name, value)));
    made.creation_flags(CREATE_SUSPENDED);
    let child = made.spawn().map_err(|source| LaunchError::Exec { program: program.clone(), source })?;
    let process = CommandProcess { pid: child.id(), handle: Arc::new(child.into()) };
    let job = KillOnCloseJob::on(&process.handle).ok();
    Ok(SuspendedChild { process, program, is_started: false, job })
}

impl SuspendedChild {
    /// The process.
    pub fn pid(&self) -> Pid {
        Pid(self.process.pid)
    }

    /// What differs from the program that was named, to be shown to the user: nothing on this system.
    pub fn notice(&self) -> Option<&str> {
        None
    }

    /// Lets the command run.
    pub fn start(mut self) -> Result<RunningChild, LaunchError> {
        let released = self.job.take().map_or(Ok(()), KillOnCloseJob::release);
        match released.and_then(|()| self.process.resume()) {
            Ok(()) => {
                self.is_started = true;
                Ok(RunningChild { process: self.process.clone() })
            }
            Err(source) => Err(LaunchError::Start { program: self.program.clone(), source }),
        }
    }
}

impl Drop for SuspendedChild {
    fn drop(&mut self) {
        if !self.is_started {
            // It has not run, so nothing is lost.
            let _ = process::end(&self.process.handle, ENDED_BY_REQUEST);
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
        let code = process::wait(&self.process.handle)?;
        let (user, system) = process::cpu_times(&self.process.handle)?;
        Ok(ChildExit { status: ExitStatus::of_code(code), user, system })
    }

    /// A handle that ends the command from any thread.
    pub fn signaller(&self) -> Signaller {
        Signaller { process: self.process.clone() }
    }
}

/// Ends the command, and never another process that got its number.
#[derive(Clone, Debug)]
pub struct Signaller {
    process: CommandProcess,
}

impl Signaller {
    /// Ends the command at once, whatever the signal: a process of Windows has no others. After
    /// [`EndSignal::Interrupt`], its exit code is that of programs that Ctrl-C ends. It is no error if the
    /// command has ended already.
    pub fn send(&self, signal: i32) -> io::Result<()> {
        if process::has_ended(&self.process.handle) {
            return Ok(());
        }
        let is_interrupt = signal == EndSignal::Interrupt.number();
        let code = if is_interrupt { CONTROL_C } else { ENDED_BY_REQUEST };
        match process::end(&self.process.handle, code) {
            Err(_) if process::has_ended(&self.process.handle) => Ok(()),
            result => result,
        }
    }
}

/// How a command ended, and its CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildExit {
    /// How it ended.
    pub status: ExitStatus,
    /// Its CPU time in user code, without that of its children.
    pub user: Duration,
    /// Its CPU time in the kernel, without that of its children.
    pub system: Duration,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// By itself, with this code.
    Code(u32),
    /// With an error status of the system (`0xC0000000` and above), such as that of a violation of access.
    Exception(u32),
}

impl ExitStatus {
    fn of_code(code: u32) -> Self {
        if code >= FIRST_ERROR_STATUS { Self::Exception(code) } else { Self::Code(code) }
    }

    /// What is unusual about it, to be shown to the user.
    pub fn remark(self) -> Option<String> {
        match self {
            Self::Code(_) => None,
            Self::Exception(code) => Some(format!("was ended by exception {code:#010x}")),
        }
    }

    /// The status that a shell of Windows has after it: the whole exit code.
    pub fn shell_code(self) -> u32 {
        match self {
            Self::Code(code) | Self::Exception(code) => code,
        }
    }
}

/// A process, whose number is not used again while the handle is open.
#[derive(Clone, Debug)]
struct CommandProcess {
    pid: u32,
    handle: Arc<OwnedHandle>,
}

impl CommandProcess {
    /// Takes back the suspension of its only thread.
    fn resume(&self) -> io::Result<()> {
        let mut listing = ProcessListing::default();
        listing.refresh();
        let main = listing.threads(self.pid).min_by_key(|thread| thread.began);
        let main = thread::open(main.ok_or(io::ErrorKind::NotFound)?.tid)?;
        if thread::resume(&main) { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_this_folder_is_named_with_it() {
        let program = format!("nyquist-launch-{}.exe", std::process::id());
        let advice = || {
            let source = io::ErrorKind::NotFound.into();
            LaunchError::Exec { program: program.clone(), source }.advice()
        };
        assert_eq!(advice(), None);
        std::fs::write(&program, "").unwrap();
        let advised = advice();
        std::fs::remove_file(&program).unwrap();
        assert_eq!(advised, Some(format!(".\\{program} is the program in this folder")));
    }

    #[test]
    fn codes_are_passed_on_whole() {
        for code in [0, 42, 256, 300, 0xc000_0005, CONTROL_C, u32::MAX] {
            assert_eq!(ExitStatus::of_code(code).shell_code(), code);
        }
        assert_eq!(ExitStatus::of_code(0xc000_0005), ExitStatus::Exception(0xc000_0005));
    }
}
