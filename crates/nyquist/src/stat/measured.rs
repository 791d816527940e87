//! What was measured: of one run, and of all runs together.

use super::events::Wanted;
use super::table::Change;
use nyquist_analysis::Spread;
use nyquist_record::linux::counting::{Count, Missing};
use nyquist_record::linux::event_names::Event;
use nyquist_record::linux::launch::Usage;
use std::time::Duration;

/// What one run measured.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) wall: Duration,
    /// Of a command: the CPU time in user code and in the kernel, and what else the kernel counts of each process.
    pub(super) used: Option<(Duration, Duration, Usage)>,
    pub(super) counts: Vec<Counted>,
    /// The command's exit status.
    pub(super) status: u8,
}

/// A count of an event.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    /// The place of the event.
    pub(super) event: usize,
    /// The thread with its name, where each counts by itself.
    pub(super) thread: Option<(u32, String)>,
    pub(super) count: Result<Count, Missing>,
    pub(super) user_only: bool,
}

/// What a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Seconds,
    /// Nanoseconds of CPU time.
    Nanoseconds,
    Times,
    /// In a unit of its own.
    Other,
}

/// A row of the result: the values of all runs.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) thread: Option<(u32, String)>,
    pub(super) quantity: Quantity,
    pub(super) unit: Option<String>,
    pub(super) values: Vec<f64>,
    pub(super) spread: Result<Spread, Missing>,
    /// The least share of the time that a run counted it for.
    pub(super) share: f64,
    pub(super) user_only: bool,
    /// Whether it is what the kernel counts of each process that was waited for, because the event itself is refused.
    pub(super) by_process: bool,
    /// Whether the event was asked for by its name.
    pub(super) is_named: bool,
}

/// What all runs measured.
#[derive(Clone, Debug)]
pub(super) struct Summary {
    pub(super) runs: usize,
    pub(super) status: u8,
    pub(super) wall: Spread,
    pub(super) walls: Vec<f64>,
    pub(super) user: Option<Row>,
    pub(super) system: Option<Row>,
    pub(super) rows: Vec<Row>,
}

const NONE: Spread = Spread { count: 0, mean: 0.0, deviation: 0.0, min: 0.0, max: 0.0 };

impl Summary {
    /// Of these runs of the events.
    pub(super) fn of(runs: &[Measured], Wanted { events, are_named }: &Wanted) -> Self {
        let walls: Vec<_> = runs.iter().map(|run| run.wall.as_secs_f64()).collect();
        let first = runs.first().map_or(&[][..], |run| &run.counts);
        let rows = first.iter().enumerate().filter_map(|(place, counted)| {
            let event = events.get(counted.event)?;
            Some(Row { is_named: *are_named, ..row(event, runs, place, counted) })
        });
        Self {
            runs: runs.len(),
            status: runs.last().map_or(0, |run| run.status),
            wall: Spread::of(&walls).unwrap_or(NONE),
            walls,
            user: seconds("user time", runs, |(user, ..)| *user),
            system: seconds("system time", runs, |(_, system, _)| *system),
            rows: rows.collect(),
        }
    }

    /// All rows with a value: those of events, then the times.
    pub(super) fn all_rows(&self) -> Vec<Row> {
        let wall = Row { spread: Ok(self.wall), ..time_row("wall time", self.walls.clone()) };
        let times = std::iter::once(wall).chain(self.user.clone()).chain(self.system.clone());
        self.rows.iter().cloned().chain(times).collect()
    }

    /// The mean of an event without modifiers, of a thread or of all.
    pub(super) fn mean(&self, name: &str, like: &Row) -> Option<f64> {
        let is_it = |row: &&Row| plain(&row.name) == name && row.thread == like.thread;
        let row = self.rows.iter().find(is_it)?;
        row.spread.ok().map(|spread| spread.mean)
    }
}

/// The name without modifiers.
pub(super) fn plain(name: &str) -> &str {
    match name.rsplit_once(':') {
        Some((name, letters)) if letters.bytes().all(|letter| b"ukhGHp".contains(&letter)) => name,
        _ => name,
    }
}

fn time_row(name: &str, values: Vec<f64>) -> Row {
    Row {
        name: name.to_owned(),
        thread: None,
        quantity: Quantity::Seconds,
        unit: Some("s".to_owned()),
        spread: Spread::of(&values).ok_or(Missing::NotCounted),
        values,
        share: 1.0,
        user_only: false,
        by_process: false,
        is_named: false,
    }
}

fn seconds(
    name: &str,
    runs: &[Measured],
    get: impl Fn(&(Duration, Duration, Usage)) -> Duration,
) -> Option<Row> {
    let values: Option<Vec<_>> =
        runs.iter().map(|run| run.used.as_ref().map(|used| get(used).as_secs_f64())).collect();
    values.filter(|values| !values.is_empty()).map(|values| time_row(name, values))
}

/// The row of the event at a place of each run's counts.
fn row(event: &Event, runs: &[Measured], place: usize, first: &Counted) -> Row {
    let counts: Vec<_> = runs.iter().filter_map(|run| run.counts.get(place)?.count.ok()).collect();
    let mut values: Vec<_> = counts.iter().map(|count| count.value).collect();
    let mut row = Row {
        name: event.name.clone(),
        thread: first.thread.clone(),
        quantity: quantity(event),
        unit: event.unit.clone(),
        values: Vec::new(),
        spread: Err(first.count.err().unwrap_or(Missing::NotCounted)),
        share: counts.iter().copied().map(Count::share).fold(1.0, f64::min),
        user_only: first.user_only,
        by_process: false,
        is_named: false,
    };
    // In the kernel, where switches happen, a plain user counts none; what it counts of each process tells them.
    let is_hidden = first.user_only && ["context-switches", "cs"].contains(&&*event.name);
    if is_hidden || matches!(first.count, Err(Missing::NotPermitted)) {
        let by_process: Option<Vec<_>> = runs.iter().map(|run| by_process(event, run)).collect();
        if let Some(found) = by_process.filter(|_| first.thread.is_none()) {
            values = found;
            (row.by_process, row.user_only, row.share) = (true, false, 1.0);
        }
    }
    row.name += mark_of_user_code(&row.name, row.user_only);
    if let Some(spread) = Spread::of(&values) {
        row.spread = Ok(spread);
    }
    row.values = values;
    row
}

/// What the kernel counts of each process, where it is what an event counts.
fn by_process(event: &Event, run: &Measured) -> Option<f64> {
    let (user, system, usage) = run.used.as_ref()?;
    let count = match event.name.as_str() {
        "context-switches" | "cs" => usage.context_switches,
        "page-faults" | "faults" => usage.minor_faults.saturating_add(usage.major_faults),
        "minor-faults" => usage.minor_faults,
        "major-faults" => usage.major_faults,
        "task-clock" | "cpu-clock" => return Some((*user + *system).as_nanos() as f64),
        _ => return None,
    };
    Some(count as f64)
}

fn quantity(event: &Event) -> Quantity {
    let name = plain(&event.name).split('/').next().unwrap_or_default();
    match name {
        "task-clock" | "cpu-clock" => Quantity::Nanoseconds,
        _ if event.unit.is_some() => Quantity::Other,
        _ => Quantity::Times,
    }
}

/// What perf puts behind the name of an event that counts user code alone.
fn mark_of_user_code(name: &str, user_only: bool) -> &'static str {
    match (user_only, name.ends_with('/')) {
        (true, true) => "u",
        (true, false) => ":u",
        (false, _) => "",
    }
}

/// The row of an event in one interval.
pub(super) fn row_of_interval(change: &Change<'_>) -> Row {
    let event = change.event;
    Row {
        name: format!("{}{}", event.name, mark_of_user_code(&event.name, change.user_only)),
        quantity: quantity(event),
        unit: event.unit.clone(),
        spread: change.value.map(|value| Spread { mean: value, ..NONE }),
        user_only: change.user_only,
        ..time_row("", Vec::new())
    }
}
