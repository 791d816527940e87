//! A comparison as tables for a terminal.

use super::amounts::{ValueForm, relative};
use super::compared::Compared;
use crate::args::DiffArgs;
use crate::number::{counted, grouped, percent};
use crate::scale::amount;
use crate::text::{Cell, Column, Names, Screen, Style, Table, Text, one_line};
use nyquist_analysis::{Diff, FunctionDiff};
use nyquist_profile::{Measure, Unit};

/// The diff as text: the whole, then slower functions, then faster ones.
pub(super) fn of(compared: &Compared<'_, '_>, args: &DiffArgs, screen: Screen) -> Text {
    let Compared { diff, measure, .. } = *compared;
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let chosen: Vec<_> =
        with_time(diff).filter(|function| args.all || !function.self_time.is_noise).collect();
    let count = chosen.len();
    let (same, changed): (Vec<_>, Vec<_>) =
        chosen.into_iter().partition(|function| function.self_time.change.abs() < f64::EPSILON);
    let (slower, faster): (Vec<_>, Vec<_>) =
        changed.into_iter().partition(|function| function.self_time.change > 0.0);
    let parts = [("Slower", slower), ("Faster", faster), ("Unchanged", same)];
    let shown: usize = parts.iter().map(|(_, functions)| functions.len().min(limit)).sum();
    let mut text = Text::default();
    if let Some(name) = compared.name {
        text = Style::Bold.paint(name, screen) + "\n";
    }
    text.push(heading(diff, measure));
    if shown == 0 {
        text.push("No function differs by more than noise.\n");
    }
    for (title, mut functions) in parts {
        functions.truncate(limit);
        if !functions.is_empty() {
            text = text + "\n" + Style::Bold.paint(title, screen) + "\n";
            text.push(table(ValueForm::of(diff, measure), &functions, args.format.names()).render(screen));
        }
    }
    text + left_out(diff, args, count - shown)
}

/// The functions that have self time, because the table compares self times.
pub(super) fn with_time<'d, 'a>(diff: &'d Diff<'a>) -> impl Iterator<Item = &'d FunctionDiff<'a>> {
    diff.functions.iter().filter(|function| function.self_time.before > 0.0 || function.self_time.after > 0.0)
}

/// The number of changes that are not shown.
fn left_out(diff: &Diff<'_>, args: &DiffArgs, cut: usize) -> String {
    let mut lines = Vec::new();
    if cut > 0 {
        lines.push(format!("\n{} (--limit 0 shows all)\n", counted(cut as u64, "more function")));
    }
    let noise = with_time(diff).filter(|function| function.self_time.is_noise).count();
    if noise > 0 && !args.all {
        let functions = counted(noise as u64, "function");
        lines.push(format!("\n{functions} differ by no more than noise (--all shows them)\n"));
    }
    lines.concat()
}

/// What all takes before and after.
pub(super) fn heading(diff: &Diff<'_>, measure: &Measure) -> String {
    let whole = |value: f64| match measure.unit {
        Unit::Time => format!("{:.3} s", value / 1e9),
        unit => amount(unit, value as u64),
    };
    let runs = |count: usize| {
        if count == 1 { String::new() } else { format!(" (mean of {} runs)", grouped(count as u64)) }
    };
    let noise = if diff.total.is_noise { ", which is noise" } else { "" };
    format!(
        "{} before {}{}, after {}{}: {} ± {}{noise}\n",
        one_line(&measure.name),
        whole(diff.total.before),
        runs(diff.runs_before),
        whole(diff.total.after),
        runs(diff.runs_after),
        relative(&diff.total),
        percent(if diff.total.before > 0.0 { diff.total.margin / diff.total.before } else { 0.0 }),
    )
}

fn table(shown: ValueForm, functions: &[&FunctionDiff<'_>], names: Names) -> Table {
    let mut table = Table::new(vec![
        Column::Number("CHANGE"),
        Column::Number(""),
        Column::Number("±"),
        Column::Number("BEFORE"),
        Column::Number("AFTER"),
        Column::Text(""),
        Column::Minor("LIB"),
        Column::Main("FUNCTION"),
    ]);
    for function in functions {
        let own = &function.self_time;
        let style = match own {
            own if own.is_noise => Style::Dim,
            own if own.change < 0.0 => Style::Good,
            _ => Style::Hot,
        };
        table.add(vec![
            Cell::new(relative(own), style),
            Cell::new(shown.change(own.change), style),
            Cell::new(shown.value(own.margin), Style::Dim),
            shown.value(own.before).into(),
            shown.value(own.after).into(),
            Cell::new(if own.is_noise { "noise" } else { "" }, Style::Dim),
            Cell::new(function.lib.unwrap_or_default(), Style::Dim),
            names.show(&function.name).into(),
        ]);
    }
    table
}
