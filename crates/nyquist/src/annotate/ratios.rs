//! How often one event happened per occurrence of another, by the source lines of a function.

use super::listing::{FileLines, Listing};
use super::rows::heat;
use crate::args::AnnotateArgs;
use crate::failure::Failure;
use crate::finder::finder;
use crate::functions;
use crate::number::counted;
use crate::page;
use crate::printer::Printer;
use crate::ratio::{self, Events, Sides};
use crate::text::{Screen, Style, Text, cut, cut_name, one_line};
use crate::watch::Watch;
use nyquist_analysis::{LineRatios, PlaceRatio, PlaceWeight, View, line_ratios};
use nyquist_profile::{FuncId, Profile};
use nyquist_symbols::short_source_path;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The width of the numbers before a line.
const NUMBERS: usize = 51;

/// A function with the ratios of its lines.
struct AnnotatedFunction<'a> {
    args: &'a AnnotateArgs,
    profile: &'a Profile,
    funcs: BTreeSet<FuncId>,
    events: Events,
    /// A line about the kernel's part, or an empty text.
    note_of_kernel: String,
    ratios: LineRatios<'a>,
    listing: Listing,
}

/// Reads both events, and prints the lines of the function.
pub(super) fn run(args: &AnnotateArgs, text: &str) -> Result<(), Failure> {
    let printer = Printer::new(args.read.verbosity);
    let sides = Sides::read(&args.file, text, &args.read.filter, &args.read.symbols, printer)?;
    let indexes = sides.indexes();
    let views = ratio::views(&indexes, &args.read.filter)?;
    let (side, chosen) = match functions::choose(&views[0], &args.function) {
        Ok(chosen) => (0, chosen),
        // The other event may have no samples in it.
        Err(failure) => (1, functions::choose(&views[1], &args.function).map_err(|_| failure)?),
    };
    if let Some(others) = chosen.others(args.format.names()) {
        printer.say(others);
    }
    let chosen: BTreeSet<_> = chosen.funcs().iter().copied().collect();
    let other = same_functions(&views[side], &chosen, &views[1 - side]);
    let funcs = if side == 0 { [&chosen, &other] } else { [&other, &chosen] };
    let ratios = line_ratios([(&views[0], funcs[0]), (&views[1], funcs[1])]);
    let profile = views[side].profile();
    let finder = finder(&args.read.symbols, Watch::new(printer, None));
    let listing = Listing::of_lines(profile, files(profile, &chosen, &ratios), &args.read.symbols, &finder);
    let (events, note_of_kernel) = (sides.events(), ratio::note_of_kernel(&views));
    let annotated =
        AnnotatedFunction { args, profile, funcs: chosen, events, note_of_kernel, ratios, listing };
    if args.format.json { page::print_json(&annotated.json()) } else { page::print(annotated.text()) }
}

/// The functions in a view with the same name, lib and file as some functions in another.
fn same_functions(from: &View<'_>, funcs: &BTreeSet<FuncId>, to: &View<'_>) -> BTreeSet<FuncId> {
    let key = |view: &View<'_>, func| {
        let info = view.function(func);
        [Some(info.name), info.lib, info.file].map(|text| text.map(str::to_owned))
    };
    let requested: BTreeSet<_> = funcs.iter().map(|&func| key(from, func)).collect();
    let all = (0..to.profile().funcs().len()).map(FuncId::from_index);
    all.filter(|&func| requested.contains(&key(to, func))).collect()
}

/// The files of the lines, the function's own first, then the one with the most of the first event.
fn files(profile: &Profile, funcs: &BTreeSet<FuncId>, ratios: &LineRatios<'_>) -> Vec<FileLines> {
    let sources = funcs.iter().filter_map(|&func| profile.func(func).source);
    let own: BTreeSet<_> = sources.map(|source| profile.string(profile.source(source).filename)).collect();
    let weight =
        |ratio: &PlaceRatio| PlaceWeight { own: ratio.own.count as u64, total: ratio.total.count as u64 };
    let file = |(&name, lines): (&&str, &BTreeMap<u32, PlaceRatio>)| FileLines {
        file: name.to_owned(),
        is_own: own.contains(name),
        weights: lines.iter().map(|(&line, ratio)| (line, weight(ratio))).collect(),
        ..FileLines::default()
    };
    let mut files: Vec<_> = ratios.lines.iter().map(file).collect();
    files.sort_by_key(|file| (!file.is_own, Reverse(file.own_weight())));
    files
}

impl AnnotatedFunction<'_> {
    fn name(&self) -> &str {
        self.funcs.first().map_or("", |&func| self.profile.func_name(func))
    }

    fn lib(&self) -> Option<&str> {
        let lib = self.funcs.first().and_then(|&func| self.profile.func(func).lib)?;
        Some(&self.profile.lib(lib).name)
    }

    fn ratio(&self, file: &FileLines, line: u32) -> Option<&PlaceRatio> {
        self.ratios.lines.get(file.file.as_str())?.get(&line)
    }

    fn text(&self) -> Text {
        let screen = Screen::of_stdout();
        let lib = self.lib().map(|lib| format!("  {}", one_line(lib))).unwrap_or_default();
        let mut text = Style::Bold.paint(&self.args.format.names().show(self.name()), screen) + lib + "\n";
        text += self.events.heading(&self.ratios.function.total) + &self.note_of_kernel;
        self.listing.notes.iter().for_each(|note| text += format!("note: {}\n", one_line(note)));
        let rows = self.rows(screen);
        let limit = if self.args.limit == 0 { usize::MAX } else { self.args.limit };
        let left_out = rows.len().saturating_sub(limit);
        rows.into_iter().take(limit).for_each(|row| text.push(row));
        if left_out > 0 {
            text += format!("{} (--limit 0 shows all)\n", counted(left_out as u64, "more line"));
        }
        if self.ratios.lines.values().flat_map(BTreeMap::values).any(is_marked) {
            text.push("~ marks what too few observations make uncertain.\n");
        }
        text
    }

    fn rows(&self, screen: Screen) -> Vec<Text> {
        let folds = |file: &&FileLines| !file.is_inlined_and_missing() || self.args.read.verbosity.verbose;
        let mut rows = Vec::new();
        for file in self.listing.files.iter().filter(folds) {
            let heading = format!("{:>11} {:>11} {:>11} {:>12}   ", "A", "B", "A/B", "TOTAL A/B");
            let name = short_source_path(&file.file);
            let name = cut_name(&name, room(screen), screen.unicode);
            rows.push(Text::from("\n") + Style::Bold.paint(&format!("{heading}{name}"), screen) + "\n");
            for line in self.lines(file) {
                rows.push(match line {
                    Some(line) => self.row(file, line, screen),
                    None => Text::from(" ".repeat(NUMBERS)) + if screen.unicode { "⋮\n" } else { "...\n" },
                });
            }
        }
        rows
    }

    /// The lines of a file that are shown; `None` where some are left out.
    fn lines(&self, file: &FileLines) -> Vec<Option<u32>> {
        if !self.args.hottest {
            return file.shown_lines(self.args.context);
        }
        let mut lines: Vec<_> = file.weights.iter().collect();
        lines.sort_by_key(|(_, weight)| Reverse(heat(**weight)));
        lines.into_iter().map(|(line, _)| Some(*line)).collect()
    }

    fn row(&self, file: &FileLines, line: u32, screen: Screen) -> Text {
        let numbers = match self.ratio(file, line) {
            None => " ".repeat(NUMBERS - 2),
            Some(PlaceRatio { own, total }) => format!(
                "{:>11} {:>11} {:>11} {:>12}  ",
                self.events.amount(0, own.count),
                self.events.amount(1, own.of),
                self.events.ratio(own),
                self.events.ratio(total)
            ),
        };
        let source = format!("{line:>5}  {}", file.line_text(line));
        let row = Text::from(numbers) + cut(&source, room(screen), screen.unicode);
        row.trim_end() + "\n"
    }

    /// The object that `docs/report-json.md` describes.
    fn json(&self) -> Value {
        let line = |file: &FileLines, line: u32| {
            let ratio = self.ratio(file, line);
            json!({
                "line": line,
                "source": file.text.as_ref().and_then(|text| text.line(line)),
                "self": ratio.map(|ratio| ratio.own),
                "total": ratio.map(|ratio| ratio.total),
            })
        };
        let file = |file: &FileLines| {
            json!({
                "file": file.file,
                "found": file.text.is_some(),
                "lines": file.weights.keys().map(|&number| line(file, number)).collect::<Vec<_>>(),
            })
        };
        json!({
            "schema": "nyquist-annotate-ratio/1",
            "function": self.name(),
            "lib": self.lib(),
            "ratio": self.events.json(&self.ratios.function.total),
            "self": self.ratios.function.own,
            "total": self.ratios.function.total,
            "files": self.listing.files.iter().map(file).collect::<Vec<_>>(),
            "notes": self.listing.notes,
        })
    }
}

fn is_marked(ratio: &PlaceRatio) -> bool {
    [ratio.own, ratio.total].iter().any(|ratio| ratio.is_uncertain && ratio.ratio.is_some())
}

/// The width that remains beside the numbers.
fn room(screen: Screen) -> usize {
    screen.width.map_or(usize::MAX, |width| width.saturating_sub(NUMBERS))
}
