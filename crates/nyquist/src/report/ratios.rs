//! How often one event happened per occurrence of another, by function.

use super::answer::print_answer;
use super::context::{TABLE_ROWS, limit, more};
use crate::args::{ReportArgs, SortBy};
use crate::failure::Failure;
use crate::page;
use crate::printer::Printer;
use crate::ratio::{self, Events, Sides};
use crate::text::{Cell, Column, Screen, Style, Table, Text};
use nyquist_analysis::{FunctionRatio, Ratios};
use serde_json::{Value, json};
use std::cmp::Ordering;

/// Reads both events, and prints the functions.
pub(super) fn run(args: &ReportArgs, text: &str) -> Result<(), Failure> {
    let printer = Printer::new(args.read.verbosity);
    let sides = Sides::read(&args.file, text, &args.read.filter, &args.read.symbols, printer)?;
    let indexes = sides.indexes();
    let views = ratio::views(&indexes, &args.read.filter)?;
    let mut ratios = nyquist_analysis::ratios(&views[0], &views[1]);
    choose(args, &mut ratios);
    let events = sides.events();
    if !args.format.json {
        let head = events.heading(&ratios.whole) + &ratio::note_of_kernel(&views);
        return page::print(Text::from(head) + "\n" + table(args, &events, &ratios));
    }
    print_answer(&views[0], "ratio", members(args, &events, &ratios))
}

/// Sorts, and leaves out functions with less than the least share of the first event.
fn choose(args: &ReportArgs, ratios: &mut Ratios<'_>) {
    let least = ratios.whole.count * args.percent.unwrap_or(0.0) / 100.0;
    ratios.functions.retain(|row| row.total.count >= least);
    match args.sort {
        // The order of the analysis.
        SortBy::Own => {}
        SortBy::Total => ratios
            .functions
            .sort_by(|one, other| other.total.count.partial_cmp(&one.total.count).unwrap_or(Ordering::Equal)),
        SortBy::Name => {
            ratios.functions.sort_by_cached_key(|row| args.format.names().show(row.function.name));
        }
    }
}

fn table(args: &ReportArgs, events: &Events, ratios: &Ratios<'_>) -> Text {
    let screen = Screen::of_stdout();
    let mut table = Table::new(vec![
        Column::Number("A"),
        Column::Number("B"),
        Column::Number("A/B"),
        Column::Number("±"),
        Column::Number("TOTAL A"),
        Column::Number("B"),
        Column::Number("A/B"),
        Column::Minor("LIB"),
        Column::Main("FUNCTION"),
    ]);
    let limit = limit(args.limit, TABLE_ROWS);
    for row in ratios.functions.iter().take(limit) {
        table.add(cells(args, events, row));
    }
    let hidden = ratios.functions.len().saturating_sub(limit);
    let uncertain = if ratios.functions.iter().take(limit).any(is_uncertain) {
        "~ marks what too few observations make uncertain.\n"
    } else {
        ""
    };
    table.render(screen) + more(hidden, "function", "functions") + uncertain
}

fn is_uncertain(row: &FunctionRatio<'_>) -> bool {
    [row.self_ratio, row.total].iter().any(|ratio| ratio.is_uncertain && ratio.ratio.is_some())
}

fn cells(args: &ReportArgs, events: &Events, row: &FunctionRatio<'_>) -> Vec<Cell> {
    let style = |is_uncertain| if is_uncertain { Style::Dim } else { Style::Plain };
    let FunctionRatio { self_ratio, total, .. } = row;
    vec![
        events.amount(0, self_ratio.count).into(),
        events.amount(1, self_ratio.of).into(),
        Cell::new(events.ratio(self_ratio), style(self_ratio.is_uncertain)),
        Cell::new(Events::error(self_ratio), Style::Dim),
        events.amount(0, total.count).into(),
        events.amount(1, total.of).into(),
        Cell::new(events.ratio(total), style(total.is_uncertain)),
        Cell::new(row.function.lib.unwrap_or_default(), Style::Dim),
        args.format.names().show(row.function.name).into(),
    ]
}

/// The members of the JSON.
fn members(args: &ReportArgs, events: &Events, ratios: &Ratios<'_>) -> Value {
    let rows = ratios.functions.iter().take(limit(args.limit, TABLE_ROWS));
    let row = |row: &FunctionRatio<'_>| {
        json!({
            "function": row.function.name,
            "lib": row.function.lib,
            "file": row.function.file,
            "line": row.function.line,
            "self": row.self_ratio,
            "total": row.total,
        })
    };
    json!({
        "ratio": events.json(&ratios.whole),
        "function_count": ratios.functions.len(),
        "functions": rows.map(row).collect::<Vec<_>>(),
    })
}
