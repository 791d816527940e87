//! One run of a recording, from its first event to its last.

use super::companions::Companions;
use super::ending;
use super::failures::{launch_failure, open_failure};
use super::subject::{
    ancestors, open_backend, prepare, profile_name, program_name, running_target, wanted_samples,
};
use crate::args::RecordArgs;
use crate::control::{Control, Phase};
use crate::failure::{FAILED, Failure};
use crate::live_page::Tap;
use crate::memory;
use crate::printer::Printer;
use crate::record::Family;
use crate::system::linux::options::with_stacks;
use crate::system::linux::perf_tee::{About, PerfTee, records_of};
use crate::system::linux::{machine, markers, outcome_messages};
use nyquist_convert::event::{Event, EventKind, Pid, Timestamp};
use nyquist_convert::{Converter, Filter, Options, Shape};
use nyquist_profile::Meta;
use nyquist_record::linux::backend::{Backend, Outcome, Recording, Summary};
use nyquist_record::linux::launch::{Ended, Running, Suspended};
use nyquist_record::linux::markers::Markers;
use nyquist_record::linux::signals::EndSignal;
use nyquist_record::linux::{self, Credentials, EndReason, Preference, RecordedEvent, Target};
use nyquist_symbols::KernelSymbols;
use std::io;
use std::slice;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The interval of passing on samples while a page is open.
const HAND_OVER_EVERY: Duration = Duration::from_millis(100);

/// The common parts of all runs of a recording.
pub(super) struct Recorder<'a> {
    pub(super) args: &'a RecordArgs,
    pub(super) printer: Printer,
    pub(super) control: &'a Control,
    /// The user that the command runs as, if it is another one.
    pub(super) user: Option<&'a Credentials>,
    /// The events that are recorded beside the samples.
    pub(super) events: &'a [RecordedEvent],
    /// The receiver of snapshots, if a page shows them.
    pub(super) tap: Option<&'a Tap>,
}

/// The processes of a run.
pub(super) enum Whom {
    /// The processes that the options name.
    Asked,
    /// Processes that a previous run left running.
    LeftRunning(Vec<u32>),
}

/// The result of a run.
pub(super) struct Run {
    pub(super) summary: Summary,
    /// The command's exit status.
    pub(super) status: u8,
    /// The CPU time of the command and its children by the kernel's accounting, if it has ended.
    pub(super) used: Option<Duration>,
    /// The descendants of the recorded processes that still run, if the recording has ended with those
    /// processes.
    pub(super) living: Vec<u32>,
    /// The reason why the kernel's records could not be kept, if they were to be.
    pub(super) not_kept: Option<Failure>,
}

/// The processes that will be recorded.
struct Subject {
    /// The command, if there is one, suspended before its start.
    child: Option<Suspended>,
    target: Target,
}

/// Passes the kernel's functions to the converter, if they are needed to determine what threads wait for.
pub(crate) fn knowing_kernel(converter: Converter, outcome: &Outcome) -> Converter {
    match outcome {
        Outcome::Perf(outcome) if outcome.switch_stacks => match KernelSymbols::running_functions() {
            Ok(symbols) => converter.with_kernel_symbols(symbols),
            Err(_) => converter,
        },
        _ => converter,
    }
}

impl Recorder<'_> {
    /// Records one run into the converter of the runs before it, if there are any.
    pub(super) fn run(
        &self,
        whom: Whom,
        duration: Option<Duration>,
        converter: &mut Option<Converter>,
    ) -> Result<Run, Failure> {
        let launches = matches!(whom, Whom::Asked) && !self.args.command.is_empty();
        let (running, listens_to) = match whom {
            Whom::Asked => (running_target(&self.args.target)?, self.args.target.pid.first().copied()),
            Whom::LeftRunning(pids) => {
                let first = pids.first().copied();
                (Some(Target::Attach(pids.into_iter().map(Pid).collect())), first)
            }
        };
        let budget = memory::side_files(self.args.symbols.max_memory);
        let mut markers = markers::listen(listens_to, self.user, &budget, self.printer);
        let Subject { child, target } = self.subject(running, launches, markers.as_ref())?;
        let is_beside = child.is_some() && !matches!(target, Target::Child(_));
        let kept = self.args.perf_data.as_deref();
        let kept = kept.map(PerfTee::open).transpose()?;
        let backend = self.open(target.clone(), child.as_ref(), duration)?;
        let outcome = backend.outcome();
        let is_first = converter.is_none();
        let options = self.converter_options(&outcome);
        let (meta, start) = (options.meta.clone(), options.start);
        let wanted = wanted_samples(&self.args.target, &backend);
        let converter = match converter {
            Some(converter) => {
                converter.keep_only(wanted.clone());
                converter
            }
            None => {
                converter.insert(knowing_kernel(self.converter(options, wanted.clone(), &outcome), &outcome))
            }
        };
        if let Some(markers) = &mut markers {
            markers.begin_at(linux::now());
        }
        let mut companions = Companions::new(markers);
        if self.args.off_cpu {
            companions.watch_waits(&outcome, self.printer);
        }
        let mut recording = backend.record().map_err(|error| open_failure(&error))?;
        let mut tee = kept.map(|output| PerfTee::begin(output, &recording, wanted)).transpose()?;
        if is_first {
            outcome_messages::print_before_start(self.printer, &outcome);
        }
        let began = linux::now();
        let command = child.map(|child| child.start().map_err(|error| launch_failure(&error))).transpose()?;
        // From here on, the child runs the command.
        if !self.args.no_counters {
            companions.count(&target, self.printer);
        }
        if is_first {
            outcome_messages::print_outcome(self.printer, &outcome);
        }
        let signaller = command.as_ref().map(Running::signaller);
        let stop = recording.stop_handle();
        self.control.enter(Phase::Recording { stop, command: signaller, interrupts: 0 });
        let command = command.map(Arc::new);
        if let Some(command) = command.as_ref().filter(|_| is_beside) {
            self.end_with(Arc::clone(command));
        }
        let mut family = Family::default();
        let tap = self.tap.map(|tap| (tap, start));
        convert(&mut recording, converter, &mut companions, tee.as_mut(), &mut family, tap);
        let summary = recording.finish();
        report_total(&summary, tee.as_mut(), converter);
        let living = if summary.left_running { family.living(&ancestors(&target)) } else { Vec::new() };
        if let Some(end) = self.end_of(summary.reason, began, duration) {
            converter.note_end(end);
        }
        let not_kept = tee.and_then(|tee| {
            let build_ids = converter.build_ids();
            tee.finish(&About { meta: &meta, start, build_ids }, self.printer).err()
        });
        let (status, used) = match (command, summary.reason) {
            (None, _) => (0, None),
            (Some(command), EndReason::Exited) if !is_beside => self.await_command(&command),
            (Some(command), reason) => (self.end_command(command, reason), None),
        };
        self.control.enter(Phase::Saving);
        companions.finish(converter, self.printer);
        Ok(Run { summary, status, used, living, not_kept })
    }

    fn subject(
        &self,
        running: Option<Target>,
        launches: bool,
        markers: Option<&Markers>,
    ) -> Result<Subject, Failure> {
        if !launches && let Some(target) = running {
            return Ok(Subject { child: None, target });
        }
        // The markers of a command that is not recorded have no thread.
        let markers = markers.filter(|_| matches!(running, None | Some(Target::System)));
        let child = prepare(self.args, self.user, markers)?;
        let target = running.unwrap_or(Target::Child(child.pid()));
        Ok(Subject { child: Some(child), target })
    }

    fn open(
        &self,
        target: Target,
        child: Option<&Suspended>,
        duration: Option<Duration>,
    ) -> Result<Backend, Failure> {
        let args = self.args;
        let options = with_stacks(
            args.stacks,
            linux::Options {
                rate_hz: args.rate,
                duration,
                cpus: args.cpu.clone().unwrap_or_default().0,
                context_switches: args.shape.rows.cswitch_markers || args.off_cpu,
                wait_reasons: args.off_cpu,
                events: self.events.to_vec(),
                hand_over_every: self.tap.map(|_| HAND_OVER_EVERY),
                ..linux::Options::default()
            },
        )?;
        let loses_privileges = child.and_then(Suspended::loses_privileges);
        let backend = open_backend(args, target, &options, loses_privileges.as_ref())?;
        if matches!(backend, Backend::Ptrace(_)) {
            self.warn_of_rows_without_cpus();
        }
        Ok(backend)
    }

    /// Warns about wanted rows and markers that need the CPU on which a thread ran.
    fn warn_of_rows_without_cpus(&self) {
        let rows = self.args.shape.rows;
        let wanted =
            [(rows.cswitch_markers, "--cswitch-markers"), (rows.per_cpu_threads, "--per-cpu-threads")];
        for (_, option) in wanted.into_iter().filter(|(is_wanted, _)| *is_wanted) {
            let text = "has no effect under ptrace, which does not say on which CPU a thread runs";
            self.printer.warn(format_args!("{option} {text}"));
        }
    }

    fn converter(&self, options: Options, wanted: Filter, outcome: &Outcome) -> Converter {
        let shape = self.args.shape;
        let converter = Converter::new(options);
        // With ptrace, samples themselves record how long their threads have waited.
        let waits = self.args.off_cpu && matches!(outcome, Outcome::Perf(_));
        let rows = Shape { waits, ..shape.into() };
        let converter = converter.shaped(rows).unlinking_jitdumps(shape.unlink_aux_files);
        let mut converter = converter.telling_rows_apart();
        converter.keep_only(wanted);
        converter.limiting_side_files(memory::side_files(self.args.symbols.max_memory))
    }

    fn converter_options(&self, outcome: &Outcome) -> Options {
        let args = self.args;
        let words: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
        let start_time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut meta = Meta {
            product: profile_name(args),
            interval: 1_000_000_000 / u64::from(outcome.rate_hz().max(1)),
            start_time: start_time.as_micros() as u64,
            has_cpu_deltas: true,
            arguments: Some(words.join(" ")).filter(|words| !words.is_empty()),
            imported_from: Some(format!("nyquist {}", env!("CARGO_PKG_VERSION"))),
            extra: outcome_messages::outcome_lines(outcome),
            ..Meta::default()
        };
        machine::describe(&mut meta);
        Options { start: linux::now(), kernel_permitted: outcome.samples_all_cpu_time(), meta }
    }

    /// The end of a run that did not end with the recorded processes. A sleeping program has no last
    /// event then.
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
        self.report_signal(&ended);
        (shell_code(&ended), ended.ok().map(|ended| ended.user + ended.system))
    }

    /// Ends the command, because the recording has ended, but does not wait long for it. Returns the
    /// recorder's exit status.
    fn end_command(&self, command: Arc<Running>, reason: EndReason) -> u8 {
        const GRACE: Duration = Duration::from_secs(2);
        // If a signal, or the command's own end, ended the recording, the command has ended or has already
        // received the signal.
        if reason != EndReason::Stopped {
            let _ = command.signaller().send(EndSignal::Terminate.number());
        }
        let (sender, ended) = mpsc::channel();
        thread::spawn(move || sender.send(command.wait()));
        match (reason, ended.recv_timeout(GRACE)) {
            (EndReason::Duration | EndReason::Exited, _) => 0,
            (EndReason::Stopped, Ok(ended)) => {
                self.report_signal(&ended);
                shell_code(&ended)
            }
            (EndReason::Stopped, Err(_)) => 128 + EndSignal::Terminate.number() as u8,
        }
    }

    fn report_signal(&self, ended: &io::Result<Ended>) {
        let Ok(Ended { status, .. }) = ended else { return };
        if let Some(line) = ending::line(&program_name(self.args), *status) {
            self.printer.say(line);
        }
    }
}

/// Converts all recorded events, until the recording ends.
fn convert(
    recording: &mut Recording,
    converter: &mut Converter,
    companions: &mut Companions,
    mut tee: Option<&mut PerfTee>,
    family: &mut Family,
    tap: Option<(&Tap, Timestamp)>,
) {
    let _preference = Preference::of_this_thread();
    let mut complete = Timestamp(0);
    let mut events = Vec::new();
    while let Some(chunk) = recording.next() {
        let (records, complete_before) = (records_of(&chunk, tee.as_deref()), chunk.complete_before());
        chunk.decode(&mut events);
        if let Some(tee) = &mut tee {
            tee.write(records.as_deref(), &events, complete_before);
        }
        companions.notice(&events);
        // Their events up to a time are needed before the converter advances to that time.
        if complete_before > complete {
            companions.collect(&mut events);
        }
        complete = complete.max(complete_before);
        for event in events.drain(..) {
            family.notice(&event);
            converter.push(event);
        }
        // Another run may follow, with events later than now.
        converter.advance(complete_before.min(linux::now()));
        recording.apply_feedback(&converter.take_copy_counts());
        if let Some((tap, start)) = tap {
            tap.offer(converter, start, complete_before.min(linux::now()));
        }
    }
}

/// Reports the CPU time of everything that was recorded, if it was counted. It is a sum, and has no time.
fn report_total(summary: &Summary, tee: Option<&mut PerfTee>, converter: &mut Converter) {
    let Some(cpu_time_ns) = summary.total_cpu_time_ns else { return };
    let total = Event { time: Timestamp(0), cpu: None, kind: EventKind::TotalInAll { cpu_time_ns } };
    if let Some(tee) = tee {
        tee.write(None, slice::from_ref(&total), Timestamp(0));
    }
    converter.push(total);
}

fn shell_code(ended: &io::Result<Ended>) -> u8 {
    ended.as_ref().map_or(FAILED, |ended| ended.status.shell_code())
}
