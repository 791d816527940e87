//! `nyquist annotate`: the source lines and the instructions of a function, with the weight of each.

mod annotated;
mod code;
mod json;
mod listing;
mod ratios;
mod rows;
mod source;
mod text;

use crate::args::{AnnotateArgs, SymbolArgs};
use crate::failure::Failure;
use crate::functions;
use crate::printer::Printer;
use crate::{finder, input, page, selection, shell};
use annotated::AnnotatedFunction;
use listing::Listing;
use nyquist_analysis::{Index, View};
use nyquist_profile::FuncId;
use std::collections::BTreeSet;
use std::path::Path;

/// Runs the subcommand.
pub(crate) fn run(args: &AnnotateArgs) -> Result<(), Failure> {
    if let Some(text) = &args.ratio {
        return ratios::run(args, text);
    }
    let printer = Printer::new(args.read.verbosity);
    let read = input::read(&args.file, &args.read.filter, &args.read.symbols, printer);
    let mut profile = read.map_err(|failure| match in_order(args) {
        Some(command) => failure.hint(command),
        None => failure,
    })?;
    selection::split(&mut profile, &args.read.filter);
    let selected = selection::select(&profile, &args.read.filter)?;
    let index = Index::new(&profile);
    let view = View::new(&index, &selected);
    if view.is_empty() {
        return Err(selection::nothing_selected(&view, &args.read.filter));
    }
    let chosen = functions::choose(&view, &args.function)?;
    if let Some(others) = chosen.others(args.format.names()) {
        printer.say(others);
    }
    let annotated = AnnotatedFunction::new(&view, chosen.funcs(), args);
    if args.format.json {
        page::print_json(&json::answer(&annotated))
    } else {
        page::print(text::text(&annotated))
    }
}

/// The intended command, if the profile was given before the function.
fn in_order(args: &AnnotateArgs) -> Option<String> {
    let is_swapped = !args.file.exists() && Path::new(&args.function).is_file();
    is_swapped.then(|| {
        let argv = ["annotate".as_ref(), args.file.as_os_str(), args.function.as_ref()];
        format!("the function comes first: `{}`", shell::nyquist(argv))
    })
}

/// A source line that has samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HotLine {
    pub(crate) file: String,
    pub(crate) line: u32,
    /// Its self weight.
    pub(crate) own: u64,
    /// Its total weight, with the functions that it calls.
    pub(crate) total: u64,
    /// Its text, if the file is on this machine.
    pub(crate) text: Option<String>,
}

/// Notes about functions that the linker has folded into one with these: at their address, samples may be of any.
pub(crate) fn folded(view: &View<'_>, funcs: &[FuncId], symbols: &SymbolArgs) -> Vec<String> {
    let places = view.places(&funcs.iter().copied().collect());
    code::folded_symbols(view.profile(), &places, &finder::offline(symbols))
}

/// The lines of a function and of the functions inlined into it, and notes about missing ones. Files
/// whose text is here come first, and of these the ones with the most total time. So lines count too if all
/// their time is in inlined code or in calls.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser as _;

    fn hint(function: &str, file: &str) -> Option<String> {
        let cli = Cli::try_parse_from(["nyquist", "annotate", function, file]).unwrap();
        let Command::Annotate(args) = cli.command else { panic!() };
        in_order(&args)
    }

    #[test]
    fn a_profile_before_the_function_is_seen() {
        let (file, missing) = (concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), "/proc/nonexistent/file");
        let expected = format!("the function comes first: `nyquist annotate /proc/nonexistent/file {file}`");
        assert_eq!(hint(file, missing), Some(expected));
        assert_eq!(hint("main", missing), None);
        assert_eq!(hint("main", file), None);
        assert_eq!(hint(file, file), None);
    }
}
