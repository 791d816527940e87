//! Messages before a recording: what the machine permits, and how to permit more.

use crate::failure::without_error_numbers;
use crate::number::{counted, grouped};
use crate::printer::Printer;
use nyquist_profile::ExtraInfo;
use nyquist_record::linux::CallGraph;
use nyquist_record::linux::backend::RecordingOutcome;
use nyquist_record::linux::perf::{self, Coverage, Notice, Trigger};
use nyquist_record::linux::ptrace;

/// Prints which rights the command will lack, before this has any effect.
pub(crate) fn print_before_start(printer: Printer, outcome: &RecordingOutcome) {
    if let Some(notice) = outcome.loses_privileges() {
        printer.warn(notice);
    }
}

/// Prints a line about the sampled data, a line about how to get more, and a line for each reduction of the
/// request.
pub(crate) fn print_outcome(printer: Printer, outcome: &RecordingOutcome) {
    match outcome {
        RecordingOutcome::Perf(outcome) => print_perf(printer, outcome),
        RecordingOutcome::Ptrace(outcome) => print_ptrace(printer, outcome),
    }
}

fn print_ptrace(printer: Printer, outcome: &ptrace::PtraceOutcome) {
    let reason = outcome.instead_of_perf.as_ref().map(|reason| format!(", as {reason}"));
    printer.say(format_args!(
        "Sampling user code, and where threads wait, at {} Hz by ptrace{}",
        outcome.rate_hz,
        without_error_numbers(reason.unwrap_or_default())
    ));
    outcome.notices.iter().for_each(|notice| printer.warn(notice));
}

fn print_perf(printer: Printer, outcome: &perf::PerfOutcome) {
    printer.say(first_line(outcome));
    if let Some(more) = what_gives_more(outcome) {
        printer.say(format_args!("hint: {more}"));
    }
    let is_shown = |notice: &&Notice| !matches!(notice, Notice::KernelNotPermitted { .. });
    outcome.notices.iter().filter(is_shown).for_each(|notice| printer.warn(notice));
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
    printer.detail(format_args!(
        "{} rings of {} kB on each of {} CPUs",
        copies(outcome),
        outcome.sample_ring_bytes / 1024,
        outcome.cpus
    ));
    if outcome.copies_outer_stacks {
        printer.detail("The kernel copies the rest of deeper stacks at each sample");
    }
}

/// The sampled data, and the missing parts.
fn first_line(outcome: &perf::PerfOutcome) -> String {
    let code = if outcome.kernel { "user and kernel code" } else { "user code" };
    let but = if misses_short_processes(outcome) {
        ", but no thread or process that lives for less than a sampling interval"
    } else {
        ""
    };
    format!("Sampling {code} at {} Hz by {}{but}", outcome.rate_hz, trigger(outcome.trigger))
}

/// Whether the command's shortest processes are not sampled, and only a privilege is missing for that.
fn misses_short_processes(outcome: &perf::PerfOutcome) -> bool {
    outcome.attached.is_none() && outcome.coverage == Coverage::Threads
}

/// The change that would permit more to be sampled.
fn what_gives_more(outcome: &perf::PerfOutcome) -> Option<String> {
    const PRIVILEGE: &str = "sudo, or `sudo nyquist setup --capabilities` once,";
    let kernel = outcome.notices.iter().find_map(|notice| match notice {
        Notice::KernelNotPermitted { paranoid, is_root } => Some((*paranoid, *is_root)),
        _ => None,
    });
    let short = misses_short_processes(outcome);
    match kernel {
        Some((_, true)) => {
            Some("root lacks CAP_PERFMON here: `--cap-add=PERFMON` gives it to a container".to_owned())
        }
        Some((paranoid, false)) => {
            let more = if short { "kernel code and such processes, too" } else { "kernel code, too" };
            let level = paranoid.map(|level| format!(" (kernel.perf_event_paranoid is {level})"));
            let level = level.unwrap_or_default();
            Some(format!(
                "{PRIVILEGE} samples {more}; `sudo nyquist setup` allows kernel code to everybody{level}"
            ))
        }
        None => short.then(|| format!("{PRIVILEGE} samples such processes, too")),
    }
}

/// How callers are found, and the cost of that.
fn copies(outcome: &perf::PerfOutcome) -> String {
    match outcome.call_graph {
        CallGraph::FramePointers => "Following frame pointers, into".to_owned(),
        CallGraph::None => "Sampling functions without their callers, into".to_owned(),
        CallGraph::Auto | CallGraph::Dwarf => {
            format!("Copying {} kB of each stack into", kb(outcome.stack_bytes))
        }
    }
}

fn kb(bytes: u32) -> u32 {
    bytes.div_ceil(1024)
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
pub(crate) fn outcome_lines(outcome: &RecordingOutcome) -> Vec<ExtraInfo> {
    let mut lines = match outcome {
        RecordingOutcome::Perf(outcome) => perf_lines(outcome),
        RecordingOutcome::Ptrace(outcome) => ptrace_lines(outcome),
    };
    let notices = outcome.loses_privileges().into_iter().chain(outcome.notices());
    lines.extend(notices.map(|notice| line("Note", notice.to_string())));
    lines
}

fn line(label: &str, value: String) -> ExtraInfo {
    ExtraInfo { section: "Recording".into(), label: label.into(), value }
}

fn ptrace_lines(outcome: &ptrace::PtraceOutcome) -> Vec<ExtraInfo> {
    vec![
        line("Event", "ptrace".to_owned()),
        line("Rate", format!("{} Hz of the wall clock", outcome.rate_hz)),
        line("Kernel code", "no (counts for the user code that called it)".to_owned()),
    ]
}

fn perf_lines(outcome: &perf::PerfOutcome) -> Vec<ExtraInfo> {
    let event = match outcome.trigger {
        Trigger::Cycles => "cycles",
        Trigger::CpuClock => "cpu-clock",
    };
    let kernel = if outcome.kernel { "yes" } else { "no (not permitted)" };
    vec![
        line("Event", event.to_owned()),
        line("Rate", format!("{} Hz", outcome.rate_hz)),
        line("Kernel code", kernel.to_owned()),
        match outcome.call_graph {
            CallGraph::FramePointers => line("Stacks", "by frame pointers".to_owned()),
            CallGraph::None => line("Stacks", "no (not requested)".to_owned()),
            CallGraph::Auto | CallGraph::Dwarf => {
                line("Stack copies", format!("{} kB", kb(outcome.stack_bytes)))
            }
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The outcome for an unprivileged user's command at `perf_event_paranoid` 2.
    fn outcome() -> perf::PerfOutcome {
        perf::PerfOutcome {
            attached: None,
            coverage: Coverage::Threads,
            trigger: Trigger::Cycles,
            rate_hz: 1000,
            kernel: false,
            call_graph: CallGraph::Auto,
            stack_bytes: 32 << 10,
            cpus: 2,
            sample_ring_bytes: 1 << 20,
            sideband_ring_bytes: None,
            switch_stacks: false,
            copies_outer_stacks: false,
            notices: vec![Notice::KernelNotPermitted { paranoid: Some(2), is_root: false }],
        }
    }

    #[test]
    fn what_is_not_sampled_is_reported_with_a_remedy() {
        let check = |outcome: &perf::PerfOutcome, line: &str, more: &[&str]| {
            let (line_text, hint) = (first_line(outcome), what_gives_more(outcome).unwrap_or_default());
            assert!(line_text.contains(line), "{line_text}");
            assert_eq!(hint.is_empty(), more.is_empty(), "{hint}");
            assert!(more.iter().all(|part| hint.contains(part)), "{more:?} are not in {hint}");
        };
        let short = "but no thread or process that lives for less than a sampling interval";
        let both = ["setup --capabilities", "kernel code and such processes", "perf_event_paranoid is 2"];
        check(&outcome(), short, &both);
        let kernel = perf::PerfOutcome { kernel: true, notices: Vec::new(), ..outcome() };
        check(&kernel, short, &["setup --capabilities", "samples such processes"]);
        let group = perf::PerfOutcome { coverage: Coverage::Group, ..kernel };
        check(&group, "user and kernel code at 1000 Hz by the CPU's cycle counter", &[]);
        let attached = perf::AttachSummary { threads: 1, processes: 1, rounds: 1, took: Duration::ZERO };
        let attached = perf::PerfOutcome { attached: Some(attached), ..outcome() };
        check(&attached, "user code at 1000 Hz", &["samples kernel code, too;"]);
        let notices = vec![Notice::KernelNotPermitted { paranoid: Some(2), is_root: true }];
        check(&perf::PerfOutcome { notices, ..outcome() }, short, &["--cap-add=PERFMON"]);
    }
}
