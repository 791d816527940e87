//! The names in a Mach-O file: its symbol table, its exports, the stubs of imported functions, and stand-ins
//! for functions without a name.

use super::images::MachOImage;
use crate::Origin;
use crate::named_range::{NamedRange, up_to_next};
use crate::section_contents::SectionContents;
use crate::symbol_table::{SymbolTable, UnsizedSymbol};
use nyquist_object::macho::Symbol;
use std::ops::Range;

/// The limit for the total length of all names of a file, as a multiple of its strings. Some names share
/// their ends, but real files do not exceed this.
const MAX_RATIO: u64 = 8;

/// Reads many names of one file. Hostile ones share the end of a very long one.
pub(super) struct NameReader {
    strings: SectionContents,
    /// How many bytes may still be read.
    left: u64,
}

impl NameReader {
    /// The names of a file. `None` if it has no symbol table.
    pub(super) fn of(file: &MachOImage) -> Option<Self> {
        let strings = SectionContents::of_range(file.source(), file.symbol_table()?.strings);
        let left = strings.len().saturating_mul(MAX_RATIO);
        Some(Self { strings, left })
    }

    /// The name at an offset in the strings.
    pub(super) fn read(&mut self, at: u32) -> Option<Vec<u8>> {
        if at == 0 || self.left == 0 {
            return None;
        }
        let name = self.strings.string(at.into())?;
        self.left = self.left.saturating_sub(name.len() as u64 + 1);
        Some(name.into_owned())
    }
}

/// The functions in the symbol table. A function ends at the next start in `starts`, which is sorted.
pub(super) fn table(file: &MachOImage, starts: &[u64]) -> Option<SymbolTable> {
    let strings = SectionContents::of_range(file.source(), file.symbol_table()?.strings);
    let symbols = file.symbols().ok()?;
    let symbols = symbols.iter().filter_map(|symbol| function(symbol, file, starts));
    SymbolTable::of_unsized(symbols, strings)
}

/// A symbol that names code.
fn function(symbol: &Symbol, file: &MachOImage, starts: &[u64]) -> Option<UnsizedSymbol> {
    let section = symbol.section_of(file.sections()).filter(|section| section.is_code())?;
    let end = section.address.0.saturating_add(section.size);
    let is_inside = symbol.name != 0 && symbol.value >= section.address.0;
    let visibility = if symbol.is_external() { 2 } else { u8::from(symbol.is_private_external()) };
    let rank = visibility << 1 | u8::from(!symbol.is_weak());
    let limit = end.min(next(starts, symbol.value));
    is_inside.then_some(UnsizedSymbol { start: symbol.value, limit, name: symbol.name, rank })
}

/// The first of `starts` after an address.
fn next(starts: &[u64], address: u64) -> u64 {
    starts.get(starts.partition_point(|&start| start <= address)).copied().unwrap_or(u64::MAX)
}

/// The ranges of the sections with code.
fn code(file: &MachOImage) -> Vec<Range<u64>> {
    let sections = file.sections().iter().filter(|section| section.is_code());
    sections.map(|section| section.address.0..section.address.0.saturating_add(section.size)).collect()
}

/// The functions that are exported, with their names.
pub(super) fn exported(image: &MachOImage) -> Vec<(u64, Vec<u8>)> {
    let code = code(image);
    let exports = image.exports().unwrap_or_default().into_iter();
    let exports = exports.map(|export| (export.address.0, without_underscore(export.name)));
    exports.filter(|(at, _)| code.iter().any(|section| section.contains(at))).collect()
}

/// The table of the exported functions. A function ends at the next start in `starts`.
pub(super) fn exports(image: &MachOImage, starts: &[u64]) -> Option<SymbolTable> {
    let mut ranges = up_to_next(exported(image), &code(image));
    for range in &mut ranges {
        range.end = range.end.min(next(starts, range.start));
    }
    SymbolTable::of_ranges(ranges, Origin::Exports)
}

/// The stubs through which functions of other libraries are called.
pub(super) fn stubs(image: &MachOImage) -> Option<SymbolTable> {
    let mut names = NameReader::of(image)?;
    let stubs = image.stubs().ok().filter(|stubs| !stubs.is_empty())?;
    let symbols = image.symbols().ok()?;
    let named = stubs.into_iter().filter_map(|(start, size, number)| {
        let name = without_underscore(names.read(symbols.get(number as usize)?.name)?);
        Some(NamedRange { start: start.0, end: start.0.checked_add(size.into())?, name })
    });
    SymbolTable::of_ranges(named.collect(), Origin::Plt)
}

/// The functions of which only the start is known, with stand-ins for names. The entry point is named `main`
/// by convention.
pub(super) fn unnamed(image: &MachOImage, starts: &[u64]) -> Option<SymbolTable> {
    let main = image.main_function().map(|main| main.0);
    let name = |&start: &u64| {
        let relative = start.wrapping_sub(image.image_base().0);
        let name = if Some(start) == main { "main".to_owned() } else { format!("fun_{relative:x}") };
        (start, name.into_bytes())
    };
    SymbolTable::of_ranges(up_to_next(starts.iter().map(name).collect(), &code(image)), Origin::UnwindInfo)
}

fn without_underscore(mut name: Vec<u8>) -> Vec<u8> {
    if name.first() == Some(&b'_') {
        name.remove(0);
    }
    name
}
