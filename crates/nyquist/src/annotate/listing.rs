//! The contents of an annotated function: the lines of its files, and its instructions.

use super::code::{self, Code, Instruction};
use super::source::SourceText;
use crate::args::{AnnotateArgs, SymbolArgs};
use crate::finder::{offline, source_files};
use nyquist_analysis::{PlaceWeight, PlaceWeights};
use nyquist_convert::LibSymbols;
use nyquist_input::module_request;
use nyquist_object::BuildId;
use nyquist_profile::{Func, FuncId, LibId, Profile, SourceId};
use nyquist_symbols::{Finder, SourceFiles, short_source_path, special_source_path};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The number of missing files that a note names.
const FILES_NAMED: usize = 3;

/// The files and the code of a function, as far as they are on this machine.
#[derive(Clone, Debug, Default)]
pub(super) struct Listing {
    /// The function's own file, then those of functions inlined into it, the one with the most time first.
    pub(super) files: Vec<FileLines>,
    /// The machine code.
    pub(super) codes: Vec<Code>,
    /// Notes about missing or doubtful parts, a sentence each.
    pub(super) notes: Vec<String>,
}

/// A source file with the weights of its lines.
#[derive(Clone, Debug, Default)]
pub(super) struct FileLines {
    /// Its path.
    pub(super) file: String,
    /// Whether it contains a function's own code, not only inlined code.
    pub(super) is_own: bool,
    /// Its text; `None` if it is not available.
    pub(super) text: Option<SourceText>,
    /// The weight of each line.
    pub(super) weights: BTreeMap<u32, PlaceWeight>,
    /// The instructions of each line that have samples.
    pub(super) instructions: BTreeMap<u32, Vec<Instruction>>,
}

impl Listing {
    /// Reads the function's files, as far as they are on this machine.
    pub(super) fn new(
        profile: &Profile,
        places: &PlaceWeights,
        funcs: &BTreeSet<FuncId>,
        args: &AnnotateArgs,
        finder: &Finder,
    ) -> Self {
        let mut listing = Self::default();
        if !args.source {
            let names: Vec<_> = funcs.iter().map(|&func| profile.func_name(func)).collect();
            (listing.codes, listing.notes) = code::code(profile, places, &names, finder);
        }
        if !args.asm {
            listing.add_source(profile, places, funcs, &args.read.symbols, finder);
            listing.spread_instructions();
        }
        listing
    }

    /// Only the source, as far as it is on this machine.
    pub(super) fn of_source(
        profile: &Profile,
        places: &PlaceWeights,
        funcs: &BTreeSet<FuncId>,
        symbols: &SymbolArgs,
    ) -> Self {
        let mut listing = Self::default();
        listing.add_source(profile, places, funcs, symbols, &offline(symbols));
        listing
    }

    fn add_source(
        &mut self,
        profile: &Profile,
        places: &PlaceWeights,
        funcs: &BTreeSet<FuncId>,
        symbols: &SymbolArgs,
        finder: &Finder,
    ) {
        self.files = files(profile, places, funcs);
        self.read_source(profile, symbols, finder);
    }

    /// The given lines of files, with their text as far as it is on this machine.
    pub(super) fn of_lines(
        profile: &Profile,
        files: Vec<FileLines>,
        symbols: &SymbolArgs,
        finder: &Finder,
    ) -> Self {
        let mut listing = Self { files, ..Self::default() };
        listing.read_source(profile, symbols, finder);
        listing
    }

    fn read_source(&mut self, profile: &Profile, symbols: &SymbolArgs, finder: &Finder) {
        let (allowed, named) = (source_files(symbols), LibSymbols::new(profile, finder, module_request));
        let recorded = profile.meta().start_time;
        self.read_files(|file| {
            let read = SourceText::read(&allowed, file, recorded, || named.spelling(file));
            read.or_else(|reason| fetched(profile, file, &named, finder).ok_or(reason))
        });
        if self.files.is_empty() {
            self.notes
                .push("the profile has no lines of this function: its code has no debug info".to_owned());
        }
    }

    fn read_files(&mut self, read: impl Fn(&str) -> Result<SourceText, String>) {
        let mut missing: BTreeMap<String, Vec<Cow<'_, str>>> = BTreeMap::new();
        for file in &mut self.files {
            match read(&file.file) {
                Ok(text) => {
                    if text.is_newer {
                        let name = short_source_path(&file.file);
                        self.notes.push(format!(
                            "{name} was changed after the recording: its lines may have moved"
                        ));
                    }
                    file.text = Some(text);
                }
                Err(reason) => missing.entry(reason).or_default().push(short_source_path(&file.file)),
            }
        }
        let note = |(reason, files): (&String, &Vec<Cow<'_, str>>)| {
            let named = files.iter().take(FILES_NAMED).map(Cow::as_ref).collect::<Vec<_>>().join(", ");
            match files.len().saturating_sub(FILES_NAMED) {
                0 => format!("no source of {named}: {reason}"),
                more => format!("no source of {named} and {more} more: {reason}"),
            }
        };
        self.notes.extend(missing.iter().map(note));
    }

    /// Adds the instructions that have samples to their source lines.
    fn spread_instructions(&mut self) {
        let hot = self.codes.iter().flat_map(|code| &code.instructions).filter(|one| one.weight.total > 0);
        for instruction in hot {
            let Some((file, line)) = &instruction.place else { continue };
            let file = self.files.iter_mut().find(|known| known.file == *file);
            if let Some(of_line) = file.map(|file| file.instructions.entry(*line).or_default()) {
                of_line.push(instruction.clone());
            }
        }
    }
}

/// The text of a source file that is not on this machine. It is downloaded by the build ids of the libs that
/// contain its code.
fn fetched(profile: &Profile, file: &str, named: &LibSymbols<'_>, finder: &Finder) -> Option<SourceText> {
    let is_of_file = |func: &&Func| {
        func.source.is_some_and(|source| profile.string(profile.source(source).filename) == file)
    };
    let libs: BTreeSet<LibId> =
        profile.funcs().iter().filter(is_of_file).filter_map(|func| func.lib).collect();
    let ids = libs.into_iter().filter_map(|lib| BuildId::from_hex(profile.lib(lib).code_id.as_deref()?));
    // Servers know a crate's file by its path at compile time.
    let is_of_crate = special_source_path(file).starts_with("cargo:");
    let spelling = is_of_crate.then(|| named.spelling(file)).flatten();
    let spelling = spelling.as_deref().unwrap_or(file);
    let mut paths = ids.filter_map(|id| finder.fetch_source(&id, spelling).path);
    // The time at which the copy here was written does not show when the source was changed.
    paths.find_map(|path| {
        let path = path.to_str()?;
        SourceText::read(&SourceFiles::default(), path, 0, || Some(path.to_owned())).ok()
    })
}

/// The files of the lines, the function's own first.
fn files(profile: &Profile, places: &PlaceWeights, funcs: &BTreeSet<FuncId>) -> Vec<FileLines> {
    let mut by_file: BTreeMap<SourceId, FileLines> = BTreeMap::new();
    for (&(source, line), &weight) in &places.lines {
        let file = by_file.entry(source).or_insert_with(|| FileLines {
            file: profile.string(profile.source(source).filename).to_owned(),
            ..FileLines::default()
        });
        file.weights.insert(line, weight);
    }
    let own: BTreeSet<_> = funcs.iter().filter_map(|&func| profile.func(func).source).collect();
    let mut files: Vec<_> = by_file.into_iter().collect();
    for (source, file) in &mut files {
        file.is_own = own.contains(source);
    }
    files.sort_by_key(|(_, file)| (!file.is_own, std::cmp::Reverse(file.own_weight())));
    files.into_iter().map(|(_, file)| file).collect()
}

impl FileLines {
    /// The sum of the self weights of its lines.
    pub(super) fn own_weight(&self) -> u64 {
        self.weights.values().map(|weight| weight.own).fold(0, u64::saturating_add)
    }

    /// Whether it has no text: the file is not here, so only its line numbers are known.
    pub(super) fn is_inlined_and_missing(&self) -> bool {
        self.text.is_none() && !self.is_own
    }

    /// The lines that have samples, with those around them; `None` marks a gap.
    pub(super) fn shown_lines(&self, context: u32) -> Vec<Option<u32>> {
        // For a missing file, only the numbers of these lines are shown.
        let (context, last) = self.text.as_ref().map_or((0, u32::MAX), |text| (context, text.len()));
        let mut shown: Vec<Option<u32>> = Vec::new();
        for &line in self.weights.keys() {
            let before = shown.last().copied().flatten();
            let first = line.saturating_sub(context).max(1);
            let end = line.saturating_add(context).min(last).max(line);
            let first = match before {
                Some(before) if first > before + 1 => {
                    shown.push(None);
                    first
                }
                Some(before) => before + 1,
                None => first,
            };
            shown.extend((first..=end).map(Some));
        }
        shown
    }

    /// The text of a line; empty if the file is missing.
    pub(super) fn line_text(&self, line: u32) -> &str {
        self.text.as_ref().and_then(|text| text.line(line)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(
        not(target_os = "linux"),
        ignore = "the path of this file is one of the machine that compiled it"
    )]
    fn lines_around_hot_ones_are_shown_once() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/annotate/listing.rs");
        let path = path.to_str().unwrap();
        let text = SourceText::read(&SourceFiles::default(), path, 0, || Some(path.to_owned())).unwrap();
        let last = text.len();
        let check = |lines: &[u32], text: Option<&SourceText>, expected: &[Option<u32>]| {
            let weights = lines.iter().map(|&line| (line, PlaceWeight { own: 1, total: 1 })).collect();
            let file = FileLines { text: text.cloned(), weights, ..FileLines::default() };
            assert_eq!(file.shown_lines(1), expected, "{lines:?}");
        };
        check(&[1], Some(&text), &[Some(1), Some(2)]);
        check(&[5, 7], Some(&text), &[Some(4), Some(5), Some(6), Some(7), Some(8)]);
        check(&[5, 9], Some(&text), &[Some(4), Some(5), Some(6), None, Some(8), Some(9), Some(10)]);
        check(&[last], Some(&text), &[Some(last - 1), Some(last)]);
        check(&[5, 9], None, &[Some(5), None, Some(9)]);
    }
}
