//! Recording on Linux: launch or attach, sample, and convert.

pub(crate) mod allocations;
mod attached;
mod companions;
pub(crate) mod event_failure;
mod events;
mod failures;
mod launch_advice;
mod markers;
pub(crate) mod options;
pub(crate) mod outcome_messages;
mod perf_tee;
mod run;
mod subject;

pub(crate) use crate::flight::SaveSignal;
pub(crate) use companions::unread_waits;
pub(crate) use events::{recorded_events, requested_names};
pub(crate) use failures::{launch_failure, open_failure};
pub(crate) use run::functions_of_waits;
pub(crate) use subject::{command_of, running_target};

use crate::args::RecordArgs;
use crate::control::Control;
use crate::delegates;
use crate::failure::Failure;
use crate::flight::FlightRecorder;
use crate::identity;
use crate::live_page::SnapshotSender;
use crate::printer::Printer;
use crate::record::ending::pid_list;
use crate::record::{RecordingResult, Run, record_runs};
use crate::spool::Spool;
use nyquist_record::linux::{self, EndReason, RecordedEvent};
use run::{Recorded, Recorder, RunTarget};
use rustix::process::{Resource, getrlimit};
use std::mem;
use std::time::{Duration, Instant};

/// What will be recorded, after the checks that need no process.
pub(crate) struct Plan<'a> {
    args: &'a RecordArgs,
    events: Vec<RecordedEvent>,
    may_read_other_processes: bool,
    /// Set if the recording is controlled while it runs.
    save_signal: Option<SaveSignal>,
}

impl<'a> Plan<'a> {
    /// Checks what the options ask for.
    pub(crate) fn of(args: &'a RecordArgs, save_signal: Option<SaveSignal>) -> Result<Self, Failure> {
        // Before anything is started.
        let starts_command = args.target.is_command() && !args.command.is_empty();
        allocations::check(args.alloc, starts_command, "nyquist record --alloc COMMAND")?;
        options::backend(args.backend)?;
        let may_read_other_processes = linux::may_read_other_processes();
        let events = recorded_events(&args.events, &args.presentation.symbols, args.rate, args.off_cpu)?;
        Ok(Self { args, events, may_read_other_processes, save_signal })
    }

    /// Records all runs of the command, or running processes.
    pub(crate) fn record(
        self,
        (printer, control): (Printer, &Control),
        snapshots: Option<&SnapshotSender>,
        spool: Option<&Spool>,
    ) -> Result<RecordingResult, Failure> {
        let (args, began) = (self.args, Instant::now());
        let events = &self.events;
        let recorder =
            Recorder { args, printer, control, user: identity::invoking_user(), events, snapshots, spool };
        let flight = self.save_signal.map(|signal| FlightRecorder::new(args, signal, printer)).transpose()?;
        let mut recorded = Recorded { converter: None, flight };
        // The processes may end before the recording does.
        let mut command_lines = attached::command_lines(&args.target.numbers(), delegates::targets());
        let record = |duration| recorder.run(RunTarget::Requested, duration, &mut recorded);
        let mut runs = record_runs(args, printer, record)?;
        record_the_rest(&recorder, began, &mut runs, &mut recorded);
        if let (Some(spool), Some(converter)) = (spool, &recorded.converter) {
            spool.offer_rest(converter, linux::now());
        }
        let finished = recorded.finish().ok_or_else(|| Failure::new("nothing was recorded"))?;
        if !args.target.is_command() {
            command_lines += &attached::command_lines_of_running(&finished.profile, delegates::targets());
        }
        let events = requested_names(events).collect();
        let may_read_other_processes = self.may_read_other_processes;
        Ok(RecordingResult { finished, runs, events, command_lines, may_read_other_processes })
    }
}

/// Records the processes that the command left running, if a duration was given that is not over.
fn record_the_rest(recorder: &Recorder<'_>, began: Instant, runs: &mut Run, recorded: &mut Recorded) {
    let Recorder { args, printer, .. } = *recorder;
    while let Some(left) = time_for_the_rest(args, runs, began.elapsed()).filter(|_| !runs.live.is_empty()) {
        let pids = pid_list(&runs.live);
        printer.say(format_args!(
            "The command has ended; the processes that it left running are recorded from now on: PIDs {pids}"
        ));
        let attached = RunTarget::LeftRunning(mem::take(&mut runs.live));
        match recorder.run(attached, Some(left), recorded) {
            Ok(run) => {
                let times = runs.report.total_cpu_time_ns.zip(run.report.total_cpu_time_ns);
                runs.report.total_cpu_time_ns = times.map(|(a, b)| a + b);
                runs.report.left_running = run.report.left_running;
                (runs.reason, runs.live, runs.used) = (run.reason, run.live, None);
            }
            Err(failure) => printer.warn(failure.message),
        }
    }
}

/// How long to record processes that the command left running, if a duration was given and the command
/// ended before it.
fn time_for_the_rest(args: &RecordArgs, runs: &Run, taken: Duration) -> Option<Duration> {
    let is_command = args.target.is_command() && args.runs.iteration_count <= 1;
    // A recording that is kept as perf.data has one run.
    let is_requested = is_command && args.perf_data.is_none() && runs.reason == EndReason::Exited;
    let left = args.duration.filter(|_| is_requested)?.saturating_sub(taken);
    (!left.is_zero()).then_some(left)
}

/// Fails if a limit of this process is too low for recording.
pub(crate) fn check_limits() -> Result<(), Failure> {
    check_descriptors(getrlimit(Resource::Nofile).maximum)
}

/// Fails if the hard limit of open files is too low for recording. Otherwise later failures would have
/// misleading messages.
fn check_descriptors(limit: Option<u64>) -> Result<(), Failure> {
    /// Enough for one thread on two CPUs, and the files of its program.
    const MIN_DESCRIPTORS: u64 = 32;
    match limit.filter(|limit| *limit < MIN_DESCRIPTORS) {
        Some(limit) => Err(Failure::new(format!(
            "only {limit} files may be open at once here, which is too few to record anything"
        ))
        .hint("raise the limit (`ulimit -n 1024`)")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_descriptors_are_given_as_the_reason() {
        let failure = check_descriptors(Some(12)).unwrap_err();
        assert!(
            failure.message.contains("12 files") && failure.hints[0].contains("ulimit -n"),
            "{failure:?}"
        );
        assert!(check_descriptors(Some(256)).is_ok() && check_descriptors(None).is_ok());
    }
}
