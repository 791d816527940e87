//! Functions by self and total time, in the last seconds and overall.

use super::context::{PageContext, key, part};
use super::types::{Cell, Column, Page, Row, Width};
use crate::args::SortBy;
use crate::top::question::Period;
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

pub(super) fn page(context: &PageContext<'_>) -> Page {
    let totals = [context.recent.total().weight, context.overall.total().weight];
    let nothing = context.nothing("Nothing was sampled yet");
    Page {
        columns: columns(context),
        rows: functions(context).iter().map(|both| row(context, both, totals)).collect(),
        empty: if context.search.is_some() { "No function of that name was sampled" } else { nothing },
        ..Page::default()
    }
}

fn functions<'a>(context: &PageContext<'a>) -> Vec<Both<'a>> {
    let recent = context.recent.functions().functions;
    let recent: HashMap<_, _> = recent.iter().map(|it| (it.func, Weights::of(it))).collect();
    let found = context.overall.functions().functions.into_iter().filter(|it| context.finds(it.name));
    let mut functions: Vec<_> = found
        .map(|function| Both {
            recent: recent.get(&function.func).copied().unwrap_or_default(),
            overall: Weights::of(&function),
            function,
        })
        .collect();
    let period = context.question.period;
    match context.question.sort {
        SortBy::Own => functions.sort_by_key(|both| {
            let (first, second) = both.by(period);
            Reverse((first.own, first.total, second.own))
        }),
        SortBy::Total => functions.sort_by_key(|both| {
            let (first, second) = both.by(period);
            Reverse((first.total, first.own, second.total))
        }),
        SortBy::Name => functions.sort_by_cached_key(|both| context.names.show(both.function.name)),
    }
    functions
}

fn columns(context: &PageContext<'_>) -> Vec<Column> {
    let number = |heading, period, sort| {
        let is_sorted = context.question.period == period && context.question.sort == sort;
        Column::new(heading, context.amount_width()).sorted(is_sorted)
    };
    // The standard errors of totals.
    let error = || context.has_errors().then(|| Column::new("±", Width::Number(6)));
    let mut columns = vec![
        number("SELF", Period::Recent, SortBy::Own).under(context.group(Period::Recent)),
        Column::bars(),
        number("TOTAL", Period::Recent, SortBy::Total),
    ];
    columns.extend(error());
    columns.push(number("SELF", Period::Overall, SortBy::Own).under(context.group(Period::Overall)));
    columns.push(number("TOTAL", Period::Overall, SortBy::Total));
    columns.extend(error());
    columns.push(Column::new("FUNCTION", Width::Rest).sorted(context.question.sort == SortBy::Name));
    columns.push(Column::new("LIB", Width::Part(6)));
    columns
}

fn row(context: &PageContext<'_>, both: &Both<'_>, [recent, overall]: [u64; 2]) -> Row {
    let Function { name, lib, .. } = both.function;
    let lib = lib.unwrap_or_default();
    let error = |period, weight| context.has_errors().then(|| context.error(period, weight));
    let mut cells = vec![
        context.amount(both.recent.own, recent),
        Cell::Bar(part(both.recent.own, recent)),
        context.amount(both.recent.total, recent),
    ];
    cells.extend(error(Period::Recent, both.recent.total));
    cells.push(context.amount(both.overall.own, overall));
    cells.push(context.amount(both.overall.total, overall));
    cells.extend(error(Period::Overall, both.overall.total));
    cells.extend([Cell::Name, Cell::dim(lib)]);
    Row { key: key((name, lib)), name: context.names.show(name), cells, ..Row::default() }
}
