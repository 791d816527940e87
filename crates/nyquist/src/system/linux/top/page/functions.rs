//! Functions by self and total time, in the last seconds and overall.

use super::context::{PageContext, key, part};
use super::types::{Cell, Column, Page, Row, Width};
use crate::args::SortBy;
use crate::system::linux::top::question::Period;
use nyquist_analysis::Function;
use std::cmp::Reverse;
use std::collections::HashMap;

/// The weights of a function in a period.
#[derive(Clone, Copy, Default)]
struct Weights {
    own: u64,
    total: u64,
}

impl Weights {
    fn of(function: &Function<'_>) -> Self {
        Self { own: function.self_amount.weight, total: function.total.weight }
    }
}

/// A function with its weights in the last seconds and overall.
struct Both<'a> {
    function: Function<'a>,
    recent: Weights,
    overall: Weights,
}

impl Both<'_> {
    /// The weights of a period, and those of the other.
    fn by(&self, period: Period) -> (Weights, Weights) {
        match period {
            Period::Recent => (self.recent, self.overall),
            Period::Overall => (self.overall, self.recent),
        }
    }
}

pub(super) fn page(asked: &PageContext<'_>) -> Page {
    let totals = [asked.recent.total().weight, asked.overall.total().weight];
    let nothing = asked.nothing("Nothing was sampled yet");
    Page {
        columns: columns(asked),
        rows: functions(asked).iter().map(|both| row(asked, both, totals)).collect(),
        empty: if asked.search.is_some() { "No function of that name was sampled" } else { nothing },
        ..Page::default()
    }
}

fn functions<'a>(asked: &PageContext<'a>) -> Vec<Both<'a>> {
    let recent = asked.recent.functions().functions;
    let recent: HashMap<_, _> = recent.iter().map(|it| (it.func, Weights::of(it))).collect();
    let found = asked.overall.functions().functions.into_iter().filter(|it| asked.finds(it.name));
    let mut functions: Vec<_> = found
        .map(|function| Both {
            recent: recent.get(&function.func).copied().unwrap_or_default(),
            overall: Weights::of(&function),
            function,
        })
        .collect();
    let period = asked.question.period;
    match asked.question.sort {
        SortBy::Own => functions.sort_by_key(|both| {
            let (first, second) = both.by(period);
            Reverse((first.own, first.total, second.own))
        }),
        SortBy::Total => functions.sort_by_key(|both| {
            let (first, second) = both.by(period);
            Reverse((first.total, first.own, second.total))
        }),
        SortBy::Name => functions.sort_by_cached_key(|both| asked.names.show(both.function.name)),
    }
    functions
}

fn columns(asked: &PageContext<'_>) -> Vec<Column> {
    let number = |heading, period, sort| {
        let is_sorted = asked.question.period == period && asked.question.sort == sort;
        Column::new(heading, Width::Number(6)).sorted(is_sorted)
    };
    vec![
        number("SELF", Period::Recent, SortBy::Own).under(asked.group(Period::Recent)),
        Column::bars(),
        number("TOTAL", Period::Recent, SortBy::Total),
        number("SELF", Period::Overall, SortBy::Own).under(asked.group(Period::Overall)),
        number("TOTAL", Period::Overall, SortBy::Total),
        Column::new("FUNCTION", Width::Rest).sorted(asked.question.sort == SortBy::Name),
        Column::new("LIB", Width::Part(6)),
    ]
}

fn row(asked: &PageContext<'_>, both: &Both<'_>, [recent, overall]: [u64; 2]) -> Row {
    let Function { name, lib, .. } = both.function;
    let lib = lib.unwrap_or_default();
    let own = part(both.recent.own, recent);
    Row {
        key: key((name, lib)),
        name: asked.names.show(name),
        cells: vec![
            Cell::share(own),
            Cell::Bar(own),
            Cell::share(part(both.recent.total, recent)),
            Cell::share(part(both.overall.own, overall)),
            Cell::share(part(both.overall.total, overall)),
            Cell::Name,
            Cell::dim(lib),
        ],
        ..Row::default()
    }
}
