//! Threads by their CPU time or waiting time.

use super::context::{PageContext, key, part};
use super::types::{Cell, Column, Page, Row, Width};
use crate::args::SortBy;
use crate::scale::milliseconds;
use crate::text::Style;
use crate::top::question::Period;
use nyquist_analysis::{SampleState, ThreadRow};
use nyquist_profile::AllocationMeasure;
use std::cmp::Reverse;
use std::collections::HashMap;

pub(super) fn page(context: &PageContext<'_>) -> Page {
    let recent = context.recent.by_thread();
    let recent: HashMap<_, _> = recent.iter().map(|row| (row.thread, row.amount.weight)).collect();
    let recent_of = |row: &ThreadRow<'_>| recent.get(&row.thread).copied().unwrap_or(0);
    let mut threads = context.overall.by_thread();
    threads.retain(|row| context.finds(row.name));
    match (context.question.sort, context.question.period) {
        (SortBy::Name, _) => threads.sort_by_key(|row| row.name),
        (_, Period::Recent) => threads.sort_by_key(|row| Reverse((recent_of(row), row.amount.weight))),
        (_, Period::Overall) => threads.sort_by_key(|row| Reverse(row.amount.weight)),
    }
    let nothing = context.nothing("Nothing was sampled yet");
    Page {
        columns: columns(context),
        rows: threads.iter().map(|row| self::row(context, row, recent_of(row))).collect(),
        empty: if context.search.is_some() { "No thread of that name was sampled" } else { nothing },
        ..Page::default()
    }
}

fn columns(context: &PageContext<'_>) -> Vec<Column> {
    let by_name = context.question.sort == SortBy::Name;
    let heading = match (context.question.memory, context.question.state) {
        (Some(AllocationMeasure::Live), _) => "LIVE",
        (Some(_), _) => "ALLOCATED",
        (None, SampleState::OnCpu) => "CPU",
        (None, SampleState::OffCpu) => "WAITS",
        (None, SampleState::Both) => "BOTH",
    };
    let width = if context.question.memory.is_some() { 9 } else { 7 };
    let cpu = |period| {
        let is_sorted = !by_name && context.question.period == period;
        Column::new(heading, Width::Number(width)).under(context.group(period)).sorted(is_sorted)
    };
    let share = if context.question.memory.is_some() { "SHARE" } else { "TIME" };
    vec![
        cpu(Period::Recent),
        Column::bars(),
        cpu(Period::Overall),
        Column::new(share, Width::Number(12)),
        Column::new("TID", Width::Number(8)),
        Column::new("THREAD", Width::Rest).sorted(by_name),
        Column::new("PROCESS", Width::Part(4)),
    ]
}

fn row(context: &PageContext<'_>, row: &ThreadRow<'_>, recent: u64) -> Row {
    let profile = &context.data.snapshot.profile;
    let process = profile.process(row.process);
    let mut cells = if context.question.memory.is_some() {
        bytes_of(context, recent, row.amount.weight)
    } else {
        time_of(context, recent, row.amount.weight)
    };
    cells.extend([
        Cell::text(row.tid, Style::Plain),
        Cell::Name,
        Cell::dim(&format!("{} ({})", context.names.show(&process.name), row.pid)),
    ]);
    Row {
        key: key((row.tid, row.pid)),
        name: context.names.show(row.name),
        thread: Some(row.thread),
        cells,
        ..Row::default()
    }
}

/// The CPUs that a thread used in both periods, and its time.
fn time_of(context: &PageContext<'_>, recent: u64, overall: u64) -> Vec<Cell> {
    let cpus = |period, weight| context.load(period, weight).cpus;
    let recent = cpus(Period::Recent, recent);
    let interval = context.data.snapshot.profile.meta().interval;
    vec![
        Cell::share(recent),
        Cell::Bar(recent),
        Cell::share(cpus(Period::Overall, overall)),
        Cell::dim(&milliseconds(overall.saturating_mul(interval))),
    ]
}

/// The bytes of a thread in both periods, and its share of all.
fn bytes_of(context: &PageContext<'_>, recent: u64, overall: u64) -> Vec<Cell> {
    let [of_recent, of_all] = [&context.recent, &context.overall].map(|view| view.total().weight);
    vec![
        context.amount(recent, of_recent),
        Cell::Bar(part(recent, of_recent)),
        context.amount(overall, of_all),
        Cell::share(part(overall, of_all)),
    ]
}
