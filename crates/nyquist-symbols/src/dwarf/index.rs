//! Finds the unit of an address.

use super::file::DwarfFile;
use super::ranges::{ListBuffers, RangeLists, UnitView};
use super::unit::Unit;
use nyquist_object::Cursor;
use rustc_hash::FxHashSet;
use std::ops::ControlFlow;
use std::sync::OnceLock;

/// How many ranges before an address are checked whether they reach it, past those that end earlier.
const MAX_STEPS: usize = 1024;

/// A range of code and the unit that it was compiled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CoveredRange {
    start: u64,
    end: u64,
    unit: u64,
}

/// Ranges by their start, and how far those before any of them reach.
#[derive(Debug, Default)]
struct RangeIndex {
    ranges: Vec<CoveredRange>,
    reach: Vec<u64>,
}

/// The index from addresses to units. The cheap table, `.debug_aranges`, is used first. The units that it
/// leaves out are only read for an address that it does not cover.
#[derive(Debug, Default)]
pub(crate) struct UnitIndex {
    aranges: OnceLock<(RangeIndex, FxHashSet<u64>)>,
    rest: OnceLock<RangeIndex>,
}

impl UnitIndex {
    /// The offset of the unit that covers `address`. Ranges that begin before `first_code` belong to code
    /// that the linker has discarded.
    pub(crate) fn find(&self, file: &DwarfFile, first_code: u64, address: u64) -> Option<u64> {
        let (aranges, listed) = self.aranges.get_or_init(|| {
            let (ranges, listed) = read_aranges(file, first_code);
            (RangeIndex::new(ranges), listed)
        });
        aranges.find(address).or_else(|| {
            self.rest.get_or_init(|| RangeIndex::new(read_units(file, first_code, listed))).find(address)
        })
    }
}

impl RangeIndex {
    fn new(mut ranges: Vec<CoveredRange>) -> Self {
        ranges.sort();
        let reach = ranges.iter().scan(0, |reach: &mut u64, range| {
            *reach = (*reach).max(range.end);
            Some(*reach)
        });
        let reach = reach.collect();
        Self { ranges, reach }
    }

    /// The unit of the range that covers `address`. If there are several, the one with the last start.
    fn find(&self, address: u64) -> Option<u64> {
        let after = self.ranges.partition_point(|range| range.start <= address);
        let before = self.ranges[..after].iter().zip(&self.reach).rev();
        let mut reachable = before.take_while(|&(_, &reach)| address < reach).take(MAX_STEPS);
        reachable.find(|(range, _)| address < range.end).map(|(range, _)| range.unit)
    }
}

/// The ranges of `.debug_aranges` (DWARF 5, 6.1.2), and the units that have any.
fn read_aranges(file: &DwarfFile, first_code: u64) -> (Vec<CoveredRange>, FxHashSet<u64>) {
    let mut found = (Vec::new(), FxHashSet::default());
    let mut scratch = Vec::new();
    let Some(bytes) = file.sections.aranges.slice(0..file.sections.aranges.len(), &mut scratch) else {
        return found;
    };
    let mut at = 0;
    while let Some(next) = read_set(file, bytes, at, first_code, &mut found) {
        at = next;
    }
    found
}

/// Reads the set at `at`, and returns where the next one begins.
fn read_set(
    file: &DwarfFile,
    bytes: &[u8],
    at: usize,
    first_code: u64,
    (ranges, listed): &mut (Vec<CoveredRange>, FxHashSet<u64>),
) -> Option<usize> {
    let mut cursor = Cursor::new(bytes, at, file.sections.little_endian);
    let (length, offset_size) = cursor.initial_length()?;
    let end = cursor.position().checked_add(usize::try_from(length).ok()?)?;
    let version = cursor.u16()?;
    let unit = cursor.sized(offset_size)?;
    let (address_size, segment_size) = (cursor.u8()?, cursor.u8()?);
    if version != 2 || segment_size != 0 || !matches!(address_size, 2 | 4 | 8) {
        return Some(end);
    }
    let tuple = 2 * usize::from(address_size);
    cursor.seek(at + (cursor.position() - at).next_multiple_of(tuple));
    while cursor.position() + tuple <= end {
        let (start, size) = (cursor.sized(address_size)?, cursor.sized(address_size)?);
        let covered = CoveredRange { start, end: start.saturating_add(size), unit };
        if start == 0 && size == 0 {
            break;
        }
        if start >= first_code && start < covered.end && file.has_room_for(ranges) {
            ranges.push(covered);
            listed.insert(unit);
        }
    }
    Some(end)
}

/// The ranges of the root entries of the units that are not in `listed`.
fn read_units(file: &DwarfFile, first_code: u64, listed: &FxHashSet<u64>) -> Vec<CoveredRange> {
    let mut found = Vec::new();
    let mut list_buffers = ListBuffers::default();
    let mut lists = RangeLists::new(file, file, &mut list_buffers);
    file.visit_units(|header, heads| {
        if header.is_type || listed.contains(&header.offset) {
            return;
        }
        let Some(unit) = Unit::root(&file.sections, *header, heads) else { return };
        let view = UnitView { file, unit: &unit, addresses: file, supplementary: None };
        view.for_each_range(&unit.pc, &mut lists, |range| {
            if range.start >= first_code && file.has_room_for(&found) {
                found.push(CoveredRange { start: range.start, end: range.end, unit: header.offset });
            }
            ControlFlow::Continue(())
        });
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_of_overlapping_ranges_answers() {
        let covered = |start, end, unit| CoveredRange { start, end, unit };
        let table = RangeIndex::new(vec![covered(10, 100, 1), covered(20, 30, 2), covered(40, 50, 3)]);
        for (address, expected) in [
            (9, None),
            (10, Some(1)),
            (25, Some(2)),
            (35, Some(1)),
            (49, Some(3)),
            (50, Some(1)),
            (100, None),
        ] {
            assert_eq!(table.find(address), expected, "{address}");
        }
    }
}
