//! DWARF debug info: from addresses to functions, files, lines and inlined calls.
//!
//! Addresses are grouped by unit, and only the units that are hit are read: one pass over a unit's entries
//! finds the functions and inlined calls around all its addresses, one run of its line program the lines.

mod abbreviations;
mod attribute;
mod file;
mod functions;
mod index;
mod lines;
mod names;
mod ranges;
mod unit;

pub(crate) use file::DwarfFile;

use crate::Frame;
use functions::{Scope, find_scopes};
use index::UnitIndex;
use lines::{LineProgram, Row, program_bytes};
use names::Names;
use nyquist_object::Svma;
use ranges::UnitView;
use std::ops::Range;
use unit::Unit;

/// The debug info of one module.
#[derive(Debug)]
pub(crate) struct Dwarf {
    main: DwarfFile,
    supplementary: Option<DwarfFile>,
    index: UnitIndex,
    /// Where the module's code begins. What the debug info places before it has been discarded by the linker.
    first_code: u64,
}

/// Buffers that a thread uses again for each unit.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    entries: Vec<u8>,
    lines: Vec<u8>,
}

/// What the debug info says of one address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// As in [`crate::AddressInfo`].
    pub(crate) frames: Vec<Frame>,
    /// Whether the outermost frame's name is complete: made from a linkage name.
    pub(crate) is_complete: bool,
    /// The code of the outermost function around the address.
    pub(crate) function: Option<Range<Svma>>,
}

impl Dwarf {
    pub(crate) fn new(main: DwarfFile, supplementary: Option<DwarfFile>, first_code: u64) -> Self {
        Self { main, supplementary, index: UnitIndex::default(), first_code }
    }

    /// The unit that covers an address, by its offset in `.debug_info`.
    pub(crate) fn unit_of(&self, address: u64) -> Option<u64> {
        self.index.find(&self.main, self.first_code, address)
    }

    /// Answers for `wanted`, sorted addresses of the unit at `offset`, in their order.
    pub(crate) fn look_up(&self, offset: u64, wanted: &[u64], scratch: &mut Scratch) -> Vec<Found> {
        self.try_look_up(offset, wanted, scratch).unwrap_or_else(|| vec![Found::default(); wanted.len()])
    }

    fn try_look_up(&self, offset: u64, wanted: &[u64], scratch: &mut Scratch) -> Option<Vec<Found>> {
        let unit = Unit::read(&self.main, offset)?;
        let view = UnitView {
            file: &self.main,
            unit: &unit,
            addresses: &self.main,
            supplementary: self.supplementary.as_ref(),
        };
        let entries = self.main.info.slice(offset..unit.header.end, &mut scratch.entries)?;
        let scopes = find_scopes(&view, entries, wanted);
        let mut names = Names::new(view, entries);
        let mut program = self.line_program(view, &mut scratch.lines);
        let rows = program.as_ref().map(|program| program.rows(wanted)).unwrap_or_default();
        let found = scopes.iter().enumerate().map(|(index, scopes)| {
            let row = rows.get(index).copied().flatten();
            chain(scopes, row, &mut names, program.as_mut())
        });
        Some(found.collect())
    }

    fn line_program<'a>(&'a self, view: UnitView<'a>, scratch: &'a mut Vec<u8>) -> Option<LineProgram<'a>> {
        let offset = view.unit.lines?;
        let bytes = program_bytes(&self.main.line, offset, self.main.little_endian, scratch)?;
        LineProgram::parse(view, bytes)
    }

    /// Whether the unit at `offset` names the source file `path`.
    pub(crate) fn names_source(&self, offset: u64, path: &str) -> bool {
        let mut scratch = Vec::new();
        let Some(unit) = Unit::read(&self.main, offset) else { return false };
        let view = UnitView {
            file: &self.main,
            unit: &unit,
            addresses: &self.main,
            supplementary: self.supplementary.as_ref(),
        };
        self.line_program(view, &mut scratch).is_some_and(|program| program.names(path))
    }
}

/// The frames of one address, from inside to outside: each scope's function, at the place that the line table
/// gives for the innermost, and that the call in it gives for all others.
fn chain(
    scopes: &[Scope],
    row: Option<Row>,
    names: &mut Names<'_>,
    mut program: Option<&mut LineProgram<'_>>,
) -> Found {
    let mut found = Found::default();
    for scope in scopes {
        if let (Some(call), Some(caller)) = (scope.call, found.frames.last_mut()) {
            caller.file = program.as_mut().and_then(|program| program.path(call.file));
            caller.line = number(call.line);
            caller.column = number(call.column);
        }
        let name = names.name(scope.entry);
        if found.frames.is_empty() {
            found.function = Some(Svma(scope.range.0)..Svma(scope.range.1));
            found.is_complete = name.as_ref().is_some_and(|name| name.is_complete);
        }
        let function = name.map(|name| name.text);
        found.frames.push(Frame { function, ..Frame::default() });
    }
    if let Some(row) = row {
        if found.frames.is_empty() {
            found.frames.push(Frame::default());
        }
        if let Some(innermost) = found.frames.last_mut() {
            innermost.file = program.and_then(|program| program.path(row.file));
            innermost.line = number(row.line);
            innermost.column = number(row.column);
        }
    }
    found.frames.reverse();
    found
}

/// Lines and columns count from 1; 0 says that there is none.
fn number(value: u64) -> Option<u32> {
    u32::try_from(value).ok().filter(|&value| value != 0)
}
