//! Threads by their CPU time or waiting time.

use super::context::{PageContext, key};
use super::types::{Cell, Column, Page, Row, Width};
use crate::args::SortBy;
use crate::scale::milliseconds;
use crate::text::Style;
use crate::top::question::Period;
use nyquist_analysis::{SampleState, ThreadRow};
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
    let heading = match context.question.state {
        SampleState::OnCpu => "CPU",
        SampleState::OffCpu => "WAITS",
        SampleState::Both => "BOTH",
    };
    let cpu = |period| {
        let is_sorted = !by_name && context.question.period == period;
        Column::new(heading, Width::Number(7)).under(context.group(period)).sorted(is_sorted)
    };
    vec![
        cpu(Period::Recent),
        Column::bars(),
        cpu(Period::Overall),
        Column::new("TIME", Width::Number(12)),
        Column::new("TID", Width::Number(8)),
        Column::new("THREAD", Width::Rest).sorted(by_name),
        Column::new("PROCESS", Width::Part(4)),
    ]
}

fn row(context: &PageContext<'_>, row: &ThreadRow<'_>, recent: u64) -> Row {
    let profile = &context.data.snapshot.profile;
    let process = profile.process(row.process);
    let cpus = |period, weight| context.load(period, weight).cpus;
    let recent = cpus(Period::Recent, recent);
    Row {
        key: key((row.tid, row.pid)),
        name: context.names.show(row.name),
        thread: Some(row.thread),
        cells: vec![
            Cell::share(recent),
            Cell::Bar(recent),
            Cell::share(cpus(Period::Overall, row.amount.weight)),
            Cell::dim(&milliseconds(row.amount.weight.saturating_mul(profile.meta().interval))),
            Cell::text(row.tid, Style::Plain),
            Cell::Name,
            Cell::dim(&format!("{} ({})", context.names.show(&process.name), row.pid)),
        ],
        ..Row::default()
    }
}
