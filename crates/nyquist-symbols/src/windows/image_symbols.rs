//! The names in a PE image itself: its symbol table, if a GNU linker wrote one, and its exports.

use crate::Origin;
use crate::named_range::{NamedRange, up_to_next};
use crate::section_contents::SharedSource;
use crate::symbol_table::SymbolTable;
use nyquist_object::elf::Architecture;
use nyquist_object::pe::DataDirectory;
use nyquist_object::{Pe, RelativeAddress};
use std::ops::Range;

/// The flag of a separately described part of a function, in the first byte of its unwind information
/// (`UNW_FLAG_CHAININFO`).
const CHAINED: u8 = 4 << 3;

/// The prefixes of code symbols that name no function, but are labels of the compiler.
const LABELS: [&[u8]; 3] = [b".text", b".L", b"L"];

/// The tables of names in an image, the best first.
pub(crate) fn tables(pe: &Pe<SharedSource>) -> Vec<SymbolTable> {
    let table = SymbolTable::of_ranges(symbols(pe), Origin::SymbolTable);
    table.into_iter().chain(SymbolTable::of_ranges(exports(pe), Origin::Exports)).collect()
}

/// The functions in the symbol table.
pub(crate) fn symbols(pe: &Pe<SharedSource>) -> Vec<NamedRange> {
    let symbols = pe.coff_symbols().unwrap_or_default();
    let is_label = |name: &[u8]| LABELS.iter().any(|label| name.starts_with(label));
    let symbols = symbols.into_iter().filter(|symbol| symbol.is_function || !is_label(&symbol.name));
    named(pe, symbols.map(|symbol| (symbol.address, symbol.name)).collect())
}

/// The functions that are exported by name.
pub(crate) fn exports(pe: &Pe<SharedSource>) -> Vec<NamedRange> {
    let exports = pe.exports().unwrap_or_default().into_iter();
    named(pe, exports.filter_map(|export| Some((export.address, export.name?))).collect())
}

/// The functions of the table of functions, with stand-ins for names.
pub(crate) fn unnamed(pe: &Pe<SharedSource>) -> Option<SymbolTable> {
    let base = pe.image_base().0;
    let starts = function_starts(pe).into_iter();
    let functions =
        starts.map(|start| (base.wrapping_add(start.into()), format!("fun_{start:x}").into_bytes()));
    SymbolTable::of_ranges(up_to_next(functions.collect(), &code(pe)), Origin::UnwindInfo)
}

/// Named places as pieces of code. Each ends at the start of the next function, even if that has no name.
fn named(pe: &Pe<SharedSource>, names: Vec<(RelativeAddress, Vec<u8>)>) -> Vec<NamedRange> {
    let base = pe.image_base().0;
    let code = code(pe);
    let address = |relative: u32| base.wrapping_add(relative.into());
    let names = names.into_iter().map(|(at, name)| (address(at.0), name));
    let names = names.filter(|(at, _)| code.iter().any(|section| section.contains(at))).collect();
    let starts: Vec<u64> = function_starts(pe).into_iter().map(address).collect();
    let mut ranges = up_to_next(names, &code);
    for range in &mut ranges {
        let next = starts.get(starts.partition_point(|start| *start <= range.start));
        range.end = range.end.min(next.copied().unwrap_or(u64::MAX));
    }
    ranges
}

/// The ranges of the sections with code.
fn code(pe: &Pe<SharedSource>) -> Vec<Range<u64>> {
    let sections = pe.segments().into_iter().filter(|segment| segment.executable);
    sections.map(|segment| segment.address.0..segment.address.0.saturating_add(segment.file_size)).collect()
}

/// The most bytes of unwind information that are read at once: more than the largest images have.
const MAX_UNWIND_INFO_BYTES: u32 = 64 << 20;

/// The starts of functions in the table of functions, in order, without parts of other functions.
fn function_starts(pe: &Pe<SharedSource>) -> Vec<u32> {
    let is_known = pe.architecture() == Architecture::X86_64;
    let Some((address, size)) = pe.directory(DataDirectory::Exceptions).filter(|_| is_known) else {
        return Vec::new();
    };
    let room = pe.file_range(address).map_or(0, |(_, room)| room);
    let bytes = pe.read_at(address, size.min(room)).unwrap_or_default();
    let words: Vec<u32> = bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    // The information of functions is in thousands of small pieces, of which each would take a read.
    let infos = words.as_chunks().0.iter().map(|[_, _, info]| *info).filter(|info| info & 1 == 0);
    let first = infos.min().unwrap_or(0);
    let room = pe.file_range(RelativeAddress(first)).map_or(0, |(_, room)| room);
    let pieces = pe.read_at(RelativeAddress(first), room.min(MAX_UNWIND_INFO_BYTES)).unwrap_or_default();
    let flags = |info: u32| match pieces.get(info.checked_sub(first)? as usize) {
        Some(flags) => Some(*flags),
        None => pe.read_at(RelativeAddress(info), 1).ok()?.first().copied(),
    };
    let is_part = |info: u32| info & 1 != 0 || flags(info).is_some_and(|flags| flags & CHAINED != 0);
    let entries = words.as_chunks().0.iter().filter(|[start, end, info]| start < end && !is_part(*info));
    let mut starts: Vec<u32> = entries.map(|[start, ..]| *start).collect();
    starts.sort_unstable();
    starts
}
