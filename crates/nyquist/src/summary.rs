//! What is said of a recording: what the machine allows before it, and what came of it after it.

use crate::ending::Ending;
use crate::failure::without_error_numbers;
use crate::number::{counted, grouped};
use crate::own_code;
use crate::printer::{self, Printer};
use crate::report::shares;
use crate::scale::Scale;
use crate::text::{Names, cut_name};
use crate::unnamed;
use nyquist_analysis::{Function, Index, Selection, View};
use nyquist_convert::Statistics;
use nyquist_profile::{ExtraInfo, Profile, StackId, well_known};
use nyquist_record::linux::backend::{Outcome, Summary};
use nyquist_record::linux::perf::{self, Coverage, Notice, Trigger};
use nyquist_record::linux::ptrace::{self, HoldSummary};
use nyquist_record::linux::{CallGraph, Threads};
use std::cmp::Reverse;
use std::path::Path;

/// Says what the command will not have, as long as nothing has happened for want of it.
pub(crate) fn print_before_start(printer: Printer, outcome: &Outcome) {
    if let Some(notice) = outcome.loses_privileges() {
        printer.warn(notice);
    }
}

/// Says in one line what is sampled, in a second one what would give more, and in one each what is less than was asked for.
pub(crate) fn print_outcome(printer: Printer, outcome: &Outcome) {
    match outcome {
        Outcome::Perf(outcome) => print_perf(printer, outcome),
        Outcome::Ptrace(outcome) => print_ptrace(printer, outcome),
    }
}

fn print_ptrace(printer: Printer, outcome: &ptrace::Outcome) {
    let reason = outcome.instead_of_perf.as_ref().map(|reason| format!(", as {reason}"));
    printer.say(format_args!(
        "Sampling user code, and where threads wait, at {} Hz by ptrace{}",
        outcome.rate_hz,
        without_error_numbers(reason.unwrap_or_default())
    ));
    outcome.notices.iter().for_each(|notice| printer.warn(notice));
}

fn print_perf(printer: Printer, outcome: &perf::Outcome) {
    printer.say(first_line(outcome));
    if let Some(more) = what_gives_more(outcome) {
        printer.say(format_args!("hint: {more}"));
    }
    let told = |notice: &&Notice| !matches!(notice, Notice::KernelNotPermitted { .. });
    outcome.notices.iter().filter(told).for_each(|notice| printer.warn(notice));
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
    let Threads { readers, walkers } = outcome.threads;
    if readers > 1 || walkers > 0 {
        let readers = counted(readers as u64, "thread");
        printer.detail(format_args!("Reading them by {readers}, and walking stacks by {walkers} beside one"));
    }
}

/// What is sampled, and what of it is not.
fn first_line(outcome: &perf::Outcome) -> String {
    let code = if outcome.kernel { "user and kernel code" } else { "user code" };
    let but = if misses_short_processes(outcome) {
        ", but no process that lives for less than a sampling interval"
    } else {
        ""
    };
    format!("Sampling {code} at {} Hz by {}{but}", outcome.rate_hz, trigger(outcome.trigger))
}

/// Whether the command's shortest processes are not sampled, which takes no more than a privilege.
fn misses_short_processes(outcome: &perf::Outcome) -> bool {
    outcome.attached.is_none() && outcome.coverage == Coverage::Threads
}

/// What would let more be sampled than is.
fn what_gives_more(outcome: &perf::Outcome) -> Option<String> {
    const PRIVILEGE: &str = "sudo, or `sudo nyquist setup --capabilities` once,";
    let kernel = outcome.notices.iter().find_map(|notice| match notice {
        Notice::KernelNotPermitted { paranoid, is_root } => Some((*paranoid, *is_root)),
        _ => None,
    });
    let short = misses_short_processes(outcome);
    match kernel {
        Some((_, true)) => Some(
            "root lacks a privilege here (CAP_PERFMON), which `--cap-add=PERFMON` gives to a container"
                .to_owned(),
        ),
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

/// How the callers are found, and where that goes.
fn copies(outcome: &perf::Outcome) -> String {
    match outcome.call_graph {
        CallGraph::FramePointers => "Following frame pointers, into".to_owned(),
        CallGraph::None => "Sampling functions without their callers, into".to_owned(),
        CallGraph::Auto | CallGraph::Dwarf => {
            let deep = outcome.deep_stack_bytes.map(|deep| format!(" (up to {} kB if need be)", kb(deep)));
            format!("Copying {} kB of each stack{} into", kb(outcome.stack_bytes), deep.unwrap_or_default())
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
pub(crate) fn outcome_lines(outcome: &Outcome) -> Vec<ExtraInfo> {
    let mut lines = match outcome {
        Outcome::Perf(outcome) => perf_lines(outcome),
        Outcome::Ptrace(outcome) => ptrace_lines(outcome),
    };
    let notices = outcome.loses_privileges().into_iter().chain(outcome.notices());
    lines.extend(notices.map(|notice| line("Note", notice.to_string())));
    lines
}

fn line(label: &str, value: String) -> ExtraInfo {
    ExtraInfo { section: "Recording".into(), label: label.into(), value }
}

fn ptrace_lines(outcome: &ptrace::Outcome) -> Vec<ExtraInfo> {
    vec![
        line("Event", "ptrace".to_owned()),
        line("Rate", format!("{} Hz of the wall clock", outcome.rate_hz)),
        line("Kernel code", "no (counts for the user code that called it)".to_owned()),
    ]
}

fn perf_lines(outcome: &perf::Outcome) -> Vec<ExtraInfo> {
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
            CallGraph::None => line("Stacks", "no (not asked for)".to_owned()),
            CallGraph::Auto | CallGraph::Dwarf => line("Stack copies", copy_sizes(outcome)),
        },
    ]
}

fn copy_sizes(outcome: &perf::Outcome) -> String {
    let first = kb(outcome.stack_bytes);
    match outcome.deep_stack_bytes {
        Some(deep) => format!("{first} kB, {} kB where many stacks are deeper", kb(deep)),
        None => format!("{first} kB"),
    }
}

/// Says for how long threads were held.
fn print_holds(printer: Printer, holds: &HoldSummary, duration: f64) {
    let HoldSummary { count, total_ns, median_us, percentile_99_us, budget } = holds;
    let (total, rate) = (*total_ns as f64 / 1e6, *count as f64 / duration.max(1e-9));
    printer.detail(format_args!(
        "Held running threads {count} times ({rate:.0} a second), {total:.1} ms in all: median {median_us} µs, 99th percentile {percentile_99_us} µs"
    ));
    let [spent, allowed] = [budget.spent_ns, budget.allowed_ns].map(|ns| ns as f64 / 1e6);
    let cut = match budget.cut_rounds {
        0 => String::new(),
        rounds => format!(", and were cut short in {}: the rate was lower", counted(rounds, "round")),
    };
    printer.detail(format_args!("Looks used {spent:.1} of the {allowed:.1} ms that they may take{cut}"));
    if budget.excused_ns > 0 {
        let excused = budget.excused_ns as f64 / 1e6;
        printer.detail(format_args!(
            "Besides, {excused:.1} ms of single holds were drawn out by a busy machine"
        ));
    }
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

/// The recording that the summary is of.
pub(crate) struct Recorded<'a> {
    /// The profile.
    pub(crate) profile: &'a Profile,
    /// What was recorded, by its name.
    pub(crate) program: &'a str,
    /// The command lines of processes that were attached to.
    pub(crate) command_lines: &'a str,
    /// Whether the recorder could look into all processes. This process may have given up the right to since.
    pub(crate) may_look_into_others: bool,
}

/// Says what came of a recording.
pub(crate) fn print(
    printer: Printer,
    recorded: &Recorded<'_>,
    summary: &Summary,
    statistics: &Statistics,
    ending: &Ending<'_>,
    saved: Option<&Path>,
) {
    if printer.is_silent() {
        return;
    }
    let &Recorded { profile, program, command_lines, may_look_into_others } = recorded;
    let duration = seconds(profile.meta().profiling_end.unwrap_or_default());
    let index = Index::new(profile);
    let view = View::new(&index, &Selection::default());
    let (functions, scale) = (view.functions().functions, Scale::of(&view));
    let cpu_time = summary.total_cpu_time_ns.unwrap_or_else(|| time_of(profile, |_| true));
    printer.say(format_args!(
        "Recorded {duration:.2} s with {:.2} s of CPU time{}: {}",
        seconds(cpu_time),
        shares_in_brackets(&view),
        counted(statistics.samples, "sample")
    ));
    print_way(printer, summary, ending, duration);
    print_losses(printer, statistics);
    print_stacks(printer, statistics, may_look_into_others, &functions, scale);
    print_not_sampled(printer, profile, statistics, cpu_time);
    print_missing(printer, profile.meta().interval, statistics, ending, cpu_time);
    let hottest = hottest(&functions, scale);
    if !hottest.is_empty() {
        printer.say(format_args!("Most time is in {hottest}"));
    }
    let own = own_code::hottest(&functions, program, scale, name_width());
    if !own.is_empty() {
        printer.say(format_args!("Of its own code, with what it calls: {own}"));
    }
    for hint in unnamed::hints(profile, command_lines, &functions, scale) {
        printer.say(hint);
    }
    if let Some(path) = saved {
        printer.say(format_args!("Saved {}", path.display()));
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// Says how the recording went on.
fn print_way(printer: Printer, summary: &Summary, ending: &Ending<'_>, duration: f64) {
    if let Some(holds) = &summary.holds {
        print_holds(printer, holds, duration);
    }
    if let Some(after) = summary.deepened_after {
        printer.detail(format_args!(
            "More of each stack was copied from {:.2} s on: many were deeper",
            after.as_secs_f64()
        ));
    }
    for notice in &summary.lost_privileges {
        printer.warn(notice);
    }
    if summary.left_running {
        printer.say(ending.line());
    }
}

/// Says what the kernel dropped or did not sample.
fn print_losses(printer: Printer, statistics: &Statistics) {
    if statistics.lost > 0 {
        let lost = counted(statistics.lost, "record");
        printer.warn(format_args!("{lost} were dropped, samples among them: a lower rate (-r) loses fewer"));
    }
    if statistics.throttled > 0 {
        let times = counted(statistics.throttled, "time");
        printer.warn(format_args!("the kernel paused sampling {times}"));
    }
}

/// Says how many stacks were completed, and how many have no root, for these reasons.
fn print_stacks(
    printer: Printer,
    statistics: &Statistics,
    may_look_into_others: bool,
    functions: &[Function<'_>],
    scale: Scale,
) {
    if statistics.completed > 0 {
        let stacks = counted(statistics.completed, "stack");
        printer.say(format_args!(
            "{stacks} reached beyond the copy: completed from the running program's memory"
        ));
        print_incomplete(printer, statistics);
    }
    if statistics.truncated > 0 {
        let verb =
            if statistics.truncated == 1 { "does not reach its root" } else { "do not reach their roots" };
        let stacks = counted(statistics.truncated, "stack");
        printer.say(format_args!("{stacks} {verb}{}", reasons(functions, scale)));
        if functions.iter().any(lacks_mappings) {
            printer.say(why_mappings_are_unknown(may_look_into_others));
        }
    }
}

/// Why the mappings of some processes were never told: whoever may look into all processes only comes too late for some.
fn why_mappings_are_unknown(may_look_into_others: bool) -> &'static str {
    if may_look_into_others {
        "The mappings of some processes could not be read, as they had ended: their stacks have no roots and names"
    } else {
        "The mappings of other users' processes may not be read: sudo, or CAP_SYS_PTRACE, gives their stacks roots and names"
    }
}

/// Says how much of the CPU time there is no sample of.
fn print_not_sampled(printer: Printer, profile: &Profile, statistics: &Statistics, cpu_time: u64) {
    let not_sampled = time_of(profile, |stack| stack.is_some_and(|stack| is_not_sampled(profile, stack)));
    // Less than a hundredth is the last interval of some threads.
    if not_sampled * 100 > cpu_time && not_sampled >= LEAST_TOLD_NS {
        let lost = if statistics.lost > 0 { ", or whose samples were dropped" } else { "" };
        printer.say(format_args!(
            "{:.2} s of it was not sampled: used by threads that ended or slept before a sample came{lost}",
            seconds(not_sampled)
        ));
    }
}

/// Says how much CPU time of the command's is not in the profile, and why.
fn print_missing(
    printer: Printer,
    interval: u64,
    statistics: &Statistics,
    ending: &Ending<'_>,
    cpu_time: u64,
) {
    if let Some(missing) = ending.used.and_then(|used| missing(used.as_nanos() as u64, cpu_time)) {
        let why = if statistics.lost > 0 {
            "records were dropped"
        } else {
            "used by processes that may not be recorded (setuid), or that have left the control group"
        };
        printer.say(format_args!("{:.2} s more of CPU time is not in the profile: {why}", seconds(missing)));
    } else if statistics.samples == 0 {
        printer.say(format_args!("Nothing was sampled: {}", ending.why_nothing(interval, cpu_time)));
    }
}

/// Says why other stacks were not completed.
fn print_incomplete(printer: Printer, statistics: &Statistics) {
    let reasons = statistics.incomplete.by_count();
    let told: Vec<String> = reasons.iter().map(|(why, count)| format!("{count} {why}")).collect();
    if !told.is_empty() {
        let all = counted(reasons.iter().map(|(_, count)| count).sum(), "stack");
        printer.detail(format_args!("{all} could not be completed: {}", told.join(", ")));
    }
}

/// Less time without a sample than that is not worth a line: it would be shown as 0.00 s.
const LEAST_TOLD_NS: u64 = 5_000_000;

/// What is missing of the CPU time that the command used, where that is more than the different ways to count explain: the
/// kernel's account of a process begins before the command does.
fn missing(used_ns: u64, recorded_ns: u64) -> Option<u64> {
    const LEAST_NS: u64 = 50_000_000;
    let missing = used_ns.saturating_sub(recorded_ns);
    (missing > LEAST_NS && missing > used_ns / 10).then_some(missing)
}

/// How many functions a recording's summary names.
const HOTTEST: usize = 5;

/// The most characters of a function's name in the summary on a terminal.
const NAME_WIDTH: usize = 40;

/// How long names may be: in a pipe or a file nothing is cut.
fn name_width() -> Option<usize> {
    printer::is_terminal().then_some(NAME_WIDTH)
}

/// What the CPU time is made of, where there is any.
fn shares_in_brackets(view: &View<'_>) -> String {
    if view.is_empty() {
        return String::new();
    }
    let summary = view.summary();
    format!(" ({})", shares(&summary, Scale::of_summary(&summary)))
}

/// The functions with the most self time, with their shares.
fn hottest(functions: &[Function<'_>], scale: Scale) -> String {
    // Time without a sample is told of already, and no function.
    let is_function = |function: &&Function<'_>| {
        function.self_amount.weight > 0 && function.name != well_known::NOT_SAMPLED
    };
    let named = functions.iter().filter(is_function).take(HOTTEST).map(|function| {
        let name = Names::Short.show(function.name);
        let name = name_width().map_or(name.clone(), |width| cut_name(&name, width, true));
        format!("{name} {}", scale.percent(function.self_amount.weight))
    });
    named.collect::<Vec<_>>().join(", ")
}

/// Whether a function is the root of stacks of processes whose mappings were never told.
fn lacks_mappings(function: &Function<'_>) -> bool {
    well_known::truncation_reason(function.name) == Some(well_known::UNKNOWN_MAPPINGS)
}

/// How many reasons a recording's summary names for which stacks do not reach their roots.
const REASONS: usize = 3;

/// Why stacks do not reach their roots, with the share of the time for each reason.
fn reasons(functions: &[Function<'_>], scale: Scale) -> String {
    let reason = |function: &Function<'_>| {
        let reason = well_known::truncation_reason(function.name)?.to_owned();
        Some((function.total.weight, reason))
    };
    let mut reasons: Vec<_> =
        functions.iter().filter_map(reason).filter(|(_, why)| !why.is_empty()).collect();
    reasons.sort_by_key(|(weight, _)| Reverse(*weight));
    reasons.truncate(REASONS);
    let told: Vec<_> =
        reasons.iter().map(|(weight, reason)| format!("{reason}, {}", scale.percent(*weight))).collect();
    if told.is_empty() { String::new() } else { format!(": {}", told.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_profile::{Meta, Process, ProfileBuilder, Sample, Thread};
    use std::time::Duration;

    /// What a plain user gets for a command at `perf_event_paranoid` 2.
    fn outcome() -> perf::Outcome {
        perf::Outcome {
            attached: None,
            coverage: Coverage::Threads,
            trigger: Trigger::Cycles,
            rate_hz: 1000,
            kernel: false,
            exact_cpu_time: true,
            call_graph: CallGraph::Auto,
            stack_bytes: 32 << 10,
            deep_stack_bytes: None,
            cpus: 2,
            threads: Threads { readers: 1, walkers: 0 },
            sample_ring_bytes: 1 << 20,
            sideband_ring_bytes: None,
            notices: vec![Notice::KernelNotPermitted { paranoid: Some(2), is_root: false }],
        }
    }

    #[test]
    fn what_is_not_sampled_is_told_with_what_would_sample_it() {
        let check = |outcome: &perf::Outcome, line: &str, more: &[&str]| {
            let (told, hint) = (first_line(outcome), what_gives_more(outcome).unwrap_or_default());
            assert!(told.contains(line), "{told}");
            assert_eq!(hint.is_empty(), more.is_empty(), "{hint}");
            assert!(more.iter().all(|part| hint.contains(part)), "{more:?} are not in {hint}");
        };
        let short = "but no process that lives for less than a sampling interval";
        let both = ["setup --capabilities", "kernel code and such processes", "perf_event_paranoid is 2"];
        check(&outcome(), short, &both);
        let kernel = perf::Outcome { kernel: true, notices: Vec::new(), ..outcome() };
        check(&kernel, short, &["setup --capabilities", "samples such processes"]);
        let group = perf::Outcome { coverage: Coverage::Group, ..kernel };
        check(&group, "user and kernel code at 1000 Hz by the CPU's cycle counter", &[]);
        let attached = perf::Attached { threads: 1, processes: 1, rounds: 1, took: Duration::ZERO };
        let attached = perf::Outcome { attached: Some(attached), ..outcome() };
        check(&attached, "user code at 1000 Hz", &["samples kernel code, too;"]);
        let notices = vec![Notice::KernelNotPermitted { paranoid: Some(2), is_root: true }];
        check(&perf::Outcome { notices, ..outcome() }, short, &["--cap-add=PERFMON"]);
    }

    #[test]
    fn whoever_may_look_into_all_processes_needs_no_privilege() {
        assert!(why_mappings_are_unknown(true).contains("had ended"));
        assert!(why_mappings_are_unknown(false).contains("CAP_SYS_PTRACE"));
    }

    #[test]
    fn the_hottest_functions_are_named_in_order() {
        let mut builder = ProfileBuilder::new(Meta { interval: 1_000_000, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        for (name, weight) in [("a", 1), ("b<u8>::c", 2), ("main", 7), ("d", 5), ("e", 4), ("f", 1)] {
            let stack = builder.intern_label(None, name, None);
            builder.add_sample(thread, Sample { weight, ..Sample::new(0, Some(stack), 0) });
        }
        let profile = builder.finish();
        let index = Index::new(&profile);
        let view = View::new(&index, &Selection::default());
        let hottest = hottest(&view.functions().functions, Scale::of(&view));
        assert_eq!(hottest, "main 35.0%, d 25.0%, e 20.0%, b::c 10.0%, a 5.0%");
    }

    #[test]
    fn stacks_without_a_root_say_why() {
        let mut builder = ProfileBuilder::new(Meta { interval: 1_000_000, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        let roots =
            ["(truncated: no unwind information)", "(truncated)", "main", "(truncated: stack copy ended)"];
        for (root, weight) in roots.into_iter().zip([1, 1, 5, 3]) {
            let root = builder.intern_label(None, root, None);
            let stack = builder.intern_label(Some(root), "work", None);
            builder.add_sample(thread, Sample { weight, ..Sample::new(0, Some(stack), 0) });
        }
        let profile = builder.finish();
        let index = Index::new(&profile);
        let view = View::new(&index, &Selection::default());
        let told = reasons(&view.functions().functions, Scale::of(&view));
        assert_eq!(told, ": stack copy ended, 30.0%; no unwind information, 10.0%");
        assert_eq!(reasons(&[], Scale::of(&view)), "");
    }

    #[test]
    fn what_the_command_used_and_nobody_saw_is_missing() {
        let check = |used: u64, recorded: u64, expected: Option<u64>| {
            let told = missing(used * 1_000_000, recorded * 1_000_000);
            assert_eq!(told, expected.map(|expected| expected * 1_000_000), "{recorded} of {used}");
        };
        check(600, 300, Some(300));
        check(4000, 1340, Some(2660));
        check(4000, 3700, None);
        check(40, 0, None);
        check(300, 310, None);
    }
}
