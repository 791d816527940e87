//! `nyquist diff`: functions that became slower or faster between two sets of runs, and noise.

mod amounts;
mod compared;
mod json;
mod markdown;
mod pairs;
mod text;
mod verdict;

use crate::args::DiffArgs;
use crate::failure::{FAILED, Failure};
use crate::printer::Printer;
use crate::text::{Screen, Text, one_line};
use crate::{input, page, selection};
use compared::Compared;
use nyquist_analysis::{DiffOptions, DiffUnit, Index, View};
use nyquist_profile::{Measure, Profile};
use pairs::Pair;
use serde_json::Value;
use std::path::PathBuf;
use verdict::Verdict;

/// The status if there is no comparison. [`FAILED`] says that something became slower.
const NOT_COMPARED: u8 = 2;

/// A comparison in the form in which it is printed.
enum Rendered {
    Text(Text),
    Json(Value),
}

/// Runs the subcommand.
pub(crate) fn run(args: &DiffArgs) -> Result<(), Failure> {
    let printer = Printer::new(args.read.verbosity);
    let mut rendered = Vec::new();
    let mut slower = Vec::new();
    let pairs = pairs::of(args, printer).map_err(not_compared)?;
    for pair in &pairs {
        let (output, failed) = compare(pair, args, printer).map_err(not_compared)?;
        rendered.push(output);
        slower.extend(failed);
    }
    print(rendered, args)?;
    match slower.as_slice() {
        [] => Ok(()),
        messages => Err(Failure::new(messages.join("; ")).status(FAILED)),
    }
}

fn not_compared(failure: Failure) -> Failure {
    failure.status(NOT_COMPARED)
}

/// Compares the profiles of a pair. Returns what is printed, and what became slower than is accepted.
fn compare(pair: &Pair, args: &DiffArgs, printer: Printer) -> Result<(Rendered, Option<String>), Failure> {
    let (before, after) = (&pair.before, &pair.after);
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
    let verdict = args.fail_above.map(|percent| Verdict::of(&diff, percent / 100.0));
    let compared = Compared { name: pair.name.as_deref(), diff: &diff, measure: &measure, verdict };
    Ok((render(&compared, args), compared.failure(args)))
}

fn render(compared: &Compared<'_, '_>, args: &DiffArgs) -> Rendered {
    if args.format.json {
        Rendered::Json(json::of(compared, args))
    } else if args.markdown {
        Rendered::Text(markdown::of(compared, args))
    } else {
        Rendered::Text(text::of(compared, args, Screen::of_stdout()))
    }
}

/// Prints the comparisons one after the other. As JSON they are one object.
fn print(rendered: Vec<Rendered>, args: &DiffArgs) -> Result<(), Failure> {
    let (mut text, mut objects) = (Text::default(), Vec::new());
    for output in rendered {
        match output {
            Rendered::Text(part) if text.as_str().is_empty() => text = part,
            Rendered::Text(part) => text = text + "\n" + part,
            Rendered::Json(object) => objects.push(object),
        }
    }
    match (args.format.json, objects.len()) {
        (false, _) => page::print(text),
        (true, 1) => page::print_json(&objects[0]),
        (true, _) => page::print_json(&json::of_several(&objects)),
    }
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
