//! `nyquist annotate`: the source lines and the instructions of a function, with what each takes.

mod code;
mod json;
mod listing;
mod named;
mod places;
mod source;
mod text;

use crate::args::{AnnotateArgs, SymbolArgs};
use crate::failure::Failure;
use crate::finder::finder;
use crate::functions;
use crate::printer::Printer;
use crate::scale::Scale;
use crate::text::{Names, Screen};
use crate::watch::Watch;
use crate::{input, page, selection};
use listing::Listing;
use nyquist_analysis::{Index, View};
use nyquist_profile::{FuncId, Profile, StackId};
use places::Places;
use std::collections::{BTreeMap, BTreeSet};

/// Runs the subcommand.
pub(crate) fn run(args: &AnnotateArgs) -> Result<(), Failure> {
    let printer = Printer::new(args.verbosity);
    let mut profile = input::read(&args.file, &args.symbols, printer)?;
    selection::split(&mut profile, &args.filter);
    let selected = selection::select(&profile, &args.filter)?;
    let index = Index::new(&profile);
    let view = View::new(&index, &selected);
    if view.is_empty() {
        return Err(selection::nothing_selected(&view, &args.filter));
    }
    let chosen = functions::choose(&view, &args.function)?;
    if let Some(others) = chosen.others(args.format.names()) {
        printer.say(others);
    }
    let annotated = Annotated::new(&view, &chosen.funcs, args);
    if args.format.json {
        page::print_json(&json::json(&annotated))
    } else {
        page::print(text::text(&annotated))
    }
}

/// A function with its places, source and code.
struct Annotated<'a> {
    args: &'a AnnotateArgs,
    profile: &'a Profile,
    /// The function; several where it has several entries, such as one a lib.
    funcs: BTreeSet<FuncId>,
    places: Places,
    listing: Listing,
    scale: Scale,
    screen: Screen,
    names: Names,
}

impl<'a> Annotated<'a> {
    fn new(view: &View<'a>, funcs: &[FuncId], args: &'a AnnotateArgs) -> Self {
        let profile = view.profile();
        let funcs: BTreeSet<_> = funcs.iter().copied().collect();
        let places = places::places(profile, stacks(view).into_iter(), &funcs);
        let finder = finder(&args.symbols, Watch::new(Printer::new(args.verbosity), None));
        let listing = Listing::new(profile, &places, &funcs, args, &finder);
        Self {
            args,
            profile,
            funcs,
            places,
            listing,
            scale: Scale::of(view),
            screen: Screen::of_stdout(),
            names: args.format.names(),
        }
    }

    fn name(&self) -> &str {
        self.funcs.first().map_or("", |&func| self.profile.func_name(func))
    }
}

/// A source line that takes time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HotLine {
    pub(crate) file: String,
    pub(crate) line: u32,
    /// Its own weight.
    pub(crate) own: u64,
    /// Its weight with what it calls.
    pub(crate) total: u64,
    /// Its text, where the file is on this machine.
    pub(crate) text: Option<String>,
}

/// The lines of a function and of what is inlined into it, and what is missing. Those come first whose text is here, the
/// ones with the most time in all first: of a line that has all of its time in inlined code or in calls, too.
pub(crate) fn hot_lines(
    view: &View<'_>,
    funcs: &[FuncId],
    symbols: &SymbolArgs,
) -> (Vec<HotLine>, Vec<String>) {
    let funcs: BTreeSet<_> = funcs.iter().copied().collect();
    let places = places::places(view.profile(), stacks(view).into_iter(), &funcs);
    let listing = Listing::of_source(view.profile(), &places, &funcs, symbols);
    let lines = listing.files.iter().flat_map(|file| {
        file.weights.iter().map(|(&line, weight)| HotLine {
            file: file.file.clone(),
            line,
            own: weight.own,
            total: weight.total,
            text: file.text.as_ref().and_then(|text| text.line(line)).map(str::to_owned),
        })
    });
    let mut lines: Vec<_> = lines.collect();
    lines.sort_by_key(|line| std::cmp::Reverse((line.text.is_some(), line.total, line.own)));
    (lines, listing.notes)
}

/// The stacks of the samples, each once with its weight.
fn stacks(view: &View<'_>) -> BTreeMap<StackId, u64> {
    let mut stacks = BTreeMap::new();
    for sample in view.samples() {
        if let Some(stack) = sample.sample.stack {
            *stacks.entry(stack).or_default() += sample.amount.weight;
        }
    }
    stacks
}
