//! `nyquist record`: launch or attach, sample, convert, name, save, and show.

use crate::args::RecordArgs;
use crate::control::{Control, Phase};
use crate::failure::{FAILED, Failure, io_reason};
use crate::number::counted;
use crate::output::{Output, Owner};
use crate::printer::Printer;
use crate::save::save;
use crate::serve::serve;
use crate::symbolicate::symbolicate;
use crate::{flamegraph, machine, summary};
use nyquist_convert::event::Pid;
use nyquist_convert::{Converter, Finished, Options};
use nyquist_profile::Meta;
use nyquist_record::linux::launch::{self, Ended, LaunchError, Running, Suspended};
use nyquist_record::linux::perf::{self, EndReason, OpenError, Outcome, Perf, Recording, Target};
use nyquist_record::linux::signals::{EndSignal, Requests};
use nyquist_record::linux::{Command, Credentials, invoking_environment, invoking_user};
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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
    let Recorded { finished, summary, status } = record(args, printer, &control, user.as_ref())?;
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
    summary: perf::Summary,
    status: u8,
}

/// The recorded program, before it runs.
enum Program {
    Launched(Suspended),
    Attached(Pid),
}

/// Records the command, as often as it shall run, or the process.
fn record(
    args: &RecordArgs,
    printer: Printer,
    control: &Control,
    user: Option<&Credentials>,
) -> Result<Recorded, Failure> {
    let began = Instant::now();
    let (mut converter, mut summary, mut status) =
        record_once(args, args.duration, printer, control, user, None)?;
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
        (converter, summary, status) = record_once(args, left, printer, control, user, Some(converter))?;
        summary.total_cpu_time_ns += former.total_cpu_time_ns;
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
    user: Option<&Credentials>,
    converter: Option<Converter>,
) -> Result<(Converter, perf::Summary, u8), Failure> {
    let program = match args.pid {
        Some(pid) => Program::Attached(Pid(pid)),
        None => Program::Launched(prepare(args, user)?),
    };
    let target = match &program {
        Program::Launched(child) => Target::Child(child.pid()),
        Program::Attached(pid) => Target::Attach(*pid),
    };
    let options = perf::Options { rate_hz: args.rate, duration };
    let perf = Perf::open(target, &options).map_err(|error| open_failure(&error))?;
    let mut converter = converter.unwrap_or_else(|| {
        summary::print_outcome(printer, perf.outcome());
        Converter::new(converter_options(args, perf.outcome()))
            .shaped(args.shape.into())
            .unlinking_jitdumps(args.shape.unlink_aux_files)
    });
    let mut recording = perf.record().map_err(|error| open_failure(&error))?;
    let command = match program {
        Program::Launched(child) => Some(child.start().map_err(|error| launch_failure(&error))?),
        Program::Attached(_) => None,
    };
    let signaller = command.as_ref().map(Running::signaller);
    control.enter(Phase::Recording { stop: recording.stop_handle(), command: signaller, interrupts: 0 });
    convert(&mut recording, &mut converter);
    let summary = recording.finish();
    let status = command.map_or(0, |command| end_command(command, summary.reason));
    control.enter(Phase::Saving);
    Ok((converter, summary, status))
}

fn prepare(args: &RecordArgs, user: Option<&Credentials>) -> Result<Suspended, Failure> {
    let command = Command::from_words(args.command.iter().cloned());
    let mut command =
        command.ok_or_else(|| Failure::new("no command is given").hint("nyquist record COMMAND"))?;
    if let Some(user) = user {
        // What stands before the command on the command line wins.
        command.env.splice(0..0, invoking_environment(user.uid));
        command.run_as = Some(user.clone());
    }
    launch::prepare(&command).map_err(|error| launch_failure(&error))
}

/// Takes over everything that is recorded, until the recording ends.
fn convert(recording: &mut Recording, converter: &mut Converter) {
    let mut events = Vec::new();
    for chunk in recording {
        let complete_before = chunk.complete_before();
        chunk.decode(&mut events);
        for event in events.drain(..) {
            converter.push(event);
        }
        // Another run may follow, whose events are younger than now.
        converter.advance(complete_before.min(nyquist_record::linux::now()));
    }
}

fn converter_options(args: &RecordArgs, outcome: &Outcome) -> Options {
    let words: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    let target = match args.pid {
        Some(pid) => {
            std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
        }
        None => program_name(args),
    };
    let start_time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut meta = Meta {
        product: args.profile_name.clone().unwrap_or(target),
        interval: 1_000_000_000 / u64::from(outcome.rate_hz.max(1)),
        start_time: start_time.as_micros() as u64,
        has_cpu_deltas: true,
        arguments: Some(words.join(" ")).filter(|words| !words.is_empty()),
        imported_from: Some(format!("nyquist {}", env!("CARGO_PKG_VERSION"))),
        extra: summary::outcome_lines(outcome),
        ..Meta::default()
    };
    machine::describe(&mut meta);
    Options { start: nyquist_record::linux::now(), kernel_permitted: outcome.kernel, meta }
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

fn launch_failure(error: &LaunchError) -> Failure {
    Failure::new(error.to_string()).status(error.exit_code())
}

fn open_failure(error: &OpenError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error.advice() {
        Some(advice) => failure.hint(advice),
        None => failure,
    }
}
