//! What is said of a recording: what the machine allows before it, and what came of it after it.

use crate::number::{counted, grouped};
use crate::printer::Printer;
use nyquist_convert::Statistics;
use nyquist_profile::{ExtraInfo, Profile, StackId, well_known};
use nyquist_record::linux::perf::{Coverage, Outcome, Summary, Trigger};
use std::path::Path;

/// Says in one line what is sampled, and in one each what is less than was asked for.
pub(crate) fn print_outcome(printer: Printer, outcome: &Outcome) {
    let code = if outcome.kernel { "user and kernel code" } else { "user code" };
    printer.say(format_args!("Sampling {code} at {} Hz by {}", outcome.rate_hz, trigger(outcome.trigger)));
    printer.detail(coverage(outcome.coverage));
    if let Some(attached) = outcome.attached {
        printer.detail(format_args!(
            "Attached to {} of {} process{} in {:.1} ms, without stopping them",
            counted(attached.threads as u64, "thread"),
            grouped(attached.processes as u64),
            if attached.processes == 1 { "" } else { "es" },
            attached.took.as_secs_f64() * 1000.0
        ));
    }
    for notice in &outcome.notices {
        printer.warn(notice);
    }
    printer.detail(format_args!(
        "Copying {} kB of each stack into rings of {} kB on each of {} CPUs",
        outcome.stack_bytes.div_ceil(1024),
        outcome.sample_ring_bytes / 1024,
        outcome.cpus
    ));
}

fn coverage(coverage: Coverage) -> &'static str {
    match coverage {
        Coverage::Threads => {
            "Each thread has its own clock: one that lives for less than an interval is not sampled"
        }
        Coverage::Group => "The clocks are those of a control group: its shortest processes are sampled, too",
        Coverage::Cpus => "The clocks are those of the CPUs",
    }
}

fn trigger(trigger: Trigger) -> &'static str {
    match trigger {
        Trigger::Cycles => "the CPU's cycle counter",
        Trigger::CpuClock => "the CPU clock (there is no cycle counter here)",
    }
}

/// The lines of the profile's information panel about the recording.
pub(crate) fn outcome_lines(outcome: &Outcome) -> Vec<ExtraInfo> {
    let line =
        |label: &str, value: String| ExtraInfo { section: "Recording".into(), label: label.into(), value };
    let event = match outcome.trigger {
        Trigger::Cycles => "cycles",
        Trigger::CpuClock => "cpu-clock",
    };
    let kernel = if outcome.kernel { "yes" } else { "no (not permitted)" };
    let mut lines = vec![
        line("Event", event.to_owned()),
        line("Rate", format!("{} Hz", outcome.rate_hz)),
        line("Kernel code", kernel.to_owned()),
        line("Stack copies", format!("{} kB", outcome.stack_bytes.div_ceil(1024))),
    ];
    lines.extend(outcome.notices.iter().map(|notice| line("Note", notice.to_string())));
    lines
}

/// What the samples stand for whose stacks are wanted, in nanoseconds of CPU time.
fn time_of(profile: &Profile, is_wanted: impl Fn(Option<StackId>) -> bool) -> u64 {
    let samples = profile.threads().iter().flat_map(|thread| &thread.samples);
    let on_cpu = samples.filter(|sample| !sample.off_cpu && is_wanted(sample.stack));
    on_cpu.map(|sample| u64::from(sample.weight)).sum::<u64>() * profile.meta().interval
}

/// Whether a stack stands for time of which there is no sample.
fn is_not_sampled(profile: &Profile, stack: StackId) -> bool {
    profile
        .stack_frames(stack)
        .next()
        .is_some_and(|frame| profile.func_name(frame.func) == well_known::NOT_SAMPLED)
}

/// Says what came of a recording.
pub(crate) fn print(
    printer: Printer,
    profile: &Profile,
    summary: &Summary,
    statistics: &Statistics,
    saved: Option<&Path>,
) {
    let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
    let duration = seconds(profile.meta().profiling_end.unwrap_or_default());
    let cpu_time = summary.total_cpu_time_ns.unwrap_or_else(|| time_of(profile, |_| true));
    printer.say(format_args!(
        "Recorded {duration:.2} s with {:.2} s of CPU time: {}",
        seconds(cpu_time),
        counted(statistics.samples, "sample")
    ));
    if summary.left_running {
        printer.say("Processes that were started in the recording run on, and are no longer recorded");
    }
    if statistics.lost > 0 {
        let lost = counted(statistics.lost, "record");
        printer.warn(format_args!(
            "the kernel dropped {lost}, samples among them: a lower rate (-r) loses fewer"
        ));
    }
    if statistics.throttled > 0 {
        let times = counted(statistics.throttled, "time");
        printer.warn(format_args!("the kernel paused sampling {times}"));
    }
    if statistics.truncated > 0 {
        let verb =
            if statistics.truncated == 1 { "does not reach its root" } else { "do not reach their roots" };
        printer.say(format_args!("{} {verb}", counted(statistics.truncated, "stack")));
    }
    let not_sampled = time_of(profile, |stack| stack.is_some_and(|stack| is_not_sampled(profile, stack)));
    // Less than a hundredth is the last interval of some threads.
    if not_sampled * 100 > cpu_time {
        printer.say(format_args!(
            "{:.2} s of it was not sampled: used by threads that ended or slept before a sample came",
            seconds(not_sampled)
        ));
    }
    if statistics.samples == 0 {
        printer.say("Nothing was sampled: it used less CPU time than a sampling interval, or gained privileges that it keeps from you (setuid)");
    }
    if let Some(path) = saved {
        printer.say(format_args!("Saved {}", path.display()));
    }
}
