//! The subject of a recording, as the options name it, and its description in the profile.

use crate::args::{RecordArgs, TargetArgs};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::system::launch::Command;
use crate::system::machine;
use crate::system::processes::{process_label, processes_named};
use nyquist_convert::NamePattern;
use nyquist_convert::event::Pid;
use nyquist_profile::{ExtraInfo, Meta};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The profile's name.
pub(crate) fn profile_name(args: &RecordArgs) -> String {
    args.profile_name.clone().unwrap_or_else(|| target_name(args))
}

/// The target of the recording, in a few words.
pub(crate) fn target_name(args: &RecordArgs) -> String {
    let TargetArgs { pid, tid, name, all_cpus, cgroup } = &args.target;
    match (pid.first().or(tid.as_ref()), cgroup) {
        (Some(number), _) => process_label(*number),
        (None, Some(cgroup)) => cgroup.display().to_string(),
        (None, None) if !name.is_empty() => name.join(", "),
        (None, None) if *all_cpus => "the whole system".to_owned(),
        (None, None) => program_name(args),
    }
}

/// The command's name without its folder.
pub(crate) fn program_name(args: &RecordArgs) -> String {
    let program = Command::from_words(args.command.iter().cloned()).map(|command| command.program);
    let program = program.unwrap_or_default();
    Path::new(&program).file_name().unwrap_or(&program).to_string_lossy().into_owned()
}

/// Says how a recording of running processes ends, if neither a command nor a duration ends it.
pub(crate) fn say_how_it_ends(args: &RecordArgs, printer: Printer) {
    if args.command.is_empty() && args.duration.is_none() {
        let or_end = match args.target.pid.len() {
            0 if args.target.tid.is_some() => ", or until the thread has ended",
            0 => "",
            1 => ", or until the process has ended",
            _ => ", or until the processes have ended",
        };
        printer.say(format_args!("Recording until Ctrl-C{or_end}"));
    }
}

/// The running processes that the options name, by number or by name, each once.
///
/// # Errors
/// If no process has a name; `hint` says what may help.
pub(crate) fn named_processes(args: &TargetArgs, hint: &str) -> Result<Vec<Pid>, Failure> {
    let mut pids: Vec<_> = args.pid.iter().copied().map(Pid).collect();
    for name in &args.name {
        let pattern = NamePattern::new(name);
        let named = processes_named(|name| pattern.matches(name));
        if named.is_empty() {
            return Err(Failure::new(format!("no process is named `{name}`")).hint(hint));
        }
        pids.extend(named);
    }
    pids.sort_unstable();
    pids.dedup();
    Ok(pids)
}

/// The profile's description of a recording that begins now, with a sample in each interval. `extra` says how it is
/// recorded.
pub(crate) fn describe(args: &RecordArgs, interval_ns: u64, extra: Vec<ExtraInfo>) -> Meta {
    let argv: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    let start_time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut meta = Meta {
        product: profile_name(args),
        interval: interval_ns,
        start_time: start_time.as_micros() as u64,
        has_cpu_deltas: true,
        arguments: Some(argv.join(" ")).filter(|argv| !argv.is_empty()),
        imported_from: Some(format!("nyquist {}", env!("CARGO_PKG_VERSION"))),
        extra,
        ..Meta::default()
    };
    machine::describe(&mut meta);
    meta
}
