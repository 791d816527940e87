//! The target of a recording: a command, running processes, a cgroup, or the whole system.

use super::failures::{launch_failure, open_failure};
use crate::args::{RecordArgs, TargetArgs};
use crate::failure::Failure;
use crate::system::linux::options::backend as backend_of;
use nyquist_convert::event::Pid;
use nyquist_convert::{Filter, NamePattern};
use nyquist_record::linux::backend::{Backend, OpenError};
use nyquist_record::linux::launch::{self, Suspended};
use nyquist_record::linux::markers::Markers;
use nyquist_record::linux::{
    Command, Credentials, Options, Target, invoking_environment, process_of_thread, processes_named,
};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The number of searches for processes by name, if they end meanwhile.
const LOOKS: usize = 10;

/// Opens the backend. A process that was found by its name may end before it is attached to. Then only the
/// others are attached to. If none is left, the processes are searched again.
pub(super) fn open_backend(
    args: &RecordArgs,
    mut target: Target,
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
                (Some(pid), Target::Attach(pids)) if pids.contains(&pid) => {
                    pids.retain(|other| *other != pid);
                }
                _ => return opened.map_err(|error| open_failure(&error)),
            }
            if target == Target::Attach(Vec::new()) {
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
pub(crate) fn running_target(args: &TargetArgs) -> Result<Option<Target>, Failure> {
    if let Some(path) = &args.cgroup {
        return Ok(Some(Target::Cgroup(path.clone())));
    }
    if args.all_cpus {
        return Ok(Some(Target::System));
    }
    let mut pids: Vec<_> = args.pid.iter().copied().map(Pid).collect();
    for number in &pids {
        if let Some(pid) = process_of_thread(*number) {
            return Err(Failure::new(format!("{} is a thread of process {}", number.0, pid.0))
                .hint(format!("-p {} records that process, with all its threads", pid.0)));
        }
    }
    for name in &args.name {
        let pattern = NamePattern::new(name);
        let named = processes_named(|name| pattern.matches(name));
        if named.is_empty() {
            let hint = "`*` and `?` stand for other characters; -a records those that start later, too";
            return Err(Failure::new(format!("no process is named `{name}`")).hint(hint));
        }
        pids.extend(named);
    }
    pids.sort_unstable();
    pids.dedup();
    Ok((!pids.is_empty()).then_some(Target::Attach(pids)))
}

/// The filter for the incoming samples.
pub(super) fn wanted_samples(args: &TargetArgs, backend: &Backend) -> Filter {
    if args.all_cpus && !args.name.is_empty() {
        Filter::Named(args.name.iter().map(|name| NamePattern::new(name)).collect())
    } else {
        backend.filter()
    }
}

/// Launches the command and suspends it before its start.
pub(super) fn prepare(
    args: &RecordArgs,
    user: Option<&Credentials>,
    markers: Option<&Markers>,
) -> Result<Suspended, Failure> {
    let mut command = command_of(&args.command, user)?;
    command.env.extend(markers.and_then(Markers::variable));
    launch::prepare(&command).map_err(|error| launch_failure(&error))
}

/// The command of a command line, to be run as this user.
pub(crate) fn command_of(words: &[OsString], user: Option<&Credentials>) -> Result<Command, Failure> {
    let command = Command::from_words(words.iter().cloned());
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
pub(super) fn ancestors(target: &Target) -> Vec<u32> {
    match target {
        Target::Child(pid) => vec![pid.0],
        Target::Attach(pids) => pids.iter().map(|pid| pid.0).collect(),
        Target::System | Target::Cgroup(_) => Vec::new(),
    }
}

/// The profile's name.
pub(super) fn profile_name(args: &RecordArgs) -> String {
    args.profile_name.clone().unwrap_or_else(|| target_name(args))
}

/// The target of the recording, in a few words.
pub(super) fn target_name(args: &RecordArgs) -> String {
    let TargetArgs { pid, name, all_cpus, cgroup } = &args.target;
    match (pid.first(), cgroup) {
        (Some(pid), _) => {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            name.trim().to_owned()
        }
        (None, Some(cgroup)) => cgroup.display().to_string(),
        (None, None) if !name.is_empty() => name.join(", "),
        (None, None) if *all_cpus => "the whole system".to_owned(),
        (None, None) => program_name(args),
    }
}

/// The command's name without its folder.
pub(super) fn program_name(args: &RecordArgs) -> String {
    let program = Command::from_words(args.command.iter().cloned()).map(|command| command.program);
    let program = program.unwrap_or_default();
    Path::new(&program).file_name().unwrap_or(&program).to_string_lossy().into_owned()
}
