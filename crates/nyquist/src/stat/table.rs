//! The result as a table for people.

use super::events::Wanted;
use super::format::{deviation, missing, note, value};
use super::measured::{Quantity, Row, Summary};
use crate::number::counted;
use crate::text::{Cell, Column, Screen, Style, Table, Text, cut, one_line};
use nyquist_record::linux::counting::{Missing, Reading};
use nyquist_record::linux::event_names::Event;
use nyquist_record::linux::machine::Settings;
use std::collections::HashSet;
use std::time::Duration;

/// The table of one command, or of what runs already.
pub(super) fn text(summary: &Summary, name: Option<&str>, screen: Screen) -> Text {
    let mut text = heading(summary, name, screen);
    let has_spread = summary.runs > 1;
    let mut columns = vec![Column::Number("COUNT"), Column::Main("EVENT")];
    if has_spread {
        columns.splice(1..1, [Column::Number("± %"), Column::Number("±")]);
    }
    columns.push(Column::Minor(""));
    let mut threads: Vec<_> = summary.rows.iter().map(|row| row.thread.clone()).collect();
    threads.dedup();
    for thread in threads.into_iter().flatten() {
        let of_thread = summary.rows.iter().filter(|row| row.thread.as_ref() == Some(&thread));
        let mut table = Table::new(columns.clone());
        of_thread
            .filter(|row| is_shown(row, summary))
            .for_each(|row| table.add(cells(row, summary, has_spread)));
        text += Style::Bold.paint(&format!("{} ({})", one_line(&thread.1), thread.0), screen) + "\n";
        text += table.render(screen) + "\n";
    }
    let mut table = Table::new(columns);
    let rows = summary.all_rows();
    for row in rows.iter().filter(|row| row.thread.is_none() && is_shown(row, summary)) {
        table.add(cells(row, summary, has_spread));
    }
    text + table.render(screen)
}

fn heading(summary: &Summary, name: Option<&str>, screen: Screen) -> Text {
    let name = name.filter(|name| !name.is_empty());
    let Some(name) = name else { return "\n".into() };
    let runs =
        if summary.runs > 1 { format!(" ({})", counted(summary.runs as u64, "run")) } else { String::new() };
    let line = format!("{}{runs}:", one_line(name));
    let line = screen.width.map_or_else(|| line.clone(), |width| cut(&line, width, screen.unicode));
    Text::from("\n") + Style::Bold.paint(&line, screen) + "\n"
}

/// An event of the usual set that this machine does not have is told of below.
fn is_shown(row: &Row, summary: &Summary) -> bool {
    let all_missing = summary.rows.iter().all(|row| row.spread.is_err());
    row.spread.is_ok() || !is_of_usual_set(row) || all_missing && summary.user.is_none()
}

fn is_of_usual_set(row: &Row) -> bool {
    row.spread.is_err() && row.quantity == Quantity::Times && !row.is_named
}

fn cells(row: &Row, summary: &Summary, has_spread: bool) -> Vec<Cell> {
    let count = match row.spread {
        Ok(spread) => value(row, spread.mean),
        Err(_) => "-".to_owned(),
    };
    let name = Cell::from(row.name.clone());
    let note = Cell::new(note(row, summary), Style::Dim);
    if !has_spread {
        return vec![count.into(), name, note];
    }
    let (deviation, share) = deviation(row);
    vec![count.into(), share.into(), deviation.into(), name, note]
}

/// What is missing of the counts, and why: each thing once.
pub(super) fn notes(summaries: &[Summary], wanted: &Wanted) -> Text {
    let rows = || summaries.iter().flat_map(|summary| &summary.rows);
    let mut text = Text::default();
    if rows().any(|row| row.user_only) {
        let level = Settings::now().perf_event_paranoid.unwrap_or(2);
        text += format!(
            "`:u` counts user code alone, because kernel.perf_event_paranoid is {level} and you are not root.\n"
        );
    }
    let lacking = |missing: Missing| {
        let mut names: Vec<_> = rows()
            .filter(|row| row.spread.is_err() && row.spread.err() == Some(missing))
            .map(|row| row.name.clone())
            .collect();
        let mut known = HashSet::new();
        names.retain(|name| known.insert(name.clone()));
        names.truncate(8);
        names
    };
    let missing_here = lacking(Missing::NotSupported);
    if !missing_here.is_empty() && !wanted.are_named {
        text += format!(
            "Not on this machine: {}. Most virtual machines have no counters of the CPU (PMU).\n",
            missing_here.join(", ")
        );
    }
    let refused = lacking(Missing::NotPermitted);
    let is_refused = rows().any(|row| row.by_process && row.name != "context-switches" && row.name != "cs");
    if is_refused || !refused.is_empty() {
        text += "perf_event_open is refused here, so what the kernel counts of each process is shown; `nyquist doctor` says why.\n";
    }
    text
}

/// What an event counted in an interval.
#[derive(Debug)]
pub(super) struct Change<'a> {
    pub(super) event: &'a Event,
    pub(super) value: Result<f64, Missing>,
    pub(super) user_only: bool,
}

/// What was counted between two readings of the same counters.
pub(super) fn changes<'a>(events: &'a [Event], before: &[Reading], now: &[Reading]) -> Vec<Change<'a>> {
    let change = |(before, now): (&Reading, &Reading)| {
        let before = before.count.map_or(0.0, |count| count.value);
        // An estimate can become less.
        let value = now.count.map(|count| (count.value - before).max(0.0));
        Some(Change { event: events.get(now.event)?, value, user_only: now.user_only })
    };
    before.iter().zip(now).filter_map(change).collect()
}

/// The lines of an interval that ends at a time: the time, the count, the event.
pub(super) fn interval(since: Duration, changes: &[Change<'_>]) -> Text {
    let line = |change: &Change<'_>| {
        let row = super::measured::row_of_interval(change);
        let shown = match change.value {
            Ok(count) => value(&row, count),
            Err(Missing::NotSupported) => return None,
            Err(reason) => missing(reason).to_owned(),
        };
        Some(format!("{:>10.3} s  {shown:>16}  {}\n", since.as_secs_f64(), one_line(&row.name)))
    };
    changes.iter().filter_map(line).collect::<String>().into()
}
