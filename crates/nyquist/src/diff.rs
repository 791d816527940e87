//! `nyquist diff`: what got slower and what faster between two sets of runs, and what is noise.

use crate::args::DiffArgs;
use crate::failure::{FAILED, Failure};
use crate::number::{counted, grouped, percent};
use crate::printer::Printer;
use crate::scale::milliseconds;
use crate::text::{Cell, Column, Names, Screen, Style, Table, Text};
use crate::{input, page, selection};
use nyquist_analysis::{Comparison, Diff, DiffOptions, DiffUnit, FunctionDiff, Index, View};
use nyquist_profile::Profile;
use serde_json::{Value, json};
use std::path::PathBuf;

/// The least share of the whole of a function that lets a check fail.
const LEAST_SHARE: f64 = 0.01;

/// How many functions are named where a check fails.
const NAMED: usize = 3;

/// Runs the subcommand.
pub(crate) fn run(args: &DiffArgs) -> Result<(), Failure> {
    let printer = Printer::new(args.verbosity);
    let Some((before, after)) = args.sides() else {
        return Err(Failure::new("a profile before and one after are needed")
            .hint("nyquist diff BEFORE AFTER; of several runs: nyquist diff BEFORE... --after AFTER..."));
    };
    let mut before_profiles =
        input::read_all(before.iter().chain(after), &args.filter, &args.symbols, printer)?;
    for profile in &mut before_profiles {
        selection::split(profile, &args.filter);
    }
    let after_profiles = before_profiles.split_off(before.len());
    let indexes = |profiles| -> Vec<Index<'_>> { <[Profile]>::iter(profiles).map(Index::new).collect() };
    let (before_indexes, after_indexes) = (indexes(&before_profiles), indexes(&after_profiles));
    let before_views = views(before, &before_indexes, args)?;
    let after_views = views(after, &after_indexes, args)?;
    let unit = if args.share { DiffUnit::Share } else { DiffUnit::Nanoseconds };
    let options = DiffOptions { unit, ..DiffOptions::default() };
    let diff = nyquist_analysis::diff(
        &before_views.iter().collect::<Vec<_>>(),
        &after_views.iter().collect::<Vec<_>>(),
        &options,
    );
    if args.format.json {
        page::print_json(&json(&diff, args))?;
    } else {
        page::print(text(&diff, args, Screen::of_stdout()))?;
    }
    check(&diff, args)
}

fn views<'a>(files: &[PathBuf], indexes: &'a [Index<'a>], args: &DiffArgs) -> Result<Vec<View<'a>>, Failure> {
    let view = |(file, index): (&PathBuf, &'a Index<'a>)| {
        let name = |failure: Failure| Failure {
            message: format!("{}: {}", file.display(), failure.message),
            ..failure
        };
        let selected = selection::select(index.profile(), &args.filter).map_err(name)?;
        let view = View::new(index, &selected);
        if view.is_empty() { Err(name(selection::nothing_selected(&view, &args.filter))) } else { Ok(view) }
    };
    files.iter().zip(indexes).map(view).collect()
}

/// Fails where something got slower by more than is accepted.
fn check(diff: &Diff<'_>, args: &DiffArgs) -> Result<(), Failure> {
    let Some(accepted) = args.fail_above.map(|percent| percent / 100.0) else { return Ok(()) };
    let is_slower = |comparison: &Comparison| {
        // What was not there before has grown beyond any share.
        comparison.change > 0.0
            && !comparison.is_noise
            && comparison.relative.is_none_or(|share| share > accepted)
    };
    let whole = whole_after(diff);
    let counts = |function: &&FunctionDiff<'_>| {
        is_slower(&function.self_time) && function.self_time.after >= whole * LEAST_SHARE
    };
    let slower: Vec<_> = diff.functions.iter().filter(counts).collect();
    if slower.is_empty() && (args.share || !is_slower(&diff.total)) {
        return Ok(());
    }
    let named = |function: &&FunctionDiff<'_>| {
        format!("{} ({})", args.format.names().show(&function.name), relative(&function.self_time))
    };
    let mut what: Vec<_> = slower.iter().take(NAMED).map(named).collect();
    if slower.len() > NAMED {
        what.push(format!("{} more", slower.len() - NAMED));
    }
    if slower.is_empty() {
        what.push(format!("the whole ({})", relative(&diff.total)));
    }
    let message = format!("slower by more than {}: {}", percent(accepted), what.join(", "));
    Err(Failure::new(message).status(FAILED))
}

/// What the whole takes after, in the unit of the functions.
fn whole_after(diff: &Diff<'_>) -> f64 {
    match diff.unit {
        DiffUnit::Nanoseconds => diff.total.after,
        DiffUnit::Share => 1.0,
    }
}

fn relative(comparison: &Comparison) -> String {
    match comparison.relative {
        Some(share) => format!("{:+.1}%", share * 100.0),
        None if comparison.after > 0.0 => "new".to_owned(),
        None => "+0.0%".to_owned(),
    }
}

/// A value in its unit.
fn value(unit: DiffUnit, value: f64) -> String {
    match unit {
        DiffUnit::Nanoseconds => milliseconds(value.abs() as u64),
        DiffUnit::Share => percent(value.abs()),
    }
}

/// A change in the values' unit, with its sign.
fn change(unit: DiffUnit, change: f64) -> String {
    format!("{}{}", if change < 0.0 { '-' } else { '+' }, value(unit, change))
}

/// The diff as text: the whole, then what got slower, then what got faster.
fn text(diff: &Diff<'_>, args: &DiffArgs, screen: Screen) -> Text {
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
    let mut text = Text::from(heading(diff));
    if shown == 0 {
        text.push("No function differs by more than noise.\n");
    }
    for (title, mut functions) in parts {
        functions.truncate(limit);
        if !functions.is_empty() {
            text = text + "\n" + Style::Bold.paint(title, screen) + "\n";
            text.push(table(diff.unit, &functions, args.format.names()).render(screen));
        }
    }
    text + left_out(diff, args, count - shown)
}

/// The functions that have time of their own, which is what the table compares.
fn with_time<'d, 'a>(diff: &'d Diff<'a>) -> impl Iterator<Item = &'d FunctionDiff<'a>> {
    diff.functions.iter().filter(|function| function.self_time.before > 0.0 || function.self_time.after > 0.0)
}

/// What is not shown.
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

fn heading(diff: &Diff<'_>) -> String {
    let seconds = |nanoseconds: f64| format!("{:.3} s", nanoseconds / 1e9);
    let runs = |count: usize| {
        if count == 1 { String::new() } else { format!(" (mean of {} runs)", grouped(count as u64)) }
    };
    let noise = if diff.total.is_noise { ", which is noise" } else { "" };
    format!(
        "CPU time before {}{}, after {}{}: {} ± {}{noise}\n",
        seconds(diff.total.before),
        runs(diff.runs_before),
        seconds(diff.total.after),
        runs(diff.runs_after),
        relative(&diff.total),
        percent(if diff.total.before > 0.0 { diff.total.margin / diff.total.before } else { 0.0 }),
    )
}

fn table(unit: DiffUnit, functions: &[&FunctionDiff<'_>], names: Names) -> Table {
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
            Cell::new(change(unit, own.change), style),
            Cell::new(value(unit, own.margin), Style::Dim),
            value(unit, own.before).into(),
            value(unit, own.after).into(),
            Cell::new(if own.is_noise { "noise" } else { "" }, Style::Dim),
            Cell::new(function.lib.unwrap_or_default(), Style::Dim),
            names.show(&function.name).into(),
        ]);
    }
    table
}

/// The object that `docs/report-json.md` describes.
fn json(diff: &Diff<'_>, args: &DiffArgs) -> Value {
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let chosen = diff.functions.iter().filter(|function| args.all || !function.self_time.is_noise);
    let function = |function: &FunctionDiff<'_>| {
        json!({
            "function": function.name,
            "lib": function.lib,
            "self": function.self_time,
            "total": function.total,
        })
    };
    json!({
        "schema": "nyquist-diff/1",
        "unit": diff.unit,
        "runs_before": diff.runs_before,
        "runs_after": diff.runs_after,
        "whole": diff.total,
        "function_count": diff.functions.len(),
        "noise_count": diff.functions.iter().filter(|function| function.self_time.is_noise).count(),
        "functions": chosen.take(limit).map(function).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_a_sign_and_a_unit() {
        let check = |unit, number, expected| assert_eq!(change(unit, number), expected);
        check(DiffUnit::Nanoseconds, 12_400_000.0, "+12 ms");
        check(DiffUnit::Nanoseconds, -1_240_000.0, "-1.2 ms");
        check(DiffUnit::Share, -0.012, "-1.2%");
    }
}
