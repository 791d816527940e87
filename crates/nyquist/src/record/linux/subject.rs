//! The target of a recording: a command, running processes, a cgroup, or the whole system.

use super::allocations;
use super::failures::{launch_failure, open_failure};
use crate::args::{RecordArgs, TargetArgs};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::record::linux::options::backend as backend_of;
use crate::record::named_processes;
use nyquist_convert::event::{Pid, Tid};
use nyquist_convert::{NamePattern, ProcessFilter};
use nyquist_record::linux::allocations::AllocationReader;
use nyquist_record::linux::backend::{Backend, OpenError};
use nyquist_record::linux::launch::{self, SuspendedChild};
use nyquist_record::linux::markers::MarkerReader;
use nyquist_record::linux::{
    Command, Credentials, Options, RecordingTarget, invoking_environment, process_of_thread,
    process_with_thread,
};
use std::ffi::OsString;
use std::path::PathBuf;

/// The number of searches for processes by name, if they end meanwhile.
const LOOKS: usize = 10;

/// Opens the backend. A process that was found by its name may end before it is attached to. Then only the
/// others are attached to. If none is left, the processes are searched again.
pub(super) fn open_backend(
    args: &RecordArgs,
    mut target: RecordingTarget,
    options: &Options,
    loses_privileges: Option<&PathBuf>,
) -> Result<Backend, Failure> {
    let backend = backend_of(args.backend)?;
    let was_found = |pid: Pid| !args.target.name.is_empty() && !args.target.pid.contains(&pid.0);
    for _ in 0..LOOKS {
        loop {
            let opened = Backend::open(backend, target.clone(), options, loses_privileges.cloned());
            let ended = opened.as_ref().err().and_then(OpenError::no_such_process);
            match (ended.filter(|pid| was_found(*pid)), &mut target) {
                (Some(pid), RecordingTarget::Attach(pids)) if pids.contains(&pid) => {
                    pids.retain(|other| *other != pid);
                }
                _ => return opened.map_err(|error| open_failure(&error)),
            }
            if target == RecordingTarget::Attach(Vec::new()) {
                break;
            }
        }
        if let Some(found) = running_target(&args.target)? {
            target = found;
        }
    }
    Err(Failure::new("the processes of that name end faster than they can be attached to")
        .hint("-a --name NAME records them as they come and go"))
}

/// The running target.
pub(crate) fn running_target(args: &TargetArgs) -> Result<Option<RecordingTarget>, Failure> {
    if let Some(path) = &args.cgroup {
        return Ok(Some(RecordingTarget::Cgroup(path.clone())));
    }
    if args.all_cpus {
        return Ok(Some(RecordingTarget::System));
    }
    for number in args.pid.iter().copied().map(Pid) {
        if let Some(pid) = process_of_thread(number) {
            return Err(Failure::new(format!("{} is a thread of process {}", number.0, pid.0))
                .hint(format!("-p {} takes that process, with all its threads", pid.0))
                .hint(format!("-t {} takes that thread alone", number.0)));
        }
    }
    if let Some(tid) = args.tid.map(Tid) {
        return running_thread(tid).map(Some);
    }
    let hint = "`*` and `?` stand for other characters; -a records those that start later, too";
    let pids = named_processes(args, hint)?;
    Ok((!pids.is_empty()).then_some(RecordingTarget::Attach(pids)))
}

/// A thread of a process that runs.
fn running_thread(tid: Tid) -> Result<RecordingTarget, Failure> {
    let pid = process_with_thread(tid).ok_or_else(|| {
        Failure::new(format!("there is no thread {}", tid.0))
            .hint("`ps -eL` lists the threads that run, with their numbers as LWP")
    })?;
    Ok(RecordingTarget::Thread { pid, tid })
}

/// The filter for the incoming samples.
pub(super) fn requested_samples(args: &TargetArgs, backend: &Backend) -> ProcessFilter {
    if args.all_cpus && !args.name.is_empty() {
        ProcessFilter::Named(args.name.iter().map(|name| NamePattern::new(name)).collect())
    } else {
        backend.filter()
    }
}

/// Launches the command and suspends it before its start.
pub(super) fn prepare(
    args: &RecordArgs,
    user: Option<&Credentials>,
    markers: Option<&MarkerReader>,
    printer: Printer,
) -> Result<(SuspendedChild, Option<AllocationReader>), Failure> {
    let mut command = command_of(&args.command, user)?;
    command.env.extend(markers.and_then(MarkerReader::variable));
    let allocations = allocations::listen(args, &mut command, user, printer);
    let child = launch::prepare(&command).map_err(|error| launch_failure(&error))?;
    Ok((child, allocations))
}

/// The command of a command line, to be run as this user.
pub(crate) fn command_of(argv: &[OsString], user: Option<&Credentials>) -> Result<Command, Failure> {
    let command = Command::from_words(argv.iter().cloned());
    let mut command =
        command.ok_or_else(|| Failure::new("no command is given").hint("nyquist record COMMAND"))?;
    if let Some(user) = user {
        // Assignments before the command on the command line take precedence.
        command.env.splice(0..0, invoking_environment(user.uid));
        command.run_as = Some(user.clone());
    }
    Ok(command)
}

/// The processes whose descendants are recorded with them.
pub(super) fn ancestors(target: &RecordingTarget) -> Vec<u32> {
    match target {
        RecordingTarget::Child(pid) | RecordingTarget::Thread { pid, .. } => vec![pid.0],
        RecordingTarget::Attach(pids) => pids.iter().map(|pid| pid.0).collect(),
        RecordingTarget::System | RecordingTarget::Cgroup(_) => Vec::new(),
    }
}
