//! The answer to a query: rows and columns, of functions, the tree, threads or the command's output.

mod context;
mod flame;
mod functions;
mod threads;
mod tree;
mod types;

pub(super) use context::PageData;
pub(super) use types::{Cell, Column, Page, Row, Width};

use super::question::{Period, Question, ViewKind};
use crate::text::one_line;
use context::PageContext;

/// Answers a query. O(samples of the last seconds + nodes + functions).
pub(super) fn page(data: PageData<'_>, question: &Question) -> Page {
    let context = PageContext::new(data, question);
    let page = match question.view {
        ViewKind::Functions => functions::page(&context),
        ViewKind::Tree => tree::page(&context),
        ViewKind::Threads => threads::page(&context),
        ViewKind::Output => output(data.output),
        ViewKind::Flame => flame::page(&context),
    };
    let load = |period| context.load(period, context.view(period).total().weight);
    Page { recent: load(Period::Recent), overall: load(Period::Overall), ..page }
}

fn output(lines: &[String]) -> Page {
    let row = |(key, line): (u64, &String)| Row {
        key,
        name: one_line(line).into_owned(),
        cells: vec![Cell::Name],
        ..Row::default()
    };
    Page {
        columns: vec![Column::new("OUTPUT", Width::Rest)],
        rows: (0..).zip(lines).map(row).collect(),
        empty: "The command has printed nothing",
        ..Page::default()
    }
}
