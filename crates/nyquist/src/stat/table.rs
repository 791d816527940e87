//! The result as a table.

use super::events::CountedEvents;
use super::format::{deviation, missing, note, value};
use super::interval::IntervalCount;
use super::measured::{MeasuredRow, Quantity, Summary, Thread};
use crate::number::counted;
use crate::text::{Cell, Column, Screen, Style, Table, Text, cut, one_line};
use nyquist_record::linux::counting::MissingCount;
use nyquist_record::linux::machine::Settings;
use std::collections::HashSet;
use std::time::Duration;

/// The table of one command, or of running processes.
pub(super) fn text(summary: &Summary, name: Option<&str>, screen: Screen) -> Text {
    let mut text = heading(summary, name, screen);
    let has_spread = summary.runs > 1;
    let mut columns = vec![Column::Number("COUNT"), Column::Main("EVENT")];
    if has_spread {
        columns.splice(1..1, [Column::Number("± %"), Column::Number("±")]);
    }
    columns.push(Column::Minor(""));
    let of_threads = summary.rows.chunk_by(|one, other| one.thread == other.thread);
    let mut pids: Vec<_> = summary.rows.iter().filter_map(|row| Some(row.thread.as_ref()?.pid)).collect();
    pids.dedup();
    let all_missing = summary.user.is_none() && summary.rows.iter().all(|row| row.spread.is_err());
    for rows in of_threads {
        let Some(thread) = rows.first().and_then(|row| row.thread.as_ref()) else { continue };
        let mut table = Table::new(columns.clone());
        let shown = rows.iter().filter(|row| is_shown(row, all_missing));
        shown.for_each(|row| table.add(cells(row, rows, summary, has_spread)));
        text += Style::Bold.paint(&thread_heading(thread, pids.len() > 1), screen) + "\n";
        text += table.render(screen) + "\n";
    }
    let mut table = Table::new(columns);
    let rows = summary.all_rows();
    for row in rows.iter().filter(|row| row.thread.is_none() && is_shown(row, all_missing)) {
        table.add(cells(row, &rows, summary, has_spread));
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

/// A thread's name and id. Its process is added if its id differs and it is not the only process.
fn thread_heading(thread: &Thread, has_several_processes: bool) -> String {
    let name = one_line(&thread.name);
    if has_several_processes && thread.pid != thread.tid {
        format!("{name} ({} of process {})", thread.tid, thread.pid)
    } else {
        format!("{name} ({})", thread.tid)
    }
}

/// If this machine lacks an event of the default set, only a note below mentions it.
fn is_shown(row: &MeasuredRow, all_missing: bool) -> bool {
    row.spread.is_ok() || !is_of_usual_set(row) || all_missing
}

fn is_of_usual_set(row: &MeasuredRow) -> bool {
    row.spread.is_err() && row.quantity == Quantity::Times && !row.is_named
}

fn cells(row: &MeasuredRow, beside: &[MeasuredRow], summary: &Summary, has_spread: bool) -> Vec<Cell> {
    let count = match row.spread {
        Ok(spread) => value(row, spread.mean),
        Err(_) => "-".to_owned(),
    };
    let name = Cell::from(row.name.clone());
    let note = Cell::new(note(row, beside, summary), Style::Dim);
    if !has_spread {
        return vec![count.into(), name, note];
    }
    let (deviation, share) = deviation(row);
    vec![count.into(), share.into(), deviation.into(), name, note]
}

/// Notes about missing counts and their reasons, each once.
pub(super) fn notes(summaries: &[Summary], requested: &CountedEvents) -> Text {
    let rows = || summaries.iter().flat_map(|summary| &summary.rows);
    let mut text = Text::default();
    if rows().any(|row| row.user_only) {
        let level = Settings::now().perf_event_paranoid.unwrap_or(2);
        text += format!(
            "`:u` counts user code alone, because kernel.perf_event_paranoid is {level} and you are not root.\n"
        );
    }
    let lacking = |missing: MissingCount| {
        let mut names: Vec<_> = rows()
            .filter(|row| row.spread.is_err() && row.spread.err() == Some(missing))
            .map(|row| row.name.clone())
            .collect();
        let mut known = HashSet::new();
        names.retain(|name| known.insert(name.clone()));
        names.truncate(8);
        names
    };
    let missing_here = lacking(MissingCount::NotSupported);
    if !missing_here.is_empty() && !requested.are_named {
        text += format!(
            "Not on this machine: {}. Most virtual machines have no counters of the CPU (PMU).\n",
            missing_here.join(", ")
        );
    }
    let refused = lacking(MissingCount::NotPermitted);
    let is_refused =
        rows().any(|row| row.by_kernel.is_some() && row.name != "context-switches" && row.name != "cs");
    if is_refused || !refused.is_empty() {
        text += "perf_event_open is refused here, so what the kernel counts of each process is shown; `nyquist doctor` says why.\n";
    }
    text
}

/// The lines of an interval that ends at a time: the number of the run, if there are several, the time, the
/// count, the event.
pub(super) fn interval(run: Option<u32>, since: Duration, counts: &[IntervalCount<'_>]) -> Text {
    let run = run.map_or(String::new(), |run| format!("run {run:<3}"));
    let line = |count: &IntervalCount<'_>| {
        let row = super::measured::row_of_interval(count);
        let shown = match count.value {
            Ok(counted) => value(&row, counted),
            Err(MissingCount::NotSupported) => return None,
            Err(reason) => missing(reason).to_owned(),
        };
        Some(format!("{run}{:>10.3} s  {shown:>16}  {}\n", since.as_secs_f64(), one_line(&row.name)))
    };
    counts.iter().filter_map(line).collect::<String>().into()
}
