//! One run of a recording, from its first event to its last.

use super::companions::Companions;
use super::failures::{launch_failure, open_failure};
use super::subject::{ancestors, open_backend, prepare, requested_samples, running_target};
use crate::args::RecordArgs;
use crate::control::{Control, Phase};
use crate::delegates;
use crate::failure::Failure;
use crate::flight::FlightRecorder;
use crate::live_page::SnapshotSender;
use crate::memory;
use crate::output::Output;
use crate::printer::Printer;
use crate::record::drive::{ChunkSink, drive};
use crate::record::linux::options::with_stacks;
use crate::record::linux::perf_tee::{PerfTee, RecordingFacts};
use crate::record::linux::{markers, outcome_messages};
use crate::record::{
    Feed, LaunchedCommand, Run, RunReport, describe, end_of, enter_recording, program_name, say_how_it_ends,
    total_event,
};
use crate::spool::Spool;
use bytes::Bytes;
use nyquist_convert::event::{Event, Pid, Timestamp};
use nyquist_convert::{ConversionResult, Converter, Options, Shape};
use nyquist_profile::Meta;
use nyquist_record::linux::allocations::AllocationReader;
use nyquist_record::linux::backend::{Backend, RecordingOutcome, RecordingSummary};
use nyquist_record::linux::launch::SuspendedChild;
use nyquist_record::linux::markers::MarkerReader;
use nyquist_record::linux::{self, Credentials, RecordedEvent, RecordingTarget};
use nyquist_symbols::KernelSymbols;
use std::slice;
use std::time::Duration;

/// The interval of passing on samples while a page is open.
const HAND_OVER_EVERY: Duration = Duration::from_millis(100);

/// The interval of passing on samples that are kept on disk.
const SPOOL_EVERY: Duration = Duration::from_millis(500);

/// The common parts of all runs of a recording.
pub(super) struct Recorder<'a> {
    pub(super) args: &'a RecordArgs,
    pub(super) printer: Printer,
    pub(super) control: &'a Control,
    /// The user that the command runs as, if it is another one.
    pub(super) user: Option<&'a Credentials>,
    /// The events that are recorded in addition to the samples.
    pub(super) events: &'a [RecordedEvent],
    /// The receiver of snapshots, if a page shows them.
    pub(super) snapshots: Option<&'a SnapshotSender>,
    /// The recording on disk, if it is kept there.
    pub(super) spool: Option<&'a Spool>,
}

/// What all runs of a recording have made so far, and what controls it while it runs.
pub(super) struct Recorded {
    /// Made by the first run.
    pub(super) converter: Option<Converter>,
    pub(super) flight: Option<FlightRecorder>,
}

impl Recorded {
    /// The profile; `None` if there was no run.
    pub(super) fn finish(self) -> Option<ConversionResult> {
        let converter = self.converter?;
        Some(match self.flight {
            Some(flight) => flight.finish(converter),
            None => converter.finish(),
        })
    }
}

/// The processes of a run.
pub(super) enum RunTarget {
    /// The processes that the options name.
    Requested,
    /// Processes that a previous run left running.
    LeftRunning(Vec<u32>),
}

/// The processes that will be recorded.
struct RunProcesses {
    /// The command, if there is one, suspended before its start.
    child: Option<SuspendedChild>,
    /// The reader of its allocations, if they are recorded.
    allocations: Option<AllocationReader>,
    target: RecordingTarget,
}

/// A run before its command starts.
struct PreparedRun {
    processes: RunProcesses,
    markers: Option<MarkerReader>,
    /// The file of the option `--perf-data`.
    perf_data: Option<Output>,
    backend: Backend,
    outcome: RecordingOutcome,
    meta: Meta,
    /// The beginning of the profile.
    start: Timestamp,
}

/// A run whose recording has ended.
struct EndedRecording {
    command: Option<LaunchedCommand>,
    companions: Companions,
    tee: Option<PerfTee>,
    summary: RecordingSummary,
    /// The processes that still run.
    live: Vec<u32>,
    meta: Meta,
    start: Timestamp,
    /// When the command was started.
    began: Timestamp,
}

/// The kernel's functions, if they are needed to determine what threads wait for.
pub(crate) fn functions_of_waits(outcome: &RecordingOutcome) -> Option<KernelSymbols> {
    match outcome {
        RecordingOutcome::Perf(outcome) if outcome.switch_stacks => KernelSymbols::running_functions().ok(),
        _ => None,
    }
}

impl Recorder<'_> {
    /// Records one run into the converter of the runs before it, if there are any.
    pub(super) fn run(
        &self,
        target: RunTarget,
        duration: Option<Duration>,
        recorded: &mut Recorded,
    ) -> Result<Run, Failure> {
        let prepared = self.prepare(target, duration)?;
        let Recorded { converter, flight } = recorded;
        let is_first = converter.is_none();
        let converter = converter.get_or_insert_with(|| Converter::new(self.converter_options(&prepared)));
        let ended = self.record(prepared, (converter, flight.as_mut()), is_first)?;
        Ok(self.finish(ended, converter, duration))
    }

    /// Suspends the command before its start, and opens the events of the processes.
    fn prepare(&self, target: RunTarget, duration: Option<Duration>) -> Result<PreparedRun, Failure> {
        let launches = matches!(target, RunTarget::Requested) && !self.args.command.is_empty();
        let (running, listens_to) = self.running(target)?;
        let budget = memory::side_files(self.args.presentation.symbols.max_memory);
        let markers = markers::listen(listens_to, self.user, &budget, self.printer);
        let processes = self.subject(running, launches, markers.as_ref())?;
        let perf_data = self.args.perf_data.as_deref().map(PerfTee::open).transpose()?;
        let backend = self.open(processes.target.clone(), processes.child.as_ref(), duration)?;
        let outcome = backend.outcome();
        let (meta, start) = (self.meta(&outcome), linux::now());
        Ok(PreparedRun { processes, markers, perf_data, backend, outcome, meta, start })
    }

    /// Starts the command, and records until the run ends. Messages are printed in the first run only.
    fn record(
        &self,
        prepared: PreparedRun,
        (converter, mut flight): (&mut Converter, Option<&mut FlightRecorder>),
        is_first: bool,
    ) -> Result<EndedRecording, Failure> {
        let PreparedRun { processes, markers, perf_data, backend, outcome, meta, start } = prepared;
        let RunProcesses { child, allocations, target } = processes;
        let requested = requested_samples(&self.args.target, &backend);
        converter.keep_only(requested.clone());
        let mut companions = self.companions((markers, allocations), &outcome);
        let mut recording = backend.record().map_err(|error| open_failure(&error))?;
        let mut tee = perf_data.map(|output| PerfTee::begin(output, &recording, requested)).transpose()?;
        if is_first {
            outcome_messages::print_before_start(self.printer, &outcome);
        }
        let began = linux::now();
        let command = child.map(|child| self.start(child, &target, &outcome)).transpose()?;
        // From here on, the child runs the command.
        if !self.args.no_counters {
            companions.count(&target, self.printer);
        }
        if is_first {
            outcome_messages::print_outcome(self.printer, &outcome);
        }
        enter_recording(self.control, recording.stop_handle(), command.as_ref());
        if is_first {
            say_how_it_ends(self.args, self.printer);
        }
        if let Some(flight) = &mut flight {
            flight.begin(recording.pause_handle(), start, converter);
        }
        let snapshots = self.snapshots.map(|snapshots| (snapshots, start));
        let feed = Feed::new(converter, snapshots).with_spool(self.spool);
        let mut sink =
            RunSink { feed, companions: &mut companions, tee: tee.as_mut(), flight, complete: Timestamp(0) };
        drive(&mut recording, &mut sink);
        let family = sink.feed.family;
        let summary = recording.finish();
        let live = if summary.left_running { family.live(&ancestors(&target)) } else { Vec::new() };
        Ok(EndedRecording { command, companions, tee, summary, live, meta, start, began })
    }

    /// Adds what is known only at the end, and ends what was recorded besides.
    fn finish(&self, ended: EndedRecording, converter: &mut Converter, duration: Option<Duration>) -> Run {
        let EndedRecording { mut companions, mut tee, summary, meta, start, live, .. } = ended;
        companions.finish_counters(converter);
        if self.args.flight.last.is_none() {
            push_total(&summary, tee.as_mut(), converter);
        }
        if let Some(end) = end_of(summary.reason, (ended.began, duration), self.control) {
            converter.note_end(end);
        }
        let about = || RecordingFacts { meta: &meta, start, build_ids: converter.build_ids() };
        let not_kept = tee.and_then(|tee| tee.finish(&about(), self.printer).err());
        let exit = ended.command.map(|command| command.finish(summary.reason, self.printer));
        let (status, used) = exit.unwrap_or((0, None));
        self.control.enter(Phase::Saving);
        companions.finish(converter, self.printer);
        Run { report: report_of(&summary, self.events), reason: summary.reason, status, used, live, not_kept }
    }

    /// The companions of the run, which take notice from now on.
    fn companions(
        &self,
        (mut markers, allocations): (Option<MarkerReader>, Option<AllocationReader>),
        outcome: &RecordingOutcome,
    ) -> Companions {
        if let Some(markers) = &mut markers {
            markers.begin_at(linux::now());
        }
        let mut companions = Companions::new(markers, allocations);
        if self.args.off_cpu {
            companions.watch_waits(outcome, self.printer);
        }
        companions
    }

    /// The running processes, if some are recorded, and the one of them that may have markers.
    fn running(&self, target: RunTarget) -> Result<(Option<RecordingTarget>, Option<u32>), Failure> {
        match target {
            RunTarget::Requested => {
                let target = &self.args.target;
                Ok((running_target(target)?, target.pid.first().copied()))
            }
            RunTarget::LeftRunning(pids) => {
                let first = pids.first().copied();
                Ok((Some(RecordingTarget::Attach(pids.into_iter().map(Pid).collect())), first))
            }
        }
    }

    fn start(
        &self,
        child: SuspendedChild,
        target: &RecordingTarget,
        outcome: &RecordingOutcome,
    ) -> Result<LaunchedCommand, Failure> {
        let running = if outcome.command_inherits_events() {
            child.start_with_inherited_events()
        } else {
            child.start()
        };
        let running = running.map_err(|error| launch_failure(&error))?;
        Ok(LaunchedCommand::new(
            running,
            program_name(self.args),
            matches!(target, RecordingTarget::Child(_)),
        ))
    }

    fn subject(
        &self,
        running: Option<RecordingTarget>,
        launches: bool,
        markers: Option<&MarkerReader>,
    ) -> Result<RunProcesses, Failure> {
        if !launches && let Some(target) = running {
            return Ok(RunProcesses { child: None, allocations: None, target });
        }
        // The markers of a command that is not recorded have no thread.
        let markers = markers.filter(|_| matches!(running, None | Some(RecordingTarget::System)));
        let (child, allocations) = prepare(self.args, self.user, markers, self.printer)?;
        let target = running.unwrap_or(RecordingTarget::Child(child.pid()));
        Ok(RunProcesses { child: Some(child), allocations, target })
    }

    fn open(
        &self,
        target: RecordingTarget,
        child: Option<&SuspendedChild>,
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
                hand_over_every: self.hand_over_every(),
                hand_over_lazily: !self.is_looked_at(),
                starts_paused: args.flight.begins_paused(),
                ..linux::Options::default()
            },
        )?;
        let loses_privileges = child.and_then(SuspendedChild::loses_privileges);
        let backend = open_backend(args, target, &options, loses_privileges.as_ref())?;
        if matches!(backend, Backend::Ptrace(_)) {
            self.warn_of_rows_without_cpus();
        }
        Ok(backend)
    }

    /// Whether something looks at the recording while it runs.
    fn is_looked_at(&self) -> bool {
        self.snapshots.is_some() || self.args.flight.is_controlled()
    }

    /// How often samples are passed on, if something needs them soon.
    fn hand_over_every(&self) -> Option<Duration> {
        self.is_looked_at().then_some(HAND_OVER_EVERY).or(self.spool.map(|_| SPOOL_EVERY))
    }

    /// Warns about requested rows and markers that need the CPU on which a thread ran.
    fn warn_of_rows_without_cpus(&self) {
        let rows = self.args.shape.rows;
        let requested =
            [(rows.cswitch_markers, "--cswitch-markers"), (rows.per_cpu_threads, "--per-cpu-threads")];
        for (_, option) in requested.into_iter().filter(|(is_requested, _)| *is_requested) {
            let text = "has no effect under ptrace, which does not report the CPU of a thread";
            self.printer.warn(format_args!("{option} {text}"));
        }
    }

    fn converter_options(&self, prepared: &PreparedRun) -> Options {
        let PreparedRun { outcome, meta, start, .. } = prepared;
        // With ptrace, samples themselves record how long their threads have waited.
        let waits = self.args.off_cpu && matches!(outcome, RecordingOutcome::Perf(_));
        let shape: Shape = self.args.shape.into();
        // Rows of threads that have ended would add up.
        let reuse_threads = shape.reuse_threads || self.args.flight.last.is_some();
        let options = Options {
            kernel_permitted: outcome.samples_all_cpu_time(),
            shape: Shape { waits, reuse_threads, ..shape },
            distinctive_words: true,
            unlink_jitdumps: self.args.shape.unlink_aux_files,
            process_memory: memory::of_processes(self.args.presentation.symbols.max_memory),
            side_files: memory::side_files(self.args.presentation.symbols.max_memory),
            kernel_symbols: functions_of_waits(outcome),
            targets: delegates::targets().clone(),
            ..Options::new(*start, meta.clone())
        };
        if outcome.counts_cycles() { options.of_cycles() } else { options }
    }

    fn meta(&self, outcome: &RecordingOutcome) -> Meta {
        let interval_ns = 1_000_000_000 / u64::from(outcome.rate_hz().max(1));
        describe(self.args, interval_ns, outcome_messages::outcome_lines(outcome))
    }
}

/// Converts the events of a run, and keeps them if they are requested as perf.data.
struct RunSink<'a> {
    feed: Feed<'a>,
    companions: &'a mut Companions,
    tee: Option<&'a mut PerfTee>,
    flight: Option<&'a mut FlightRecorder>,
    /// The time before which all events were taken.
    complete: Timestamp,
}

impl ChunkSink for RunSink<'_> {
    fn wants_records(&self) -> bool {
        self.tee.is_some()
    }

    fn take(&mut self, events: &mut Vec<Event>, records: Option<Bytes>, complete_before: Timestamp) {
        if let Some(tee) = &mut self.tee {
            tee.write(records.as_deref(), events, complete_before);
        }
        self.companions.notice(events);
        // Their events up to a time are needed before the converter advances to that time.
        if complete_before > self.complete {
            self.companions.collect(events);
        }
        self.complete = self.complete.max(complete_before);
        if let Some(flight) = &mut self.flight {
            flight.notice(events);
        }
        self.feed.take(events, None, complete_before);
    }

    fn with_converter(&mut self, call: impl FnOnce(&mut Converter)) {
        self.feed.with_converter(call);
    }

    fn show(&mut self, complete_before: Timestamp) {
        self.feed.show(complete_before);
        if let Some(flight) = &mut self.flight {
            flight.attend(self.feed.converter, complete_before.min(linux::now()));
        }
    }
}

/// Adds the CPU time of everything that was recorded, if it was counted.
fn push_total(summary: &RecordingSummary, tee: Option<&mut PerfTee>, converter: &mut Converter) {
    let Some(total) = total_event(summary.total_cpu_time_ns) else { return };
    if let Some(tee) = tee {
        tee.write(None, slice::from_ref(&total), Timestamp(0));
    }
    converter.push(total);
}

/// How a run went.
fn report_of(summary: &RecordingSummary, events: &[RecordedEvent]) -> RunReport {
    let named = |(event, count): (&usize, &u64)| Some((events.get(*event)?.event.name.clone(), *count));
    RunReport {
        total_cpu_time_ns: summary.total_cpu_time_ns,
        left_running: summary.left_running,
        holds: summary.holds,
        warnings: summary.lost_privileges.iter().map(ToString::to_string).collect(),
        event_counts: summary.event_counts.iter().filter_map(named).collect(),
    }
}
