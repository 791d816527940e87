//! Recording on Linux: launch or attach, sample, and convert.

mod attached;
mod companions;
mod ending;
mod events;
mod failures;
mod run;
mod subject;

pub(crate) use companions::unread_waits;
pub(crate) use ending::line as signal_line;
pub(crate) use failures::{launch_failure, open_failure};
pub(crate) use run::knowing_kernel;
pub(crate) use subject::{command_of, running_target};

use crate::args::RecordArgs;
use crate::control::Control;
use crate::failure::Failure;
use crate::identity;
use crate::live_page::{LivePage, Tap};
use crate::number::counted;
use crate::printer::Printer;
use crate::record::{Course, Recorded, pid_list};
use crate::system::linux::options;
use nyquist_convert::Converter;
use nyquist_record::linux;
use nyquist_record::linux::backend::Summary;
use nyquist_record::linux::{EndReason, RecordedEvent};
use run::{Recorder, Run, Whom};
use rustix::process::{Resource, getrlimit};
use std::mem;
use std::time::{Duration, Instant};

/// What will be recorded, after the checks that need no process.
pub(crate) struct Plan<'a> {
    args: &'a RecordArgs,
    events: Vec<RecordedEvent>,
    may_look_into_others: bool,
}

impl<'a> Plan<'a> {
    /// Checks what the options ask for.
    pub(crate) fn of(args: &'a RecordArgs) -> Result<Self, Failure> {
        // Before anything is started.
        options::backend(args.backend)?;
        let may_look_into_others = linux::may_look_into_others();
        Ok(Self { args, events: events::wanted(args)?, may_look_into_others })
    }

    /// The profile's name.
    pub(crate) fn profile_name(&self) -> String {
        subject::profile_name(self.args)
    }

    /// The target of the recording, in a few words.
    pub(crate) fn target_name(&self) -> String {
        subject::target_name(self.args)
    }

    /// Records all runs of the command, or running processes.
    pub(crate) fn record(
        &self,
        (printer, control): (Printer, &Control),
        page: Option<&LivePage>,
    ) -> Result<Recorded, Failure> {
        let tap = page.map(|page| Tap::of(page.shown(), &self.args.symbols)).transpose()?;
        let recorder = Recorder {
            args: self.args,
            printer,
            control,
            user: identity::invoking_user(),
            events: &self.events,
            tap: tap.as_ref(),
        };
        let recorded = record_with(&recorder, self.may_look_into_others);
        // The page gets no snapshots after its last profile.
        if let Some(tap) = tap {
            tap.finish();
        }
        recorded
    }
}

fn record_with(recorder: &Recorder<'_>, may_look_into_others: bool) -> Result<Recorded, Failure> {
    let Recorder { args, printer, .. } = *recorder;
    let began = Instant::now();
    let asked = recorder.events.iter().filter(|recorded| !recorded.may_be_left_out());
    let names = asked.map(|recorded| recorded.event.name.clone()).collect();
    let mut kept = None;
    // The processes may end before the recording does.
    let mut command_lines = attached::command_lines(&args.target.pid);
    let Run { mut summary, mut status, mut used, mut living, not_kept } =
        recorder.run(Whom::Asked, args.duration, &mut kept)?;
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
        let (mut former, used_before) = (summary, used);
        Run { summary, status, used, living, .. } = recorder.run(Whom::Asked, left, &mut kept)?;
        used = used.zip(used_before).map(|(a, b)| a + b);
        summary.total_cpu_time_ns =
            summary.total_cpu_time_ns.zip(former.total_cpu_time_ns).map(|(a, b)| a + b);
        former.lost_privileges.retain(|notice| !summary.lost_privileges.contains(notice));
        summary.lost_privileges.append(&mut former.lost_privileges);
    }
    while let Some(left) = time_for_the_rest(args, &summary, began.elapsed()).filter(|_| !living.is_empty()) {
        let pids = pid_list(&living);
        printer.say(format_args!(
            "The command has ended, and what it left running is recorded from now on: PIDs {pids}"
        ));
        let attached = Whom::LeftRunning(mem::take(&mut living));
        match recorder.run(attached, Some(left), &mut kept) {
            Ok(run) => {
                let time = summary.total_cpu_time_ns.zip(run.summary.total_cpu_time_ns).map(|(a, b)| a + b);
                (summary.reason, summary.total_cpu_time_ns) = (run.summary.reason, time);
                summary.left_running = run.summary.left_running;
                (living, used) = (run.living, None);
            }
            Err(failure) => printer.warn(failure.message),
        }
    }
    let used = used.filter(|_| args.cpu.is_none() && !args.shape.rows.main_thread_only);
    let finished = kept.map(Converter::finish).ok_or_else(|| Failure::new("nothing was recorded"))?;
    if !args.target.is_command() {
        command_lines += &attached::command_lines_of_running(&finished.profile);
    }
    let course = Course {
        total_cpu_time_ns: summary.total_cpu_time_ns,
        left_running: summary.left_running,
        deepened_after: summary.deepened_after,
        holds: summary.holds,
        warnings: summary.lost_privileges.iter().map(ToString::to_string).collect(),
    };
    Ok(Recorded {
        finished,
        course,
        events: names,
        status,
        used,
        living,
        command_lines,
        may_look_into_others,
        not_kept,
    })
}

/// How long to record processes that the command left running, if a duration was given and the command
/// ended before it.
fn time_for_the_rest(args: &RecordArgs, summary: &Summary, taken: Duration) -> Option<Duration> {
    let is_command = args.target.is_command() && args.runs.iteration_count <= 1;
    // A recording that is kept as perf.data has one run.
    let is_asked = is_command && args.perf_data.is_none() && summary.reason == EndReason::Exited;
    let left = args.duration.filter(|_| is_asked)?.saturating_sub(taken);
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
    const LEAST: u64 = 32;
    match limit.filter(|limit| *limit < LEAST) {
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
