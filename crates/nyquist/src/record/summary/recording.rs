//! Messages after a recording: its size, its gaps, and the functions with most of its time.

use super::advice;
use crate::number::{counted, is_visible_percent, time_span};
use crate::own_code;
use crate::printer::{self, Printer};
use crate::record::ending::Ending;
use crate::report::shares;
use crate::scale::Scale;
use crate::system::abilities::{FOR_SHORT_THREADS, LEFT_OUT};
use crate::text::{Names, cut_name};
use crate::unnamed::{self, TypedCommand};
use nyquist_analysis::{Function, Index, Selection, View};
use nyquist_convert::{OccurrenceCounts, Statistics};
use nyquist_profile::{Profile, StackId, Thread, well_known};
use nyquist_record::{BudgetSummary, HoldSummary};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

/// Prints how long threads were stopped by the recorder.
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
    if let Some(line) = lowered_rate(budget) {
        printer.say(line);
    }
    if budget.excused_ns > 0 {
        let excused = budget.excused_ns as f64 / 1e6;
        printer.detail(format_args!(
            "Besides, {excused:.1} ms of single holds were drawn out by a busy machine"
        ));
    }
}

/// A line about a rate that was often lower than requested; `None` if it was seldom.
fn lowered_rate(budget: &BudgetSummary) -> Option<String> {
    /// In fewer rounds than one in this many, nobody would notice it.
    const SELDOM: u64 = 10;
    let BudgetSummary { rounds, cut_rounds, .. } = *budget;
    (cut_rounds > rounds / SELDOM).then(|| {
        let percent = cut_rounds.saturating_mul(100) / rounds.max(1);
        format!(
            "For {percent}% of the time the rate was lower than requested, so that the program is not stopped for too long: use a lower rate (-r) for a steady one"
        )
    })
}

/// The CPU time of samples whose stacks satisfy a condition, in nanoseconds.
fn time_of(profile: &Profile, is_requested: impl Fn(Option<StackId>) -> bool) -> u64 {
    let is_of_process = |thread: &&Thread| !profile.process(thread.process).is_of_cpus();
    let samples = profile.threads().iter().filter(is_of_process).flat_map(|thread| &thread.samples);
    let on_cpu = samples.filter(|sample| !sample.off_cpu && is_requested(sample.stack));
    let weight = on_cpu.map(|sample| sample.weight).fold(0, u64::saturating_add);
    weight.saturating_mul(profile.meta().interval)
}

/// Whether a stack stands for time without a sample.
fn is_not_sampled(profile: &Profile, stack: StackId) -> bool {
    is_of(profile, stack, well_known::NOT_SAMPLED)
}

/// Whether some samples stand for time of the kernel that may not be sampled.
pub(crate) fn has_kernel_not_permitted(profile: &Profile) -> bool {
    let mut samples = profile.threads().iter().flat_map(|thread| &thread.samples);
    samples.any(|sample| {
        sample.stack.is_some_and(|stack| is_of(profile, stack, well_known::KERNEL_NOT_PERMITTED))
    })
}

/// Whether the innermost frame of a stack has this name.
fn is_of(profile: &Profile, stack: StackId, name: &str) -> bool {
    profile.stack_frames(stack).next().is_some_and(|frame| profile.func_name(frame.func) == name)
}

/// The recording that the summary describes.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the recording")]
pub(crate) struct SummarizedRecording<'a> {
    /// The profile.
    pub(crate) profile: &'a Profile,
    /// The name of the recorded program.
    pub(crate) program: &'a str,
    /// The command that was recorded.
    pub(crate) command: TypedCommand<'a>,
    /// The command lines of attached processes.
    pub(crate) command_lines: &'a str,
    /// Whether the user requested the waits of threads.
    pub(crate) waits: bool,
    /// Whether it is of some programs, and not of the whole machine.
    pub(crate) is_of_programs: bool,
    /// Whether the profile is shown in the browser now.
    pub(crate) is_shown: bool,
    /// The names of the events that were recorded in addition to the samples, and their numbers.
    pub(crate) events: (&'a [String], &'a OccurrenceCounts),
    /// Whether the recorder could read all processes. This process may have given up that right since.
    pub(crate) may_read_other_processes: bool,
}

/// How a recording went, as its backend reports it.
#[derive(Debug, Default)]
pub(crate) struct RunReport {
    /// The CPU time of all recorded threads together, in nanoseconds; `None` if it was counted together with
    /// others. The profile's is shown then.
    pub(crate) total_cpu_time_ns: Option<u64>,
    /// Whether descendants of the recorded processes live on.
    pub(crate) left_running: bool,
    /// How long threads were stopped, if they were.
    pub(crate) holds: Option<HoldSummary>,
    /// What the user is warned of.
    pub(crate) warnings: Vec<String>,
    /// How many times events have happened in all, by their names, if their records do not add up to that.
    pub(crate) event_counts: BTreeMap<String, u64>,
}

impl RunReport {
    /// The report of a run with the sums and warnings of those before it.
    pub(crate) fn after(mut self, mut former: Self) -> Self {
        let sums = self.total_cpu_time_ns.zip(former.total_cpu_time_ns);
        self.total_cpu_time_ns = sums.map(|(time, before)| time + before);
        former.warnings.retain(|warning| !self.warnings.contains(warning));
        self.warnings.append(&mut former.warnings);
        for (event, count) in former.event_counts {
            let sum = self.event_counts.entry(event).or_default();
            *sum = sum.saturating_add(count);
        }
        self
    }
}

/// Prints the summary of a recording.
pub(crate) fn print(
    printer: Printer,
    recorded: &SummarizedRecording<'_>,
    report: &RunReport,
    statistics: &Statistics,
    ending: &Ending<'_>,
    saved: Option<&Path>,
) {
    if printer.is_silent() {
        return;
    }
    let &SummarizedRecording {
        profile,
        program,
        command,
        command_lines,
        waits,
        events,
        may_read_other_processes,
        ..
    } = recorded;
    let duration = seconds(profile.meta().profiling_end.unwrap_or_default());
    let index = Index::new(profile);
    let view = View::new(&index, &Selection::default());
    let (functions, scale) = (view.functions().functions, Scale::of(&view));
    let cpu_time = report.total_cpu_time_ns.unwrap_or_else(|| time_of(profile, |_| true));
    printer.say(format_args!(
        "Recorded {} with {} of CPU time{}: {}",
        time_span(profile.meta().profiling_end.unwrap_or_default()),
        time_span(cpu_time),
        shares_in_brackets(&view),
        counted(statistics.samples, "sample")
    ));
    if let Some(line) = advice::few_samples(statistics.samples) {
        printer.say(line);
    }
    print_way(printer, report, ending, duration);
    print_losses(printer, statistics);
    print_stacks(printer, statistics, may_read_other_processes, &functions, scale);
    print_not_sampled(printer, profile, statistics, (cpu_time, ending));
    print_missing(printer, profile.meta().interval, statistics, ending, cpu_time);
    let hottest = hottest(&functions, scale);
    if !hottest.is_empty() && statistics.samples > 0 {
        printer.say(format_args!("Most time is in {hottest}"));
    }
    let own = own_code::hottest(&functions, program, scale, name_width());
    if !own.is_empty() {
        printer.say(format_args!("Of its own code, with what it calls: {own}"));
    }
    super::events::print(printer, events.0, events.1, &report.event_counts);
    if waits {
        super::waits::print(printer, profile);
    }
    super::cpu_quota::print(printer, profile);
    let hints = unnamed::hints(profile, (command, command_lines), &functions, scale).into_iter();
    for hint in hints.chain(advice(recorded, (&functions, scale), (cpu_time, statistics.markers), saved)) {
        printer.say(hint);
    }
    if let Some(path) = saved {
        printer.say(advice::saved(path, recorded.is_shown));
    }
}

/// What else may help, a line each.
fn advice(
    recorded: &SummarizedRecording<'_>,
    (functions, scale): (&[Function<'_>], Scale),
    (cpu_time, markers): (u64, u64),
    saved: Option<&Path>,
) -> impl Iterator<Item = String> {
    let profile = recorded.profile;
    let duration = profile.meta().profiling_end.unwrap_or_default();
    let may_wait = cfg!(target_os = "linux") && recorded.is_of_programs && !recorded.waits;
    let waits = may_wait.then(|| advice::mostly_waits(duration, cpu_time)).flatten();
    let lines = advice::without_lines(profile, functions, scale);
    [advice::markers(markers, saved), lines, waits].into_iter().flatten()
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// Prints how the recording proceeded.
fn print_way(printer: Printer, report: &RunReport, ending: &Ending<'_>, duration: f64) {
    if let Some(holds) = &report.holds {
        print_holds(printer, holds, duration);
    }
    for notice in &report.warnings {
        printer.warn(notice);
    }
    if report.left_running {
        printer.say(ending.line());
    }
}

/// Prints what the kernel dropped or did not sample.
fn print_losses(printer: Printer, statistics: &Statistics) {
    if statistics.lost > 0 {
        let lost = counted(statistics.lost, "record");
        printer.warn(format_args!("{lost} were dropped, samples among them: a lower rate (-r) loses fewer"));
    }
    if statistics.throttled > 0 {
        let times = counted(statistics.throttled, "time");
        printer.warn(format_args!("the kernel paused sampling {times}: a lower rate (-r) avoids that"));
    }
}

/// Prints the number of completed stacks, and the number of stacks without a root, with the reasons.
fn print_stacks(
    printer: Printer,
    statistics: &Statistics,
    may_read_other_processes: bool,
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
            printer.say(why_mappings_are_unknown(may_read_other_processes));
        }
    }
}

/// The reason why the mappings of some processes were never reported. A recorder that may read all processes
/// only comes too late for some.
fn why_mappings_are_unknown(may_read_other_processes: bool) -> &'static str {
    if may_read_other_processes {
        "The mappings of some processes could not be read, because they had ended, so their stacks have no roots and names"
    } else {
        "The mappings of other users' processes may not be read: sudo, or CAP_SYS_PTRACE, gives their stacks roots and names"
    }
}

/// Prints the amount of CPU time without samples.
fn print_not_sampled(
    printer: Printer,
    profile: &Profile,
    statistics: &Statistics,
    (cpu_time, ending): (u64, &Ending<'_>),
) {
    let not_sampled = time_of(profile, |stack| stack.is_some_and(|stack| is_not_sampled(profile, stack)));
    // Less than 1 % is only the last intervals of some threads.
    if not_sampled * 100 > cpu_time && not_sampled >= MIN_REPORTED_NS {
        let lost = if statistics.lost > 0 { ", or whose samples were dropped" } else { "" };
        printer.say(format_args!(
            "{:.2} s of it was not sampled: used by threads that ended or slept before a sample came, as in threads and processes of less than about two sampling intervals{lost}",
            seconds(not_sampled)
        ));
        // Each thread of an attached process has a separate clock, which starts with the thread.
        let is_of_others = !ending.attached.is_empty() && not_sampled > cpu_time / SHORT_LIVED;
        if let Some(hint) = FOR_SHORT_THREADS.filter(|_| is_of_others) {
            printer.say(format_args!("hint: {hint}"));
        }
    }
}

/// Prints the amount of the command's CPU time that is not in the profile, and the reason.
fn print_missing(
    printer: Printer,
    interval: u64,
    statistics: &Statistics,
    ending: &Ending<'_>,
    cpu_time: u64,
) {
    if let Some(missing) = ending.used.and_then(|used| missing(used.as_nanos() as u64, cpu_time)) {
        let why = if statistics.lost > 0 {
            "records were dropped".to_owned()
        } else {
            format!("used by {LEFT_OUT}")
        };
        printer.say(format_args!("{:.2} s more of CPU time is not in the profile: {why}", seconds(missing)));
    } else if statistics.samples == 0 {
        printer.say(format_args!("Nothing was sampled: {}", ending.why_nothing(interval, cpu_time)));
    }
}

/// Prints the reasons why other stacks were not completed.
fn print_incomplete(printer: Printer, statistics: &Statistics) {
    let reasons = &statistics.incomplete;
    let texts: Vec<String> = reasons.iter().map(|(why, count)| format!("{count} {why}")).collect();
    if !texts.is_empty() {
        let all = counted(reasons.iter().map(|(_, count)| count).sum(), "stack");
        printer.detail(format_args!("{all} could not be completed: {}", texts.join(", ")));
    }
}

/// A smaller time without samples is not reported, because it would be shown as 0.00 s.
const MIN_REPORTED_NS: u64 = 5_000_000;

/// The missing part of the command's CPU time, if it exceeds the inaccuracy of both measurements. The
/// kernel's accounting of a process begins before the command does.
fn missing(used_ns: u64, recorded_ns: u64) -> Option<u64> {
    const MIN_MISSING_NS: u64 = 50_000_000;
    let missing = used_ns.saturating_sub(recorded_ns);
    (missing > MIN_MISSING_NS && missing > used_ns / 10).then_some(missing)
}

/// If at least this fraction (1 / 5) was not sampled, threads are too short-lived to get their own clocks.
const SHORT_LIVED: u64 = 5;

/// The number of functions that a recording's summary names.
const HOTTEST: usize = 5;

/// The maximum length of a function's name in the summary on a terminal.
const NAME_WIDTH: usize = 40;

/// The maximum length of names; `None` for a pipe or a file, where nothing is cut.
fn name_width() -> Option<usize> {
    printer::is_terminal().then_some(NAME_WIDTH)
}

/// The parts of the CPU time, if there is any.
fn shares_in_brackets(view: &View<'_>) -> String {
    if view.is_empty() {
        return String::new();
    }
    let summary = view.summary();
    format!(" ({})", shares(&summary, Scale::of_summary(&summary)))
}

/// The functions with the most self time, with their shares.
fn hottest(functions: &[Function<'_>], scale: Scale) -> String {
    // Time without a sample is reported already, and is not a function.
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

/// Whether a function is the root of stacks of processes whose mappings were never reported.
fn lacks_mappings(function: &Function<'_>) -> bool {
    well_known::truncation_reason(function.name) == Some(well_known::UNKNOWN_MAPPINGS)
}

/// The number of reasons for stacks without a root that a recording's summary names.
const REASONS: usize = 3;

/// The reasons why stacks do not reach their roots, with the share of the time for each reason.
fn reasons(functions: &[Function<'_>], scale: Scale) -> String {
    let reason = |function: &Function<'_>| {
        let reason = well_known::truncation_reason(function.name)?.to_owned();
        Some((function.total.weight, reason))
    };
    let is_named =
        |(weight, why): &(u64, String)| !why.is_empty() && is_visible_percent(scale.share(*weight));
    let mut reasons: Vec<_> = functions.iter().filter_map(reason).filter(is_named).collect();
    reasons.sort_by_key(|(weight, _)| Reverse(*weight));
    reasons.truncate(REASONS);
    let texts: Vec<_> =
        reasons.iter().map(|(weight, reason)| format!("{reason}, {}", scale.percent(*weight))).collect();
    if texts.is_empty() { String::new() } else { format!(": {}", texts.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_profile::{Meta, Process, ProfileBuilder, Sample, Thread};

    #[test]
    fn a_privilege_is_advised_only_where_missing() {
        assert!(why_mappings_are_unknown(true).contains("had ended"));
        assert!(why_mappings_are_unknown(false).contains("CAP_SYS_PTRACE"));
    }

    #[test]
    fn an_often_lowered_rate_is_stated() {
        let line =
            |rounds, cut_rounds| lowered_rate(&BudgetSummary { rounds, cut_rounds, ..Default::default() });
        assert_eq!((line(0, 0), line(1000, 0), line(1000, 100)), (None, None, None));
        assert!(line(1000, 870).unwrap().starts_with("For 87% of the time the rate was lower"));
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
        let texts = reasons(&view.functions().functions, Scale::of(&view));
        assert_eq!(texts, ": stack copy ended, 30.0%; no unwind information, 10.0%");
        assert_eq!(reasons(&[], Scale::of(&view)), "");
    }

    #[test]
    fn cpu_time_used_unseen_is_missing() {
        let check = |used: u64, recorded: u64, expected: Option<u64>| {
            let texts = missing(used * 1_000_000, recorded * 1_000_000);
            assert_eq!(texts, expected.map(|expected| expected * 1_000_000), "{recorded} of {used}");
        };
        check(600, 300, Some(300));
        check(4000, 1340, Some(2660));
        check(4000, 3700, None);
        check(40, 0, None);
        check(300, 310, None);
    }
}
