//! `nyquist record`: launch or attach, sample, convert, name, save, and show.

use crate::args::{RecordArgs, TargetArgs};
use crate::control::{Control, Phase};
use crate::failure::{FAILED, Failure, io_reason};
use crate::markers;
use crate::number::counted;
use crate::output::{Output, Owner};
use crate::perf_tee::{PerfTee, records_of};
use crate::printer::Printer;
use crate::save::save;
use crate::serve::serve;
use crate::symbolicate::symbolicate;
use crate::{flamegraph, launch_advice, machine, summary};
use nyquist_convert::event::Pid;
use nyquist_convert::{Converter, Filter, Finished, NamePattern, Options};
use nyquist_profile::Meta;
use nyquist_record::linux::backend::{Backend, OpenError, Outcome, Recording, Summary};
use nyquist_record::linux::launch::{self, Ended, LaunchError, Running, Suspended};
use nyquist_record::linux::markers::Markers;
use nyquist_record::linux::perf::{self, EndReason, Target};
use nyquist_record::linux::signals::{EndSignal, Requests};
use nyquist_record::linux::{Command, Credentials, invoking_environment, invoking_user, processes_named};
use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often it is looked for processes of a name that end meanwhile.
const LOOKS: usize = 10;

/// Runs the subcommand and gives back the exit status.
pub(crate) fn run(args: &RecordArgs) -> Result<u8, Failure> {
    let printer = Printer::new(args.verbosity);
    // Before any thread is started: they all leave these signals to one.
    let requests =
        Requests::take_over().map_err(|error| Failure::because("cannot take over signals", &error))?;
    let control = Control::start(requests);
    let user = if args.as_root { None } else { invoking_user() };
    let owner = user.as_ref().map(|user| Owner { uid: user.uid, gid: user.gid });
    let output = open_output(args, owner)?;
    let Recorded { finished, summary, status } = record(args, printer, &control, user.as_ref(), owner)?;
    let Finished { profile, statistics, libs } = finished;
    let profile = symbolicate(profile, &libs, &args.symbols, printer, &control);
    drop(libs);
    control.enter(Phase::Saving);
    let saved = save(&profile, output, args.profile_version, owner, printer)?;
    summary::print(printer, &profile, &summary, &statistics, saved.path.as_deref());
    if let Some(picture) = &args.flamegraph {
        flamegraph::save(&profile, picture, owner)?;
        printer.say(format_args!("Wrote {}", picture.display()));
    }
    if let (Some(path), true) = (saved.path, wants_server(args)) {
        serve(&path, &profile, &args.server, &args.symbols, owner, printer, &control)?;
    }
    // A script that finds no file where it asked for one must hear of it.
    Ok(if saved.as_asked { status } else { status.max(FAILED) })
}

/// Opens the output, and keeps standard output for it alone where it is that.
fn open_output(args: &RecordArgs, owner: Option<Owner>) -> Result<Output, Failure> {
    let path = &args.output;
    let cannot_write =
        |error: io::Error| Failure::new(format!("cannot write {}: {}", path.display(), io_reason(&error)));
    let output = Output::open(path, owner)
        .map_err(|error| cannot_write(error).hint("choose another place with -o FILE"))?;
    if output.is_stdout() {
        rustix::stdio::dup2_stdout(io::stderr()).map_err(|error| cannot_write(error.into()))?;
    }
    Ok(output)
}

/// Without any terminal nobody would end the server.
fn wants_server(args: &RecordArgs) -> bool {
    let on_terminal = io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal();
    !args.save_only && (args.serve || on_terminal)
}

/// What the recording gave.
struct Recorded {
    finished: Finished,
    summary: Summary,
    status: u8,
}

/// Records the command, as often as it shall run, or what runs already.
fn record(
    args: &RecordArgs,
    printer: Printer,
    control: &Control,
    user: Option<&Credentials>,
    owner: Option<Owner>,
) -> Result<Recorded, Failure> {
    let began = Instant::now();
    let (mut converter, mut summary, mut status) =
        record_once(args, args.duration, printer, control, (user, owner), None)?;
    for run in 2..=args.runs.iteration_count {
        let left = args.duration.map(|duration| duration.saturating_sub(began.elapsed()));
        if summary.reason != EndReason::Exited || left == Some(Duration::ZERO) {
            break;
        }
        if status != 0 && !args.runs.ignore_exit_code {
            let runs = counted(u64::from(args.runs.iteration_count - run + 1), "run");
            printer.warn(format_args!("the command failed with {status}: {runs} left out (-i goes on)"));
            break;
        }
        printer.detail(format_args!("Run {run} of {}", args.runs.iteration_count));
        let former = summary;
        (converter, summary, status) =
            record_once(args, left, printer, control, (user, owner), Some(converter))?;
        summary.total_cpu_time_ns =
            summary.total_cpu_time_ns.zip(former.total_cpu_time_ns).map(|(a, b)| a + b);
        summary.lost_samples = summary.lost_samples.map(|lost| lost + former.lost_samples.unwrap_or(0));
    }
    if let Some(lost) = summary.lost_samples {
        converter.note_lost(lost);
    }
    Ok(Recorded { finished: converter.finish(), summary, status })
}

/// Records one run into the converter of the runs before it, if there are any.
fn record_once(
    args: &RecordArgs,
    duration: Option<Duration>,
    printer: Printer,
    control: &Control,
    (user, owner): (Option<&Credentials>, Option<Owner>),
    converter: Option<Converter>,
) -> Result<(Converter, Summary, u8), Failure> {
    let running = running_target(&args.target)?;
    let mut markers = markers::listen(args.target.pid.first().copied(), user, printer);
    let (child, target) = match running {
        Some(target) => (None, target),
        None => {
            let child = prepare(args, user, markers.as_ref())?;
            let target = Target::Child(child.pid());
            (Some(child), target)
        }
    };
    let kept = args.perf_data.as_deref().map(|path| Ok((path, PerfTee::open(path, owner)?))).transpose()?;
    let cpus = args.cpu.clone().unwrap_or_default().0;
    let context_switches = args.shape.rows.cswitch_markers;
    let options =
        perf::Options { rate_hz: args.rate, duration, cpus, context_switches, ..perf::Options::default() };
    let options = args.stacks.apply(options)?;
    let loses_privileges = child.as_ref().and_then(Suspended::loses_privileges);
    let backend = open_backend(args, target, &options, loses_privileges.as_ref())?;
    if context_switches && matches!(backend, Backend::Ptrace(_)) {
        printer
            .warn(format_args!("--cswitch-markers has no effect under ptrace, which does not hear of them"));
    }
    let outcome = backend.outcome();
    let is_first_run = converter.is_none();
    let options = converter_options(args, &outcome);
    let (meta, start) = (options.meta.clone(), options.start);
    let mut converter = converter.unwrap_or_else(|| {
        Converter::new(options).shaped(args.shape.into()).unlinking_jitdumps(args.shape.unlink_aux_files)
    });
    converter.keep_only(wanted_samples(&args.target, &backend));
    if let Some(markers) = &mut markers {
        markers.begin_at(nyquist_record::linux::now());
    }
    let mut recording = backend.record().map_err(|error| open_failure(&error))?;
    let mut tee = kept.map(|(path, file)| PerfTee::begin(path, file, &recording)).transpose()?;
    let command = child.map(|child| child.start().map_err(|error| launch_failure(&error))).transpose()?;
    if is_first_run {
        summary::print_outcome(printer, &outcome);
    }
    let signaller = command.as_ref().map(Running::signaller);
    control.enter(Phase::Recording { stop: recording.stop_handle(), command: signaller, interrupts: 0 });
    convert(&mut recording, &mut converter, markers.as_mut(), tee.as_mut());
    let summary = recording.finish();
    if let Some(tee) = tee {
        tee.finish(&meta, start, summary.lost_samples.unwrap_or_default(), printer);
    }
    let status = command.map_or(0, |command| end_command(command, summary.reason));
    control.enter(Phase::Saving);
    if let Some(markers) = markers {
        markers::finish(markers, &mut converter, printer);
    }
    Ok((converter, summary, status))
}

/// Opens the backend. A process that was found by its name may end before it is attached to: then it is looked once more
/// which there are.
fn open_backend(
    args: &RecordArgs,
    mut target: Target,
    options: &perf::Options,
    loses_privileges: Option<&PathBuf>,
) -> Result<Backend, Failure> {
    let was_found = |pid: Pid| !args.target.name.is_empty() && !args.target.pid.contains(&pid.0);
    for _ in 0..LOOKS {
        match Backend::open(args.backend.into(), target, options, loses_privileges.cloned()) {
            Err(OpenError::Perf(perf::OpenError::NoSuchProcess { pid })) if was_found(pid) => {
                target = running_target(&args.target)?.unwrap_or(Target::Attach(vec![pid]));
            }
            other => return other.map_err(|error| open_failure(&error)),
        }
    }
    Err(Failure::new("the processes of that name end faster than they can be attached to")
        .hint("-a --name NAME records them as they come and go"))
}

/// What is recorded where it runs already.
fn running_target(args: &TargetArgs) -> Result<Option<Target>, Failure> {
    if let Some(path) = &args.cgroup {
        return Ok(Some(Target::Cgroup(path.clone())));
    }
    if args.all_cpus {
        return Ok(Some(Target::System));
    }
    let mut pids: Vec<_> = args.pid.iter().copied().map(Pid).collect();
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

/// Which samples are kept of those that come.
fn wanted_samples(args: &TargetArgs, backend: &Backend) -> Filter {
    if args.all_cpus && !args.name.is_empty() {
        Filter::Named(args.name.iter().map(|name| NamePattern::new(name)).collect())
    } else {
        backend.filter()
    }
}

fn prepare(
    args: &RecordArgs,
    user: Option<&Credentials>,
    markers: Option<&Markers>,
) -> Result<Suspended, Failure> {
    let mut command = command_of(&args.command, user)?;
    command.env.extend(markers.map(Markers::variable));
    launch::prepare(&command).map_err(|error| launch_failure(&error))
}

/// The command of a command line, to be run as this user.
pub(crate) fn command_of(words: &[OsString], user: Option<&Credentials>) -> Result<Command, Failure> {
    let command = Command::from_words(words.iter().cloned());
    let mut command =
        command.ok_or_else(|| Failure::new("no command is given").hint("nyquist record COMMAND"))?;
    if let Some(user) = user {
        // What stands before the command on the command line wins.
        command.env.splice(0..0, invoking_environment(user.uid));
        command.run_as = Some(user.clone());
    }
    Ok(command)
}

/// Takes over everything that is recorded, until the recording ends.
fn convert(
    recording: &mut Recording,
    converter: &mut Converter,
    mut markers: Option<&mut Markers>,
    mut tee: Option<&mut PerfTee>,
) {
    let mut events = Vec::new();
    while let Some(chunk) = recording.next() {
        let complete_before = chunk.complete_before();
        let records = records_of(&chunk, tee.as_deref());
        chunk.decode(&mut events);
        if let Some(tee) = &mut tee {
            tee.write(records.as_deref(), &events, complete_before);
        }
        if let Some(markers) = &mut markers {
            for event in &events {
                markers.notice(event);
            }
            markers.collect(&mut events);
        }
        for event in events.drain(..) {
            converter.push(event);
        }
        // Another run may follow, whose events are younger than now.
        converter.advance(complete_before.min(nyquist_record::linux::now()));
        recording.heed(&converter.take_copy_counts());
    }
}

fn converter_options(args: &RecordArgs, outcome: &Outcome) -> Options {
    let words: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    let start_time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut meta = Meta {
        product: args.profile_name.clone().unwrap_or_else(|| target_name(args)),
        interval: 1_000_000_000 / u64::from(outcome.rate_hz().max(1)),
        start_time: start_time.as_micros() as u64,
        has_cpu_deltas: true,
        arguments: Some(words.join(" ")).filter(|words| !words.is_empty()),
        imported_from: Some(format!("nyquist {}", env!("CARGO_PKG_VERSION"))),
        extra: summary::outcome_lines(outcome),
        ..Meta::default()
    };
    machine::describe(&mut meta);
    Options { start: nyquist_record::linux::now(), kernel_permitted: outcome.samples_all_cpu_time(), meta }
}

/// What is recorded, in a few words.
fn target_name(args: &RecordArgs) -> String {
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
fn program_name(args: &RecordArgs) -> String {
    let program = Command::from_words(args.command.iter().cloned()).map(|command| command.program);
    let program = program.unwrap_or_default();
    Path::new(&program).file_name().unwrap_or(&program).to_string_lossy().into_owned()
}

/// Waits for the command and gives back the exit status that it leaves to the recorder. A recording that ends
/// before its command ends it, but does not wait for one that does not want to.
fn end_command(command: Running, reason: EndReason) -> u8 {
    const GRACE: Duration = Duration::from_secs(2);
    let signaller = command.signaller();
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || sender.send(command.wait()));
    match reason {
        EndReason::Exited => ended.recv().map_or(FAILED, |ended| shell_code(&ended)),
        EndReason::Stopped | EndReason::Duration => {
            // The command has been told already where a signal ended the recording.
            if reason == EndReason::Duration {
                let _ = signaller.send(EndSignal::Terminate.number());
            }
            let status = ended.recv_timeout(GRACE).map(|ended| shell_code(&ended));
            let status = status.unwrap_or(128 + EndSignal::Terminate.number() as u8);
            if reason == EndReason::Duration { 0 } else { status }
        }
    }
}

fn shell_code(ended: &io::Result<Ended>) -> u8 {
    ended.as_ref().map_or(FAILED, |ended| ended.status.shell_code())
}

pub(crate) fn launch_failure(error: &LaunchError) -> Failure {
    let failure = Failure::new(error.to_string()).status(error.exit_code());
    launch_advice::advice(error).into_iter().fold(failure, Failure::hint)
}

pub(crate) fn open_failure(error: &OpenError) -> Failure {
    error.advice().into_iter().fold(Failure::new(error.to_string()), Failure::hint)
}
