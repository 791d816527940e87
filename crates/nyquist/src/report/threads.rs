//! Threads by their time.

use super::context::{Report, TABLE_ROWS, more};
use crate::args::SortBy;
use crate::number::grouped;
use crate::text::{Cell, Column, Style, Table, Text, bar};
use nyquist_analysis::ThreadRow;
use nyquist_analysis::schema::{self, Rows};

fn threads<'a>(report: &Report<'a>) -> Vec<ThreadRow<'a>> {
    let mut threads = report.view.by_thread();
    let least = report.min_weight(0.0);
    // With filters, a thread without samples is left out. Without filters, its row shows that it used
    // no time.
    let only_with_samples = !report.args.read.filter.is_empty();
    threads.retain(|thread| thread.amount.weight >= least && (thread.samples > 0 || !only_with_samples));
    if report.args.sort == SortBy::Name {
        threads.sort_by_key(|thread| thread.name);
    }
    threads
}

pub(super) fn text(report: &Report<'_>) -> Text {
    let threads = threads(report);
    let limit = report.limit(TABLE_ROWS);
    let mut columns = vec![Column::Number("SHARE")];
    if report.screen.colour {
        columns.push(Column::Text(""));
    }
    columns.extend([
        Column::Number("TIME"),
        Column::Number("SAMPLES"),
        Column::Text("HANDLE"),
        Column::Number("TID"),
        Column::Number("PID"),
        Column::Minor("PROCESS"),
        Column::Main("THREAD"),
    ]);
    let mut table = Table::new(columns);
    for thread in threads.iter().take(limit) {
        table.add(row(report, thread));
    }
    table.render(report.screen) + more(threads.len().saturating_sub(limit), "thread", "threads")
}

fn row(report: &Report<'_>, thread: &ThreadRow<'_>) -> Vec<Cell> {
    let share = report.scale.share(thread.amount.weight);
    let style = Style::of_share(share);
    let mut cells = vec![Cell::new(report.scale.percent(thread.amount.weight), style)];
    if report.screen.colour {
        cells.push(Cell::new(bar(share, 10, report.screen.unicode), style));
    }
    let process = report.view.profile().process(thread.process);
    cells.extend([
        Cell::new(report.scale.time(thread.amount.weight), Style::Dim),
        Cell::new(grouped(thread.samples), Style::Dim),
        format!("t-{}", thread.thread.index()).into(),
        thread.tid.into(),
        thread.pid.into(),
        report.names.show(&process.name).into(),
        report.names.show(thread.name).into(),
    ]);
    cells
}

/// The first threads as rows.
pub(super) fn list<'a>(report: &Report<'a>) -> Vec<schema::ThreadRow<'a>> {
    let rows = Rows::of(report.view);
    threads(report).iter().take(report.limit(TABLE_ROWS)).map(|thread| rows.thread(thread)).collect()
}
