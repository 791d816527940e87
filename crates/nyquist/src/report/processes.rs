//! Processes by their time.

use super::context::{Report, TABLE_ROWS, more};
use super::markers::duration;
use crate::args::SortBy;
use crate::number::grouped;
use crate::text::{Cell, Column, Style, Table, Text, bar};
use nyquist_analysis::ProcessRow;
use nyquist_analysis::schema::{self, Rows};

fn processes<'a>(report: &Report<'a>) -> Vec<ProcessRow<'a>> {
    let mut processes = report.view.by_process();
    let least = report.min_weight(0.0);
    // As of threads: without filters, a process without samples shows that it used no time.
    let only_with_samples = !report.args.read.filter.is_empty();
    processes.retain(|process| process.amount.weight >= least && (process.samples > 0 || !only_with_samples));
    if report.args.sort == SortBy::Name {
        processes.sort_by_key(|process| process.name);
    }
    processes
}

pub(super) fn text(report: &Report<'_>) -> Text {
    let processes = processes(report);
    let limit = report.limit(TABLE_ROWS);
    let mut columns = vec![Column::Number("SHARE")];
    if report.screen.colour {
        columns.push(Column::Text(""));
    }
    columns.extend(["TIME", "SAMPLES", "START", "LASTED", "THREADS", "PID"].map(Column::Number));
    columns.push(Column::Main("PROCESS"));
    let mut table = Table::new(columns);
    for process in processes.iter().take(limit) {
        table.add(row(report, process));
    }
    table.render(report.screen) + more(processes.len().saturating_sub(limit), "process", "processes")
}

fn row(report: &Report<'_>, process: &ProcessRow<'_>) -> Vec<Cell> {
    let share = report.scale.share(process.amount.weight);
    let style = Style::of_share(share);
    let mut cells = vec![Cell::new(report.scale.percent(process.amount.weight), style)];
    if report.screen.colour {
        cells.push(Cell::new(bar(share, 10, report.screen.unicode), style));
    }
    let (start, end) = span(report, process);
    let minor = [
        report.scale.time(process.amount.weight),
        grouped(process.samples),
        duration(start),
        end.map_or("to the end".to_owned(), |end| duration(end.saturating_sub(start))),
        grouped(process.threads as u64),
    ];
    cells.extend(minor.map(|text| Cell::new(text, Style::Dim)));
    cells.extend([Cell::from(process.pid), report.names.show(process.name).into()]);
    cells
}

/// When a process began and ended, in ns since the profile's zero; no end if it outlived the recording.
fn span(report: &Report<'_>, process: &ProcessRow<'_>) -> (u64, Option<u64>) {
    let process = report.view.profile().process(process.process);
    (process.start, process.end)
}

/// The first processes as rows.
pub(super) fn list<'a>(report: &Report<'a>) -> Vec<schema::ProcessRow<'a>> {
    let rows = Rows::of(report.view);
    processes(report).iter().take(report.limit(TABLE_ROWS)).map(|process| rows.process(process)).collect()
}
