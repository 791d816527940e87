//! Recording on Windows and macOS: launch or attach, sample by suspending threads or by the kernel's events, and
//! convert.

use super::options;
use crate::args::RecordArgs;
use crate::control::{Control, Phase};
use crate::failure::{FAILED, Failure};
use crate::live_page::{LivePage, Tap};
use crate::memory;
use crate::number::counted;
use crate::printer::Printer;
use crate::record::{Course, Family, Recorded};
use crate::system::current::machine;
use crate::system::recorder::backend::{Backend, OpenError, Outcome, Recording, Summary};
use crate::system::recorder::launch::{self, Ended, LaunchError, Running, Suspended};
use crate::system::recorder::signals::EndSignal;
use crate::system::recorder::{Command, EndReason, Preference, Target, now, processes_named};
use nyquist_convert::event::{Event, EventKind, Pid, Timestamp};
use nyquist_convert::{Converter, Filter, NamePattern, Options, Shape};
use nyquist_profile::{ExtraInfo, Meta};
use std::io;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What will be recorded, after the checks that need no process.
pub(crate) struct Plan<'a> {
    args: &'a RecordArgs,
}

/// One run of the command, or of running processes, with what it works for.
struct Recorder<'a> {
    args: &'a RecordArgs,
    printer: Printer,
    control: &'a Control,
    /// The receiver of snapshots, if a page shows them.
    tap: Option<&'a Tap>,
}

/// The result of a run.
struct Run {
    summary: Summary,
    /// The command's exit status.
    status: u8,
    /// The command's CPU time by the system's accounting, if it has ended.
    used: Option<Duration>,
    /// The descendants of the recorded processes that still run.
    living: Vec<u32>,
}

impl<'a> Plan<'a> {
    /// Checks what the options ask for.
    pub(crate) fn of(args: &'a RecordArgs) -> Result<Self, Failure> {
        options::check(args)?;
        Ok(Self { args })
    }

    /// The profile's name.
    pub(crate) fn profile_name(&self) -> String {
        self.args.profile_name.clone().unwrap_or_else(|| self.target_name())
    }

    /// The target of the recording, in a few words.
    pub(crate) fn target_name(&self) -> String {
        let target = &self.args.target;
        match target.pid.first() {
            Some(pid) => format!("process {pid}"),
            None if !target.name.is_empty() => target.name.join(", "),
            None if target.all_cpus => "the whole system".to_owned(),
            None => program_name(self.args),
        }
    }

    /// Records all runs of the command, or running processes.
    pub(crate) fn record(
        &self,
        (printer, control): (Printer, &Control),
        page: Option<&LivePage>,
    ) -> Result<Recorded, Failure> {
        let tap = page.map(|page| Tap::of(page.shown(), &self.args.symbols)).transpose()?;
        let recorder = Recorder { args: self.args, printer, control, tap: tap.as_ref() };
        let recorded = recorder.record(&self.profile_name());
        // The page gets no snapshots after its last profile.
        if let Some(tap) = tap {
            tap.finish();
        }
        recorded
    }
}

impl Recorder<'_> {
    /// Records all runs into one profile.
    fn record(&self, name: &str) -> Result<Recorded, Failure> {
        let args = self.args;
        let began = Instant::now();
        let mut converter = None;
        let Run { mut summary, mut status, mut used, mut living } =
            self.run(name, args.duration, &mut converter)?;
        for run in 2..=args.runs.iteration_count {
            let left = args.duration.map(|duration| duration.saturating_sub(began.elapsed()));
            if summary.reason != EndReason::Exited || left == Some(Duration::ZERO) {
                break;
            }
            if status != 0 && !args.runs.ignore_exit_code {
                let runs = counted(u64::from(args.runs.iteration_count - run + 1), "run");
                self.printer
                    .warn(format_args!("the command failed with {status}: {runs} left out (-i goes on)"));
                break;
            }
            self.printer.detail(format_args!("Run {run} of {}", args.runs.iteration_count));
            let (cpu_time_before, used_before) = (summary.total_cpu_time_ns, used);
            Run { summary, status, used, living } = self.run(name, left, &mut converter)?;
            summary.total_cpu_time_ns = summary.total_cpu_time_ns.zip(cpu_time_before).map(|(a, b)| a + b);
            used = used.zip(used_before).map(|(a, b)| a + b);
        }
        let finished =
            converter.map(Converter::finish).ok_or_else(|| Failure::new("nothing was recorded"))?;
        let used = used.filter(|_| !args.shape.rows.main_thread_only);
        let course = Course {
            total_cpu_time_ns: summary.total_cpu_time_ns,
            left_running: summary.left_running,
            deepened_after: None,
            holds: summary.holds,
            warnings: summary.notices.iter().map(ToString::to_string).collect(),
        };
        Ok(Recorded {
            finished,
            course,
            events: Vec::new(),
            status,
            used,
            living,
            command_lines: String::new(),
            may_look_into_others: true,
            not_kept: None,
        })
    }

    /// Records one run into the converter of the runs before it, if there are any.
    fn run(
        &self,
        name: &str,
        duration: Option<Duration>,
        converter: &mut Option<Converter>,
    ) -> Result<Run, Failure> {
        let (child, target) = self.subject()?;
        let options = options::of(self.args, duration);
        let backend = Backend::open(&target, &options).map_err(|error| open_failure(&error))?;
        let outcome = backend.outcome();
        let is_first = converter.is_none();
        let converter = converter.get_or_insert_with(|| self.converter(name, &outcome));
        let mut recording = backend.record().map_err(|error| open_failure(&error))?;
        let began = now();
        let command = child.map(|child| child.start().map_err(|error| launch_failure(&error))).transpose()?;
        let command = command.map(Arc::new);
        self.control.enter(Phase::Recording {
            stop: recording.stop_handle(),
            command: command.as_ref().map(|command| command.signaller()),
            interrupts: 0,
        });
        if is_first {
            print_outcome(self.printer, &outcome);
        }
        let is_beside = command.is_some() && !matches!(target, Target::Child(_));
        if let Some(command) = command.clone().filter(|_| is_beside) {
            self.end_with(command);
        }
        let mut family = Family::default();
        self.convert(&mut recording, converter, &mut family, began);
        let summary = recording.finish();
        report_total(&summary, converter);
        if let Some(end) = self.end_of(summary.reason, began, duration) {
            converter.note_end(end);
        }
        let living = family.living(&ancestors(&target));
        let (status, used) = match (command, summary.reason) {
            (None, _) => (0, None),
            (Some(command), EndReason::Exited) if !is_beside => self.await_command(&command),
            (Some(command), reason) => (self.end_command(&command, reason), None),
        };
        self.control.enter(Phase::Saving);
        Ok(Run { summary, status, used, living })
    }

    /// The command, if there is one, and what is recorded.
    fn subject(&self) -> Result<(Option<Suspended>, Target), Failure> {
        let args = self.args;
        let running = running_target(args)?;
        let child = match Command::from_words(args.command.iter().cloned()) {
            Some(command) => Some(launch::prepare(&command).map_err(|error| launch_failure(&error))?),
            None if running.is_none() => {
                return Err(Failure::new("no command is given").hint("nyquist record COMMAND"));
            }
            None => None,
        };
        let target = running.or_else(|| child.as_ref().map(|child| Target::Child(child.pid())));
        let target = target.ok_or_else(|| Failure::new("no command is given"))?;
        Ok((child, target))
    }

    fn converter(&self, name: &str, outcome: &Outcome) -> Converter {
        let args = self.args;
        let words: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
        let start_time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut meta = Meta {
            product: name.to_owned(),
            interval: outcome.interval_ns,
            start_time: start_time.as_micros() as u64,
            has_cpu_deltas: true,
            arguments: Some(words.join(" ")).filter(|words| !words.is_empty()),
            imported_from: Some(format!("nyquist {}", env!("CARGO_PKG_VERSION"))),
            extra: vec![ExtraInfo {
                section: "Recording".to_owned(),
                label: "Sampled".to_owned(),
                value: outcome.way(),
            }],
            ..Meta::default()
        };
        machine::describe(&mut meta);
        let options = Options { start: now(), kernel_permitted: true, meta };
        let mut converter = Converter::new(options)
            .shaped(Shape { waits: args.off_cpu, ..Shape::from(args.shape) })
            .telling_rows_apart()
            .limiting_side_files(memory::side_files(args.symbols.max_memory));
        if args.target.all_cpus && !args.target.name.is_empty() {
            let names = args.target.name.iter().map(|name| NamePattern::new(name));
            converter.keep_only(Filter::Named(names.collect()));
        }
        converter
    }

    /// Converts all recorded events, until the recording ends.
    fn convert(
        &self,
        recording: &mut Recording,
        converter: &mut Converter,
        family: &mut Family,
        start: Timestamp,
    ) {
        let _preference = Preference::of_this_thread();
        let mut events = Vec::new();
        while let Some(chunk) = recording.next() {
            let complete_before = chunk.complete_before();
            chunk.decode(&mut events);
            for event in events.drain(..) {
                family.notice(&event);
                converter.push(event);
            }
            // Another run may follow, with events later than now.
            converter.advance(complete_before.min(now()));
            if let Some(tap) = self.tap {
                tap.offer(converter, start, complete_before.min(now()));
            }
        }
    }

    /// The end of a run that did not end with the recorded processes. A sleeping program has no last event
    /// then.
    fn end_of(&self, reason: EndReason, began: Timestamp, duration: Option<Duration>) -> Option<Timestamp> {
        match reason {
            EndReason::Exited => None,
            EndReason::Stopped => self.control.asked_to_end(),
            EndReason::Duration => {
                duration.map(|duration| Timestamp(began.0.saturating_add(duration.as_nanos() as u64)))
            }
        }
    }

    /// Ends the recording of running processes when the command ends that limits it.
    fn end_with(&self, command: Arc<Running>) {
        let control = self.control.clone();
        thread::spawn(move || {
            let _ = command.wait();
            control.end_recording();
        });
    }

    /// Waits for the end of the recorded command, and returns the recorder's exit status, and the command's
    /// CPU time.
    fn await_command(&self, command: &Running) -> (u8, Option<Duration>) {
        let ended = command.wait();
        self.remark_on(&ended);
        (shell_code(&ended), ended.ok().map(|ended| ended.user + ended.system))
    }

    /// Ends the command, because the recording has ended, but does not wait long for it. Returns the
    /// recorder's exit status.
    fn end_command(&self, command: &Arc<Running>, reason: EndReason) -> u8 {
        const GRACE: Duration = Duration::from_secs(2);
        if reason != EndReason::Stopped {
            let _ = command.signaller().send(EndSignal::Terminate.number());
        }
        let (sender, ended) = mpsc::channel();
        let waiting = Arc::clone(command);
        thread::spawn(move || sender.send(waiting.wait()));
        match (reason, ended.recv_timeout(GRACE)) {
            (EndReason::Duration | EndReason::Exited, _) => 0,
            (EndReason::Stopped, Ok(ended)) => {
                self.remark_on(&ended);
                shell_code(&ended)
            }
            (EndReason::Stopped, Err(_)) => FAILED,
        }
    }

    fn remark_on(&self, ended: &io::Result<Ended>) {
        if let Some(remark) = ended.as_ref().ok().and_then(|ended| ended.status.remark()) {
            self.printer.say(format_args!("`{}` {remark}", program_name(self.args)));
        }
    }
}

/// The running processes that the options name, if they name any.
fn running_target(args: &RecordArgs) -> Result<Option<Target>, Failure> {
    if let Some(machine) = options::whole_machine(args) {
        return Ok(Some(machine));
    }
    let mut pids: Vec<_> = args.target.pid.iter().copied().map(Pid).collect();
    for name in &args.target.name {
        let pattern = NamePattern::new(name);
        let named = processes_named(|name| pattern.matches(name));
        if named.is_empty() {
            return Err(Failure::new(format!("no process is named `{name}`"))
                .hint("`*` and `?` stand for other characters"));
        }
        pids.extend(named);
    }
    pids.sort_unstable();
    pids.dedup();
    Ok((!pids.is_empty()).then_some(Target::Attach(pids)))
}

fn ancestors(target: &Target) -> Vec<u32> {
    match target {
        Target::Child(pid) => vec![pid.0],
        Target::Attach(pids) => pids.iter().map(|pid| pid.0).collect(),
        #[cfg(windows)]
        Target::Machine => Vec::new(),
    }
}

/// The command's name without its folder.
fn program_name(args: &RecordArgs) -> String {
    let program = Command::from_words(args.command.iter().cloned()).map(|command| command.program);
    let program = program.unwrap_or_default();
    Path::new(&program).file_name().unwrap_or(&program).to_string_lossy().into_owned()
}

fn print_outcome(printer: Printer, outcome: &Outcome) {
    printer.say(format_args!("Sampling {}", outcome.way()));
    for notice in &outcome.notices {
        printer.warn(notice);
    }
}

/// Reports the CPU time of everything that was recorded. It is a sum, and has no time.
fn report_total(summary: &Summary, converter: &mut Converter) {
    let Some(cpu_time_ns) = summary.total_cpu_time_ns else { return };
    converter.push(Event { time: Timestamp(0), cpu: None, kind: EventKind::TotalInAll { cpu_time_ns } });
}

fn shell_code(ended: &io::Result<Ended>) -> u8 {
    ended.as_ref().map_or(FAILED, |ended| ended.status.shell_code())
}

fn launch_failure(error: &LaunchError) -> Failure {
    let failure = Failure::new(error.to_string()).status(error.exit_code());
    error.advice().into_iter().fold(failure, Failure::hint)
}

fn open_failure(error: &OpenError) -> Failure {
    error.advice().into_iter().fold(Failure::new(error.to_string()), Failure::hint)
}
