//! `nyquist annotate`: the source lines and the instructions of a function, with what each takes.

mod annotated;
mod code;
mod json;
mod listing;
mod named;
mod source;
mod text;

use crate::args::{AnnotateArgs, SymbolArgs};
use crate::failure::Failure;
use crate::functions;
use crate::printer::Printer;
use crate::{input, page, selection};
use annotated::Annotated;
use listing::Listing;
use nyquist_analysis::{Index, View};
use nyquist_profile::FuncId;
use std::collections::BTreeSet;

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
    let places = view.places(&funcs);
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
