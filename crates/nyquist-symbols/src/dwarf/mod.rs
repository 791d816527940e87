//! DWARF debug info, which maps addresses to functions, files, lines and inlined calls.
//!
//! Addresses are grouped by unit, and only units with addresses are read. One pass over a unit's entries
//! finds the functions and inlined calls around all its addresses. One run of its line program finds the
//! lines.

mod abbreviations;
mod attribute;
mod die_skip_table;
mod die_walk;
mod file;
mod form;
mod function_name;
mod functions;
mod index;
mod lines;
mod names;
mod nesting;
mod origins;
mod pc;
mod qualified;
mod ranges;
mod role;
mod scope_layout;
mod sections;
mod shared_map;
mod split;
mod unit;

pub(crate) use file::DwarfFile;
pub(crate) use split::{SplitFiles, SplitPlaces, holds_units_of};

use crate::SourceFrame;
use crate::allowance::Allowance;
use crate::debug_answer::DebugAnswer;
use function_name::FunctionName;
use functions::{InlinedCallSite, Scope, find_scopes};
use index::UnitIndex;
use lines::{LineProgram, LineRow, program_bytes};
use names::UnitNames;
use nyquist_object::Svma;
use ranges::{ListBuffers, UnitView};
use unit::Unit;

/// The debug info of one module.
#[derive(Debug)]
pub(crate) struct Dwarf {
    main: DwarfFile,
    supplementary: Option<DwarfFile>,
    split: SplitFiles,
    index: UnitIndex,
    /// Where the module's code begins. Code that the debug info places before it was discarded by the linker.
    first_code: u64,
}

/// Buffers that a thread reuses for each unit.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    entries: Vec<u8>,
    lists: ListBuffers,
    lines: Vec<u8>,
    /// The memory that may be put into answers.
    pub(crate) allowance: Allowance,
}

impl Dwarf {
    pub(crate) fn new(
        main: DwarfFile,
        supplementary: Option<DwarfFile>,
        split: SplitFiles,
        first_code: u64,
    ) -> Self {
        Self { main, supplementary, split, index: UnitIndex::default(), first_code }
    }

    /// The unit that covers an address, by its offset in `.debug_info`.
    pub(crate) fn unit_of(&self, address: u64) -> Option<u64> {
        self.index.find(&self.main, self.first_code, address)
    }

    /// The offsets of all units that may have code.
    pub(crate) fn units(&self) -> impl Iterator<Item = u64> {
        self.main.units().iter().filter(|unit| !unit.is_type).map(|unit| unit.offset)
    }

    /// Answers for `requested`, which are sorted addresses of the unit at `offset`, in their order.
    pub(crate) fn look_up(&self, offset: u64, requested: &[u64], scratch: &mut Scratch) -> Vec<DebugAnswer> {
        self.try_look_up(offset, requested, scratch)
            .unwrap_or_else(|| vec![DebugAnswer::default(); requested.len()])
    }

    fn try_look_up(&self, offset: u64, requested: &[u64], scratch: &mut Scratch) -> Option<Vec<DebugAnswer>> {
        let Scratch { entries: bytes, lists, lines, allowance } = scratch;
        let unit = Unit::read(&self.main.sections, offset)?;
        let view = self.view(&unit);
        let split = self.split.find(&self.main, &unit);
        let entries =
            split.as_ref().map_or(view, |split| UnitView { file: &split.file, unit: &split.unit, ..view });
        let header = entries.unit.header;
        let bytes = entries.file.sections.info.slice(header.offset..header.end, bytes)?;
        let scopes = find_scopes(&entries, bytes, requested, lists);
        let mut names = UnitNames::new(entries, bytes);
        let mut program = self.line_program(view, lines);
        let rows = program.as_ref().map(|program| program.rows(requested)).unwrap_or_default();
        let found = (0..requested.len()).map(|index| {
            let row = rows.get(index).copied().flatten();
            allowance.admitted(chain(scopes.around(index), row, &mut names, program.as_mut()))
        });
        Some(found.collect())
    }

    fn view<'a>(&'a self, unit: &'a Unit) -> UnitView<'a> {
        let supplementary = self.supplementary.as_ref();
        UnitView { file: &self.main, unit, addresses: &self.main, supplementary }
    }

    fn line_program<'a>(&'a self, view: UnitView<'a>, scratch: &'a mut Vec<u8>) -> Option<LineProgram<'a>> {
        let offset = view.unit.lines?;
        let bytes =
            program_bytes(&self.main.sections.line, offset, self.main.sections.little_endian, scratch)?;
        LineProgram::parse(view, bytes)
    }

    /// Whether a `.dwo` file was looked for, outside of any package.
    pub(crate) fn reads_single_files(&self) -> bool {
        self.split.reads_single_files()
    }

    /// Whether the unit at `offset` names the source file for which `is_it` returns true.
    pub(crate) fn names_source(&self, offset: u64, is_it: &mut dyn FnMut(&str) -> bool) -> bool {
        let mut scratch = Vec::new();
        let Some(unit) = Unit::read(&self.main.sections, offset) else { return false };
        self.line_program(self.view(&unit), &mut scratch).is_some_and(|program| program.names(is_it))
    }
}

/// The frames of one address, from inside to outside. Each frame is a scope's function. The innermost one has
/// the place from the line table, and each other one the place of the call in it.
fn chain<'a>(
    scopes: impl Iterator<Item = &'a Scope> + Clone,
    row: Option<LineRow>,
    names: &mut UnitNames<'_>,
    mut program: Option<&mut LineProgram<'_>>,
) -> DebugAnswer {
    let mut found =
        DebugAnswer { frames: Vec::with_capacity(scopes.clone().count().max(1)), ..DebugAnswer::default() };
    let mut place = row.map(|row| InlinedCallSite { file: row.file, line: row.line, column: row.column });
    let mut frame = |name: Option<FunctionName>, place: Option<InlinedCallSite>| {
        let declared_in = name.as_ref().and_then(|name| name.file);
        let mut path = |file: u64| program.as_mut()?.path(file);
        let file = place.and_then(|place| path(place.file));
        let elsewhere =
            declared_in.filter(|&declared_in| place.is_some_and(|place| place.file != declared_in));
        SourceFrame {
            declared_in: elsewhere
                .and_then(path)
                .filter(|path| file.as_ref().is_some_and(|file| file != path)),
            function: name.map(|name| name.text),
            file,
            line: place.and_then(|place| number(place.line)),
            column: place.and_then(|place| number(place.column)),
        }
    };
    for scope in scopes {
        let name = names.name(scope.entry);
        found.function = Some(Svma(scope.range.0)..Svma(scope.range.1));
        found.is_complete = name.as_ref().is_some_and(|name| name.is_complete);
        found.frames.push(frame(name, place));
        place = scope.call;
    }
    if found.frames.is_empty() && place.is_some() {
        found.frames.push(frame(None, place));
    }
    found
}

/// Lines and columns count from 1. 0 means that there is none.
fn number(value: u64) -> Option<u32> {
    u32::try_from(value).ok().filter(|&value| value != 0)
}
