//! The measurements of one run, and of all runs together.

use super::events::CountedEvents;
use super::interval::IntervalCount;
use nyquist_analysis::RunSpread;
use nyquist_record::linux::counting::{EventTotal, MissingCount, ThreadAccount};
use nyquist_record::linux::event_names::RequestedEvent;
use nyquist_record::linux::launch::Usage;
use std::time::Duration;

/// The confidence of the intervals of differences.
pub(super) const CONFIDENCE: f64 = 0.95;

/// The measurements of one run.
#[derive(Clone, Debug)]
pub(super) struct RunMeasurements {
    pub(super) wall: Duration,
    /// For a command: the CPU time in user code and in the kernel, and the kernel's other counts of each
    /// process.
    pub(super) used: Option<(Duration, Duration, Usage)>,
    pub(super) counts: Vec<EventCount>,
    /// The command's exit status.
    pub(super) status: u8,
}

/// A thread with its own counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Thread {
    /// Its index among all threads, because thread ids are reused.
    pub(super) place: usize,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) name: String,
}

/// A count of an event.
#[derive(Clone, Debug)]
pub(super) struct EventCount {
    /// The index of the event.
    pub(super) event: usize,
    /// The thread, if threads are counted separately.
    pub(super) thread: Option<Thread>,
    /// The kernel's own accounting of that thread, if known.
    pub(super) account: Option<ThreadAccount>,
    pub(super) count: Result<EventTotal, MissingCount>,
    pub(super) user_only: bool,
}

/// The kind of a row's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Seconds,
    /// Nanoseconds of CPU time.
    Nanoseconds,
    Times,
    /// A number in a special unit.
    Other,
}

/// The source of the kernel's own count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KernelCount {
    /// The processes that were waited for.
    Processes,
    /// The thread.
    Thread,
}

/// A row of the result: the values of all runs.
#[derive(Clone, Debug)]
pub(super) struct MeasuredRow {
    pub(super) name: String,
    pub(super) thread: Option<Thread>,
    pub(super) quantity: Quantity,
    pub(super) unit: Option<String>,
    pub(super) values: Vec<f64>,
    pub(super) spread: Result<RunSpread, MissingCount>,
    /// The least share of a run's time during which it was counted.
    pub(super) share: f64,
    pub(super) user_only: bool,
    /// The source of the kernel's own count that replaces the event, which was refused.
    pub(super) by_kernel: Option<KernelCount>,
    /// Whether the user named the event.
    pub(super) is_named: bool,
}

/// The measurements of all runs.
#[derive(Clone, Debug)]
pub(super) struct Summary {
    pub(super) runs: usize,
    pub(super) status: u8,
    pub(super) wall: RunSpread,
    pub(super) walls: Vec<f64>,
    pub(super) user: Option<MeasuredRow>,
    pub(super) system: Option<MeasuredRow>,
    pub(super) rows: Vec<MeasuredRow>,
}

const NONE: RunSpread = RunSpread { count: 0, mean: 0.0, deviation: 0.0, min: 0.0, max: 0.0 };

impl Summary {
    /// The summary of these runs.
    pub(super) fn of(runs: &[RunMeasurements], CountedEvents { events, are_named }: &CountedEvents) -> Self {
        let walls: Vec<_> = runs.iter().map(|run| run.wall.as_secs_f64()).collect();
        let first = runs.first().map_or(&[][..], |run| &run.counts);
        let rows = first.iter().enumerate().filter_map(|(place, counted)| {
            let event = events.get(counted.event)?;
            Some(MeasuredRow { is_named: *are_named, ..row(event, runs, place, counted) })
        });
        Self {
            runs: runs.len(),
            status: runs.last().map_or(0, |run| run.status),
            wall: RunSpread::of(&walls).unwrap_or(NONE),
            walls,
            user: seconds("user time", runs, |(user, ..)| *user),
            system: seconds("system time", runs, |(_, system, _)| *system),
            rows: rows.collect(),
        }
    }

    /// All rows with a value: those of events, then times.
    pub(super) fn all_rows(&self) -> Vec<MeasuredRow> {
        let wall = MeasuredRow { spread: Ok(self.wall), ..time_row("wall time", self.walls.clone()) };
        let times = std::iter::once(wall).chain(self.user.clone()).chain(self.system.clone());
        self.rows.iter().cloned().chain(times).collect()
    }
}

/// The mean of an event without modifiers, among rows of one thread or of all threads together.
pub(super) fn mean_of(name: &str, rows: &[MeasuredRow]) -> Option<f64> {
    let row = rows.iter().find(|row| plain(&row.name) == name)?;
    row.spread.ok().map(|spread| spread.mean)
}

/// The name without modifiers.
pub(super) fn plain(name: &str) -> &str {
    match name.rsplit_once(':') {
        Some((name, letters)) if letters.bytes().all(|letter| b"ukhGHp".contains(&letter)) => name,
        _ => name,
    }
}

fn time_row(name: &str, values: Vec<f64>) -> MeasuredRow {
    MeasuredRow {
        name: name.to_owned(),
        thread: None,
        quantity: Quantity::Seconds,
        unit: Some("s".to_owned()),
        spread: RunSpread::of(&values).ok_or(MissingCount::NotCounted),
        values,
        share: 1.0,
        user_only: false,
        by_kernel: None,
        is_named: false,
    }
}

fn seconds(
    name: &str,
    runs: &[RunMeasurements],
    get: impl Fn(&(Duration, Duration, Usage)) -> Duration,
) -> Option<MeasuredRow> {
    let values: Option<Vec<_>> =
        runs.iter().map(|run| run.used.as_ref().map(|used| get(used).as_secs_f64())).collect();
    values.filter(|values| !values.is_empty()).map(|values| time_row(name, values))
}

/// The row of the event at an index of each run's counts.
fn row(event: &RequestedEvent, runs: &[RunMeasurements], place: usize, first: &EventCount) -> MeasuredRow {
    let counts: Vec<_> = runs.iter().filter_map(|run| run.counts.get(place)?.count.ok()).collect();
    let mut values: Vec<_> = counts.iter().map(|count| count.value).collect();
    let mut row = MeasuredRow {
        name: event.name.clone(),
        thread: first.thread.clone(),
        quantity: quantity(event),
        unit: event.unit.clone(),
        values: Vec::new(),
        spread: Err(first.count.err().unwrap_or(MissingCount::NotCounted)),
        share: counts.iter().copied().map(EventTotal::share).fold(1.0, f64::min),
        user_only: first.user_only,
        by_kernel: None,
        is_named: false,
    };
    // Switches happen in the kernel, where an unprivileged user's event counts none. The kernel's own
    // count of each process includes them.
    let is_hidden = first.user_only && ["context-switches", "cs"].contains(&&*event.name);
    if is_hidden || matches!(first.count, Err(MissingCount::NotPermitted)) {
        let (found, whose): (Option<Vec<_>>, _) = match &first.thread {
            None => (runs.iter().map(|run| by_process(event, run)).collect(), KernelCount::Processes),
            Some(_) => (by_thread(event, first).map(|value| vec![value]), KernelCount::Thread),
        };
        if let Some(found) = found {
            values = found;
            (row.by_kernel, row.user_only, row.share) = (Some(whose), false, 1.0);
        }
    }
    row.name += mark_of_user_code(&row.name, row.user_only);
    if let Some(spread) = RunSpread::of(&values) {
        row.spread = Ok(spread);
    }
    row.values = values;
    row
}

/// The kernel's own count of each process, if it is the same as an event's.
fn by_process(event: &RequestedEvent, run: &RunMeasurements) -> Option<f64> {
    let (user, system, usage) = run.used.as_ref()?;
    by_account(
        event,
        &ThreadAccount {
            cpu_time: *user + *system,
            minor_faults: usage.minor_faults,
            major_faults: usage.major_faults,
            context_switches: usage.context_switches,
        },
    )
}

/// The kernel's own count of a thread, if it is the same as an event's.
fn by_thread(event: &RequestedEvent, counted: &EventCount) -> Option<f64> {
    by_account(event, counted.account.as_ref()?)
}

fn by_account(event: &RequestedEvent, account: &ThreadAccount) -> Option<f64> {
    let count = match event.name.as_str() {
        "context-switches" | "cs" => account.context_switches,
        "page-faults" | "faults" => account.minor_faults.saturating_add(account.major_faults),
        "minor-faults" => account.minor_faults,
        "major-faults" => account.major_faults,
        "task-clock" | "cpu-clock" => return Some(account.cpu_time.as_nanos() as f64),
        _ => return None,
    };
    Some(count as f64)
}

fn quantity(event: &RequestedEvent) -> Quantity {
    let name = plain(&event.name).split('/').next().unwrap_or_default();
    match name {
        "task-clock" | "cpu-clock" => Quantity::Nanoseconds,
        _ if event.unit.is_some() => Quantity::Other,
        _ => Quantity::Times,
    }
}

/// Perf's suffix for the name of an event that counts only user code.
fn mark_of_user_code(name: &str, user_only: bool) -> &'static str {
    match (user_only, name.ends_with('/')) {
        (true, true) => "u",
        (true, false) => ":u",
        (false, _) => "",
    }
}

/// The row of an event in one interval.
pub(super) fn row_of_interval(change: &IntervalCount<'_>) -> MeasuredRow {
    let event = change.event;
    MeasuredRow {
        name: format!("{}{}", event.name, mark_of_user_code(&event.name, change.user_only)),
        quantity: quantity(event),
        unit: event.unit.clone(),
        spread: change.value.map(|value| RunSpread { mean: value, ..NONE }),
        user_only: change.user_only,
        ..time_row("", Vec::new())
    }
}
