//! `info`: the recording, its machine, and its threads.

use nyquist_analysis::{ThreadRow, Transform, own_functions};
use nyquist_profile::{Profile, Unit};
use serde::Serialize;

use super::context::QueryContext;
use crate::function_table::FunctionTable;
use crate::measures::RecordedMeasures;

#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a member of the documented answer")]
pub(super) struct ProfileInfoAnswer<'q, 'a> {
    name: &'a str,
    product: &'a str,
    measure: SampleMeasure<'a>,
    /// The measures that can be shown, and whether waits can.
    recorded: &'q RecordedMeasures,
    has_waits: bool,
    /// Whether the axis of times counts what samples measure, because the file has no times.
    axis_is_amount: bool,
    /// Whether samples are intervals of exact times, such as slices of a trace.
    has_exact_times: bool,
    interval_ns: u64,
    start_ns: u64,
    end_ns: u64,
    extra: Vec<ExtraInfoAnswer<'a>>,
    summary: ProfileFigures,
    /// The number of counters.
    counters: usize,
    /// Whether some functions are the program's own code, which can be shown alone.
    has_own_code: bool,
    /// Whether some functions were inlined into others.
    has_inlined: bool,
    /// The other run of a comparison.
    before: Option<BeforeRun<'q>>,
    /// The name of the file, if known.
    file: Option<&'q str>,
    /// For a running recording: the time up to which it is complete.
    live: Option<LiveProgress>,
    categories: Vec<CategoryAnswer<'a>>,
    threads: Vec<ThreadAnswer<'a>>,
    /// The activity of each CPU, if the recording has it.
    cores: Vec<ThreadAnswer<'a>>,
    /// The functions in the selection's transforms.
    functions: FunctionTable<'a>,
}

/// The quantity that samples measure.
#[derive(Debug, Serialize)]
struct SampleMeasure<'a> {
    name: &'a str,
    unit: &'static str,
}

#[derive(Debug, Serialize)]
struct ExtraInfoAnswer<'a> {
    section: &'a str,
    label: &'a str,
    value: String,
}

#[derive(Debug, Serialize)]
struct ProfileFigures {
    samples: u64,
    lost_samples: u64,
    cpu_ns: u64,
    weight: u64,
    user: u64,
    kernel: u64,
    not_sampled: u64,
    truncated: u64,
    processes: usize,
    threads: usize,
}

#[derive(Debug, Serialize)]
struct LiveProgress {
    until_ns: u64,
}

#[derive(Debug, Serialize)]
struct BeforeRun<'a> {
    name: &'a str,
    file: Option<&'a str>,
    weight: u64,
    interval_ns: u64,
}

#[derive(Debug, Serialize)]
struct CategoryAnswer<'a> {
    name: &'a str,
    color: &'static str,
}

#[derive(Debug, Serialize)]
struct ThreadAnswer<'a> {
    thread: usize,
    name: &'a str,
    tid: &'a str,
    process: usize,
    process_name: &'a str,
    pid: &'a str,
    weight: u64,
    /// The number of its markers, in all of the time.
    markers: usize,
    start_ns: u64,
    end_ns: u64,
}

pub(super) fn answer<'q, 'a>(context: &'q QueryContext<'_, 'a>) -> ProfileInfoAnswer<'q, 'a> {
    let profile = context.view.profile();
    let meta = profile.meta();
    let times = context.view.times();
    let categories =
        profile.categories().iter().map(|one| CategoryAnswer { name: &one.name, color: one.color.as_str() });
    let mut threads: Vec<_> =
        context.view.by_thread().iter().map(|row| thread(profile, row, times.end)).collect();
    threads.sort_by_key(|thread| (std::cmp::Reverse(thread.weight), thread.thread));
    ProfileInfoAnswer {
        name: &meta.product,
        product: &meta.product,
        measure: SampleMeasure { name: &meta.measure.name, unit: meta.measure.unit.as_str() },
        recorded: context.recorded,
        has_waits: context.has_waits,
        axis_is_amount: meta.measure.unit != Unit::Time && meta.has_exact_times,
        has_exact_times: meta.has_exact_times,
        interval_ns: context.interval_ns(),
        start_ns: times.start,
        end_ns: times.end,
        extra: warnings(context).into_iter().chain(extra(profile)).collect(),
        summary: figures(context),
        counters: profile.counters().len(),
        has_own_code: own_functions(profile).contains(&true),
        has_inlined: has_inlined(profile),
        before: context.before.map(|view| BeforeRun {
            name: &view.profile().meta().product,
            file: context.files.before.as_deref(),
            weight: view.total().weight,
            interval_ns: view.profile().meta().interval,
        }),
        file: context.files.shown.as_deref(),
        live: context.live.map(|until_ns| LiveProgress { until_ns }),
        categories: categories.collect(),
        threads,
        cores: context.view.by_core().iter().map(|row| thread(profile, row, times.end)).collect(),
        functions: functions(context),
    }
}

/// Whether some functions were inlined into others. O(frames).
pub(crate) fn has_inlined(profile: &Profile) -> bool {
    profile.frames().iter().any(|frame| frame.inline_depth > 0)
}

/// The functions in the transforms.
fn functions<'a>(context: &QueryContext<'_, 'a>) -> FunctionTable<'a> {
    let mut table = FunctionTable::new();
    for transform in &context.view.selection().transforms {
        let named = match transform {
            Transform::MergeFunction(func)
            | Transform::FocusFunction(func)
            | Transform::FocusSelf(func)
            | Transform::CollapseRecursion(func)
            | Transform::CollapseDirectRecursion(func)
            | Transform::CollapseFunctionSubtree(func)
            | Transform::DropFunction(func) => std::slice::from_ref(func),
            Transform::MergeCallNode(path)
            | Transform::FocusSubtree(path)
            | Transform::FocusInvertedSubtree(path) => path,
            Transform::FocusCategory(_)
            | Transform::CollapseLib(_)
            | Transform::DropCategory(_)
            | Transform::MergeInlined
            | Transform::OwnCode => &[],
        };
        for func in named {
            context.number(&mut table, *func);
        }
    }
    table
}

fn thread<'a>(profile: &'a Profile, row: &ThreadRow<'a>, end: u64) -> ThreadAnswer<'a> {
    let thread = profile.thread(row.thread);
    ThreadAnswer {
        thread: row.thread.index(),
        name: row.name,
        tid: row.tid,
        process: row.process.index(),
        process_name: &profile.process(row.process).name,
        pid: row.pid,
        weight: row.amount.weight,
        markers: thread.markers.len(),
        start_ns: thread.start,
        end_ns: thread.end.unwrap_or(end),
    }
}

fn figures(context: &QueryContext<'_, '_>) -> ProfileFigures {
    let summary = context.view.summary();
    ProfileFigures {
        samples: summary.samples,
        lost_samples: summary.lost_samples,
        cpu_ns: summary.cpu_ns,
        weight: summary.total.weight,
        user: summary.user.weight,
        kernel: summary.kernel.weight,
        not_sampled: summary.not_sampled.weight,
        truncated: summary.truncated.weight,
        processes: summary.processes,
        threads: summary.threads,
    }
}

/// What the figures cannot mean, for the information panel.
fn warnings<'a>(context: &QueryContext<'_, 'a>) -> Option<ExtraInfoAnswer<'a>> {
    let time = context.view.impossible_time(&context.view.summary())?;
    let value = time.sentence(|ns| format!("{:.2} s", ns as f64 / 1e9));
    Some(ExtraInfoAnswer { section: "Recording", label: "Warning", value })
}

/// The lines of the information panel: the command and the machine, then the recording's own notes.
fn extra(profile: &Profile) -> Vec<ExtraInfoAnswer<'_>> {
    let meta = profile.meta();
    let number = |value: Option<u32>| value.map(|value| value.to_string());
    let provided = [
        ("Recording", "Command", meta.arguments.clone()),
        ("Recording", "Written by", meta.imported_from.clone()),
        ("Machine", "System", meta.oscpu.clone()),
        ("Machine", "Platform", meta.platform.clone()),
        ("Machine", "CPU", meta.cpu_name.clone()),
        ("Machine", "Logical CPUs", number(meta.logical_cpus)),
        ("Machine", "Cores", number(meta.physical_cpus)),
        ("Machine", "Memory", meta.main_memory.map(|bytes| format!("{} MiB", bytes >> 20))),
    ];
    let provided = provided.into_iter().filter_map(|(section, label, value)| {
        value.filter(|value| !value.is_empty()).map(|value| ExtraInfoAnswer { section, label, value })
    });
    let recorded = meta.extra.iter().map(|one| ExtraInfoAnswer {
        section: &one.section,
        label: &one.label,
        value: one.value.clone(),
    });
    provided.chain(recorded).collect()
}
