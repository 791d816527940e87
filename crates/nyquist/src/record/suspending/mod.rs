//! Recording on Windows and macOS: launch or attach, sample by suspending threads or by the kernel's events, and
//! convert.

#[cfg(target_os = "macos")]
mod macos;
mod options;
mod save_signal;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "macos")]
use macos as sampling;
#[cfg(windows)]
use windows as sampling;

pub(crate) use save_signal::SaveSignal;

use crate::args::RecordArgs;
use crate::control::{Control, Phase};
use crate::failure::Failure;
use crate::live_page::SnapshotSender;
use crate::memory;
use crate::printer::Printer;
use crate::record::drive::drive;
use crate::record::{
    Feed, LaunchedCommand, RecordingResult, Run, RunReport, describe, end_of, enter_recording,
    named_processes, program_name, record_runs, say_how_it_ends, total_event,
};
use crate::spool::Spool;
use crate::system::recorder::backend::{Backend, OpenError, RecordingOutcome, RecordingSummary};
use crate::system::recorder::launch::{self, LaunchError, SuspendedChild};
use crate::system::recorder::{Command, RecordingTarget, now};
use nyquist_convert::{Converter, NamePattern, Options, ProcessFilter, Shape};
use nyquist_profile::ExtraInfo;
use std::collections::BTreeMap;
use std::time::Duration;

/// Nothing limits this process here.
#[expect(clippy::unnecessary_wraps, reason = "it can fail on Linux")]
pub(crate) fn check_limits() -> Result<(), Failure> {
    Ok(())
}

/// What will be recorded, after the checks that need no process.
pub(crate) struct Plan<'a> {
    args: &'a RecordArgs,
}

/// The common parts of all runs of a recording.
struct Recorder<'a> {
    args: &'a RecordArgs,
    printer: Printer,
    control: &'a Control,
    /// The receiver of snapshots, if a page shows them.
    snapshots: Option<&'a SnapshotSender>,
}

impl<'a> Plan<'a> {
    /// Checks what the options ask for.
    pub(crate) fn of(args: &'a RecordArgs, _: Option<SaveSignal>) -> Result<Self, Failure> {
        options::check(args)?;
        Ok(Self { args })
    }

    /// Records all runs of the command, or running processes.
    pub(crate) fn record(
        self,
        (printer, control): (Printer, &Control),
        snapshots: Option<&SnapshotSender>,
        _spool: Option<&Spool>,
    ) -> Result<RecordingResult, Failure> {
        let args = self.args;
        let recorder = Recorder { args, printer, control, snapshots };
        let mut converter = None;
        let runs = record_runs(args, printer, |duration| recorder.run(duration, &mut converter))?;
        let finished =
            converter.map(Converter::finish).ok_or_else(|| Failure::new("nothing was recorded"))?;
        let (events, command_lines) = (Vec::new(), String::new());
        Ok(RecordingResult { finished, runs, events, command_lines, may_read_other_processes: true })
    }
}

impl Recorder<'_> {
    /// Records one run into the converter of the runs before it, if there are any.
    fn run(&self, duration: Option<Duration>, converter: &mut Option<Converter>) -> Result<Run, Failure> {
        let (child, target) = self.subject()?;
        let notice = child.as_ref().and_then(SuspendedChild::notice).map(str::to_owned);
        let options = options::of(self.args, duration);
        let backend = Backend::open(&target, &options).map_err(|error| open_failure(&error))?;
        let outcome = backend.outcome();
        let is_first = converter.is_none();
        let converter = converter.get_or_insert_with(|| self.converter(&outcome));
        let mut recording = backend.record().map_err(|error| open_failure(&error))?;
        let began = now();
        let command = child.map(|child| child.start().map_err(|error| launch_failure(&error))).transpose()?;
        let is_recorded = matches!(target, RecordingTarget::Child(_));
        let command =
            command.map(|running| LaunchedCommand::new(running, program_name(self.args), is_recorded));
        if is_first {
            print_outcome(self.printer, &outcome, notice.as_deref());
        }
        enter_recording(self.control, recording.stop_handle(), command.as_ref());
        if is_first {
            say_how_it_ends(self.args, self.printer);
        }
        let mut feed = Feed::new(converter, self.snapshots.map(|snapshots| (snapshots, began)));
        drive(&mut recording, &mut feed);
        let family = feed.family;
        let summary = recording.finish();
        if let Some(total) = total_event(summary.total_cpu_time_ns) {
            converter.push(total);
        }
        if let Some(end) = end_of(summary.reason, (began, duration), self.control) {
            converter.note_end(end);
        }
        let live = family.live(&ancestors(&target));
        let ended = command.map(|command| command.finish(summary.reason, self.printer));
        let (status, used) = ended.unwrap_or((0, None));
        self.control.enter(Phase::Saving);
        let reason = summary.reason;
        Ok(Run { report: report_of(&summary), reason, status, used, live, not_kept: None })
    }

    /// The command, if there is one, and what is recorded.
    fn subject(&self) -> Result<(Option<SuspendedChild>, RecordingTarget), Failure> {
        let args = self.args;
        let running = running_target(args)?;
        let child = match Command::from_words(args.command.iter().cloned()) {
            Some(command) => Some(launch::prepare(&command).map_err(|error| launch_failure(&error))?),
            None if running.is_none() => {
                return Err(Failure::new("no command is given").hint("nyquist record COMMAND"));
            }
            None => None,
        };
        let target = running.or_else(|| child.as_ref().map(|child| RecordingTarget::Child(child.pid())));
        let target = target.ok_or_else(|| Failure::new("no command is given"))?;
        Ok((child, target))
    }

    fn converter(&self, outcome: &RecordingOutcome) -> Converter {
        let args = self.args;
        let way =
            ExtraInfo { section: "Recording".to_owned(), label: "Sampled".to_owned(), value: outcome.way() };
        let meta = describe(args, outcome.interval_ns, vec![way]);
        let filter = if args.target.all_cpus && !args.target.name.is_empty() {
            ProcessFilter::Named(args.target.name.iter().map(|name| NamePattern::new(name)).collect())
        } else {
            ProcessFilter::All
        };
        Converter::new(Options {
            shape: Shape { waits: args.off_cpu, ..Shape::from(args.shape) },
            filter,
            distinctive_words: true,
            process_memory: memory::of_processes(args.presentation.symbols.max_memory),
            side_files: memory::side_files(args.presentation.symbols.max_memory),
            ..Options::new(now(), meta)
        })
    }
}

/// How a run went.
fn report_of(summary: &RecordingSummary) -> RunReport {
    RunReport {
        event_counts: BTreeMap::new(),
        total_cpu_time_ns: summary.total_cpu_time_ns,
        left_running: summary.left_running,
        holds: summary.holds,
        warnings: summary.notices.iter().map(ToString::to_string).collect(),
    }
}

/// The running processes that the options name, if they name any.
fn running_target(args: &RecordArgs) -> Result<Option<RecordingTarget>, Failure> {
    if let Some(machine) = options::whole_machine(args) {
        return Ok(Some(machine));
    }
    let pids = named_processes(&args.target, "`*` and `?` stand for other characters")?;
    Ok((!pids.is_empty()).then_some(RecordingTarget::Attach(pids)))
}

fn ancestors(target: &RecordingTarget) -> Vec<u32> {
    match target {
        RecordingTarget::Child(pid) => vec![pid.0],
        RecordingTarget::Attach(pids) => pids.iter().map(|pid| pid.0).collect(),
        #[cfg(windows)]
        RecordingTarget::Machine => Vec::new(),
    }
}

/// Prints how is sampled, and what differs from the request. `notice` is that of launching.
fn print_outcome(printer: Printer, outcome: &RecordingOutcome, notice: Option<&str>) {
    printer.say(format_args!("Sampling {}", outcome.way()));
    if let Some(notice) = notice {
        printer.warn(notice);
    }
    for notice in &outcome.notices {
        printer.warn(notice);
    }
}

fn launch_failure(error: &LaunchError) -> Failure {
    let failure = Failure::new(error.to_string()).limited_by(error).status(error.exit_code());
    error.advice().into_iter().fold(failure, Failure::hint)
}

fn open_failure(error: &OpenError) -> Failure {
    let hints = error.advice().into_iter().chain(sampling::as_administrator(error));
    hints.fold(Failure::new(error.to_string()), Failure::hint)
}
