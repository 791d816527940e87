//! `nyquist diff`: functions that became slower or faster between two sets of runs, and noise.

use crate::args::DiffArgs;
use crate::failure::{FAILED, Failure};
use crate::number::{counted, grouped, percent};
use crate::printer::Printer;
use crate::scale::amount;
use crate::text::{Cell, Column, Names, Screen, Style, Table, Text, one_line};
use crate::{input, page, selection};
use nyquist_analysis::{Comparison, Diff, DiffOptions, DiffUnit, FunctionDiff, Index, View};
use nyquist_profile::{Measure, Profile, Unit};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The least share of the whole at which a function can make a check fail.
const MIN_SHARE: f64 = 0.01;

/// The number of functions that a failed check names.
const NAMED: usize = 3;

/// Runs the subcommand.
pub(crate) fn run(args: &DiffArgs) -> Result<(), Failure> {
    let printer = Printer::new(args.read.verbosity);
    let Some((before, after)) = args.sides() else {
        return Err(Failure::new("a profile before and one after are needed")
            .hint("nyquist diff BEFORE AFTER; of several runs: nyquist diff BEFORE... --after AFTER..."));
    };
    let mut before_profiles =
        input::read_all(before.iter().chain(after), &args.read.filter, &args.read.symbols, printer)?;
    for profile in &mut before_profiles {
        selection::split(profile, &args.read.filter);
    }
    let measure = common_measure(before.iter().chain(after), &before_profiles)?;
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
        page::print_json(&json(&diff, &measure, args))?;
    } else {
        page::print(text(&diff, &measure, args, Screen::of_stdout()))?;
    }
    check(&diff, args)
}

/// The unit that all profiles count.
///
/// # Errors
/// If one counts something different from the first.
fn common_measure<'f>(
    mut files: impl Iterator<Item = &'f PathBuf>,
    profiles: &[Profile],
) -> Result<Measure, Failure> {
    let mut sides = files.by_ref().zip(profiles).map(|(file, profile)| (file, &profile.meta().measure));
    let Some((first, measure)) = sides.next() else { return Ok(Measure::default()) };
    match sides.find(|(_, other)| *other != measure) {
        None => Ok(measure.clone()),
        Some((file, other)) => Err(Failure::new(format!(
            "cannot compare profiles that count different things: {} counts {}, {} counts {}",
            first.display(),
            one_line(&measure.name),
            file.display(),
            one_line(&other.name)
        ))
        .hint("--event chooses what is counted, where a profile has several values")),
    }
}

fn views<'a>(files: &[PathBuf], indexes: &'a [Index<'a>], args: &DiffArgs) -> Result<Vec<View<'a>>, Failure> {
    let view = |(file, index): (&PathBuf, &'a Index<'a>)| {
        let name = |failure: Failure| Failure {
            message: format!("{}: {}", file.display(), failure.message),
            ..failure
        };
        let selected = selection::select(index.profile(), &args.read.filter).map_err(name)?;
        let view = View::new(index, &selected);
        if view.is_empty() {
            Err(name(selection::nothing_selected(&view, &args.read.filter)))
        } else {
            Ok(view)
        }
    };
    files.iter().zip(indexes).map(view).collect()
}

/// Fails if a function became slower by more than is accepted.
fn check(diff: &Diff<'_>, args: &DiffArgs) -> Result<(), Failure> {
    let Some(accepted) = args.fail_above.map(|percent| percent / 100.0) else { return Ok(()) };
    let is_slower = |comparison: &Comparison| {
        // A function that did not exist before has grown by an infinite share.
        comparison.change > 0.0
            && !comparison.is_noise
            && comparison.relative.is_none_or(|share| share > accepted)
    };
    let whole = whole_after(diff);
    let counts = |function: &&FunctionDiff<'_>| {
        is_slower(&function.self_time) && function.self_time.after >= whole * MIN_SHARE
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

/// The whole weight after, in the unit of the functions.
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

/// The form of values.
#[derive(Clone, Copy)]
enum ValueForm {
    /// Amounts of the events that the profiles count.
    Amounts(Unit),
    Shares,
}

impl ValueForm {
    fn of(diff: &Diff<'_>, measure: &Measure) -> Self {
        match diff.unit {
            DiffUnit::Nanoseconds => Self::Amounts(measure.unit),
            DiffUnit::Share => Self::Shares,
        }
    }

    /// A value in its unit.
    fn value(self, value: f64) -> String {
        match self {
            Self::Amounts(unit) => amount(unit, value.abs() as u64),
            Self::Shares => percent(value.abs()),
        }
    }

    /// A change in the values' unit, with its sign.
    fn change(self, change: f64) -> String {
        format!("{}{}", if change < 0.0 { '-' } else { '+' }, self.value(change))
    }
}

/// The diff as text: the whole, then slower functions, then faster ones.
fn text(diff: &Diff<'_>, measure: &Measure, args: &DiffArgs, screen: Screen) -> Text {
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
    let mut text = Text::from(heading(diff, measure));
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
fn with_time<'d, 'a>(diff: &'d Diff<'a>) -> impl Iterator<Item = &'d FunctionDiff<'a>> {
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

fn heading(diff: &Diff<'_>, measure: &Measure) -> String {
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

/// The object that `docs/report-json.md` describes.
fn json(diff: &Diff<'_>, measure: &Measure, args: &DiffArgs) -> Value {
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
        "unit": match diff.unit {
            DiffUnit::Nanoseconds if measure.unit != Unit::Time => json!(measure.unit.as_str()),
            unit => json!(unit),
        },
        "measure": measure.name,
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
        let check = |shown: ValueForm, number, expected| assert_eq!(shown.change(number), expected);
        check(ValueForm::Amounts(Unit::Time), 12_400_000.0, "+12 ms");
        check(ValueForm::Amounts(Unit::Time), -1_240_000.0, "-1.2 ms");
        check(ValueForm::Amounts(Unit::Count), 3000.0, "+3,000");
        check(ValueForm::Amounts(Unit::Bytes), -2048.0, "-2.0 kB");
        check(ValueForm::Shares, -0.012, "-1.2%");
    }
}
