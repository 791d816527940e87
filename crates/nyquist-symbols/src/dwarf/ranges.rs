//! The code ranges of entries: `.debug_ranges` and `.debug_rnglists`.

use super::attribute::AttributeValue;
use super::file::DwarfFile;
use super::pc::PcAttributes;
use super::unit::Unit;
use crate::section_contents::{SectionContents, SectionWindow};
use gimli::constants;
use nyquist_object::Cursor;
use std::ops::{ControlFlow, Range};

/// The most entries of range lists that one pass reads, which is more than any real unit has.
const MAX_RANGES: usize = 1 << 24;

/// The bytes of the lists that are read at once. Lists are nearly in the order of the entries that refer to
/// them.
const AHEAD: u64 = 16 << 10;

/// A unit together with the files that its parts are in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitView<'a> {
    /// The file that holds the unit's entries.
    pub(crate) file: &'a DwarfFile,
    pub(crate) unit: &'a Unit,
    /// The file that has its addresses, which is another file if the unit was split off.
    pub(crate) addresses: &'a DwarfFile,
    /// The supplementary file that dwz made.
    pub(crate) supplementary: Option<&'a DwarfFile>,
}

/// Reads range lists in one pass over entries.
#[derive(Debug)]
pub(crate) struct RangeLists<'b> {
    /// How many entries of lists may still be read.
    left: usize,
    /// The last window of `.debug_ranges`.
    ranges: SectionWindow<'b>,
    /// The same for `.debug_rnglists`.
    rnglists: SectionWindow<'b>,
}

/// The buffers for reading lists.
#[derive(Debug, Default)]
pub(crate) struct ListBuffers {
    ranges: Vec<u8>,
    rnglists: Vec<u8>,
}

impl<'b> RangeLists<'b> {
    /// Begins to read the lists of units of `file`, whose addresses are in the file `addresses`. Each list
    /// belongs to one entry, or a few, and an entry of a list takes more than a byte. But hostile lists can
    /// be long, and every entry can refer to them.
    pub(crate) fn new(file: &DwarfFile, addresses: &DwarfFile, buffers: &'b mut ListBuffers) -> Self {
        let bytes = file.sections.rnglists.len().saturating_add(addresses.sections.ranges.len());
        Self {
            left: usize::try_from(bytes).unwrap_or(MAX_RANGES).min(MAX_RANGES),
            ranges: SectionWindow::new(&mut buffers.ranges, AHEAD),
            rnglists: SectionWindow::new(&mut buffers.rnglists, AHEAD),
        }
    }
}

/// The state of reading a list.
struct RangeList<'a, F> {
    view: &'a UnitView<'a>,
    base: u64,
    /// How many entries may still be read.
    left: &'a mut usize,
    found: F,
}

impl UnitView<'_> {
    /// The address that a value states.
    pub(crate) fn address(&self, value: AttributeValue) -> Option<u64> {
        self.addresses.sections.address(&self.unit.bases, value)
    }

    /// Calls `found` with each range of code of the attributes of an entry, as far as they can be read and
    /// `lists` allow it, until `found` returns `Break`.
    pub(crate) fn for_each_range(
        &self,
        pc: &PcAttributes,
        lists: &mut RangeLists<'_>,
        found: impl FnMut(Range<u64>) -> ControlFlow<()>,
    ) {
        let RangeLists { left, ranges, rnglists } = lists;
        let mut list = RangeList { view: self, base: self.unit.low_pc, left, found };
        if let Some(value) = pc.ranges {
            let _ = list.read(value, ranges, rnglists);
        } else if let Some(low) = pc.low.and_then(|low| self.address(low)) {
            let high = match pc.high {
                Some(AttributeValue::Number(size)) => low.checked_add(size),
                Some(high) => self.address(high),
                None => low.checked_add(1),
            };
            let _ = list.push(low, high.unwrap_or(low));
        }
    }
}

impl<F: FnMut(Range<u64>) -> ControlFlow<()>> RangeList<'_, F> {
    /// Passes a range to `found`. `None` if no more are requested.
    fn push(&mut self, start: u64, end: u64) -> Option<()> {
        if start < end {
            return (self.found)(start..end).is_continue().then_some(());
        }
        Some(())
    }

    fn read(
        &mut self,
        value: AttributeValue,
        ranges: &mut SectionWindow<'_>,
        rnglists: &mut SectionWindow<'_>,
    ) -> Option<()> {
        let UnitView { file, unit, addresses, .. } = *self.view;
        let (file, addresses) = (&file.sections, &addresses.sections);
        let modern = unit.header.encoding.version >= 5;
        match value {
            AttributeValue::RangeListIndex(index) => {
                let offset = file.range_list_offset(&unit.bases, index)?;
                self.read_in(&file.rnglists, rnglists, offset, Self::rnglist)
            }
            _ if modern => {
                let offset = value.number()?.checked_add(unit.rnglists_start)?;
                self.read_in(&file.rnglists, rnglists, offset, Self::rnglist)
            }
            // The GNU extension keeps a split unit's lists in the file that was linked.
            _ => {
                let base = if file.is_split { unit.ranges_base } else { 0 };
                let offset = value.number()?.checked_add(base)?;
                self.read_in(&addresses.ranges, ranges, offset, Self::old_list)
            }
        }
    }

    /// The end of a list is only known after it has been read. It is read in windows, and an entry at a
    /// window's end is read again from the next window.
    fn read_in(
        &mut self,
        section: &SectionContents,
        window: &mut SectionWindow<'_>,
        mut offset: u64,
        entry: impl Fn(&mut Self, &mut Cursor<'_>) -> Option<bool>,
    ) -> Option<()> {
        const WANT: u64 = 512;
        loop {
            let bytes = window.read(section, offset, WANT)?;
            let mut cursor = Cursor::new(bytes, 0, self.view.file.sections.little_endian);
            let mut complete = 0;
            while *self.left > 0
                && let Some(more) = entry(self, &mut cursor)
            {
                if !more {
                    return Some(());
                }
                *self.left -= 1;
                complete = cursor.position();
            }
            if complete == 0 {
                return None;
            }
            offset += complete as u64;
        }
    }

    /// One entry of `.debug_ranges` (DWARF 4, 2.17.3); `Some(false)` at the list's end.
    fn old_list(&mut self, cursor: &mut Cursor<'_>) -> Option<bool> {
        let size = self.view.unit.header.encoding.address_size;
        let (start, end) = (cursor.sized(size)?, cursor.sized(size)?);
        let select_base = if size == 8 { u64::MAX } else { u64::from(u32::MAX) };
        if start == 0 && end == 0 {
            return Some(false);
        }
        if start == select_base {
            self.base = end;
        } else {
            self.push(self.base.wrapping_add(start), self.base.wrapping_add(end))?;
        }
        Some(true)
    }

    /// One entry of `.debug_rnglists` (DWARF 5, 2.17.3 and 7.25); `Some(false)` at the list's end.
    fn rnglist(&mut self, cursor: &mut Cursor<'_>) -> Option<bool> {
        let UnitView { unit, addresses, .. } = *self.view;
        let encoding = unit.header.encoding;
        let indexed = |index| addresses.sections.indexed_address(&unit.bases, index).unwrap_or(0);
        match constants::DwRle(cursor.u8()?) {
            constants::DW_RLE_end_of_list => return Some(false),
            constants::DW_RLE_base_addressx => self.base = indexed(cursor.uleb()?),
            constants::DW_RLE_startx_endx => {
                let (start, end) = (cursor.uleb()?, cursor.uleb()?);
                self.push(indexed(start), indexed(end))?;
            }
            constants::DW_RLE_startx_length => {
                let (start, length) = (cursor.uleb()?, cursor.uleb()?);
                let start = indexed(start);
                self.push(start, start.wrapping_add(length))?;
            }
            constants::DW_RLE_offset_pair => {
                let (start, end) = (cursor.uleb()?, cursor.uleb()?);
                self.push(self.base.wrapping_add(start), self.base.wrapping_add(end))?;
            }
            constants::DW_RLE_base_address => self.base = cursor.sized(encoding.address_size)?,
            constants::DW_RLE_start_end => {
                let start = cursor.sized(encoding.address_size)?;
                let end = cursor.sized(encoding.address_size)?;
                self.push(start, end)?;
            }
            constants::DW_RLE_start_length => {
                let (start, length) = (cursor.sized(encoding.address_size)?, cursor.uleb()?);
                self.push(start, start.wrapping_add(length))?;
            }
            _ => return None,
        }
        Some(true)
    }
}
