//! The section `__unwind_info`: from addresses to encodings (Apple's `mach-o/compact_unwind_encoding.h`).

use std::ops::Range;

const VERSION: u32 = 1;
const REGULAR_PAGE: u32 = 2;
const COMPRESSED_PAGE: u32 = 3;

/// The bytes of an entry of the index.
const INDEX_ENTRY: usize = 12;

/// The most entries that are read. Each takes at least four bytes, but pages can share entries.
const MAX_ENTRIES: usize = 1 << 24;

/// A view of the section without a cursor: numbers at offsets.
#[derive(Clone, Copy)]
struct UnwindInfoSection<'a>(&'a [u8]);

impl UnwindInfoSection<'_> {
    fn u16(self, at: usize) -> Option<usize> {
        Some(u16::from_le_bytes(*self.0.get(at..)?.first_chunk()?).into())
    }

    fn u32(self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(*self.0.get(at..)?.first_chunk()?))
    }

    /// The number at an index of an array.
    fn element(self, array: usize, index: usize) -> Option<u32> {
        self.u32(array.checked_add(index.checked_mul(4)?)?)
    }
}

/// A page of entries, and the fields of the section's header that they need.
#[derive(Clone, Copy)]
struct EntryPage {
    /// The page's offset in the section.
    at: usize,
    /// The address that compressed entries count from.
    start: u32,
    /// The encodings that all pages share: their offset and number.
    common: (usize, usize),
}

/// The ranges of relative addresses and their encodings, in ascending order, none of them overlapping.
/// Entries after damage in a page are left out.
pub(super) fn entries(bytes: &[u8]) -> Result<Vec<(Range<u32>, u32)>, &'static str> {
    const CUT: &str = "the section ends within its header";
    let section = UnwindInfoSection(bytes);
    let field = |number: usize| section.u32(4 * number).ok_or(CUT);
    if field(0)? != VERSION {
        return Err("an unknown version");
    }
    let common = (field(1)? as usize, field(2)? as usize);
    let (index, count) = (field(5)? as usize, field(6)? as usize);
    let mut starts = Vec::new();
    for number in 0..count {
        let Some(at) = number.checked_mul(INDEX_ENTRY).and_then(|at| at.checked_add(index)) else { break };
        let (Some(start), Some(page)) = (section.u32(at), section.u32(at + 4)) else { break };
        match page as usize {
            // The last entry of the index is the end of the last page's code.
            0 => starts.push((start, 0)),
            at => page_entries(section, EntryPage { at, start, common }, &mut starts),
        }
        if starts.len() >= MAX_ENTRIES {
            break;
        }
    }
    let ranges = starts.windows(2).filter_map(|pair| match pair {
        [(start, encoding), (end, _)] if start < end => Some((*start..*end, *encoding)),
        _ => None,
    });
    let mut end = 0;
    // A start before the previous start is damage, and such a range is left out.
    Ok(ranges
        .filter(|(range, _)| {
            range.start >= end && {
                end = range.end;
                true
            }
        })
        .collect())
}

/// Adds the addresses at which a page's entries begin, and their encodings.
fn page_entries(section: UnwindInfoSection<'_>, page: EntryPage, starts: &mut Vec<(u32, u32)>) {
    let header = |at: usize| section.u16(page.at.checked_add(at)?);
    let (Some(kind), Some(first), Some(count)) = (section.u32(page.at), header(4), header(6)) else { return };
    for number in 0..count {
        let at = page.at + first;
        let entry = match kind {
            REGULAR_PAGE => section.element(at, 2 * number).zip(section.element(at, 2 * number + 1)),
            COMPRESSED_PAGE => section.element(at, number).and_then(|entry| compressed(section, page, entry)),
            _ => None,
        };
        match entry {
            Some(entry) => starts.push(entry),
            None => return,
        }
    }
}

/// An entry of a compressed page: a distance from the page's start, and the number of an encoding.
fn compressed(section: UnwindInfoSection<'_>, page: EntryPage, entry: u32) -> Option<(u32, u32)> {
    let (distance, number) = (entry & 0x00ff_ffff, (entry >> 24) as usize);
    let (common, common_count) = page.common;
    let encoding = match number.checked_sub(common_count) {
        None => section.element(common, number)?,
        Some(own) => section.element(page.at + section.u16(page.at.checked_add(8)?)?, own)?,
    };
    Some((page.start.checked_add(distance)?, encoding))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// A section with two common encodings, a regular page and a compressed one.
    fn section() -> Vec<u8> {
        let header = [1, 28, 2, 36, 0, 36, 3];
        let common = [0x0100_0000, 0x0200_0000];
        let index = [0x1000, 72, 0, 0x1100, 96, 0, 0x1200, 0, 0];
        let regular = [2, 0x0002_0008, 0x1000, 0x0300_0000, 0x1080, 0x0400_0000];
        // The page has one encoding of its own, and entries for a common encoding and for its own.
        let compressed = [3, 0x0002_000c, 0x0001_0014, 0x0100_0000, 0x0200_0040, 0x0500_0000];
        words(&[&header[..], &common, &index, &regular, &compressed].concat())
    }

    #[test]
    fn reads_regular_and_compressed_pages() {
        let expected = [
            (0x1000..0x1080, 0x0300_0000),
            (0x1080..0x1100, 0x0400_0000),
            (0x1100..0x1140, 0x0200_0000),
            (0x1140..0x1200, 0x0500_0000),
        ];
        assert_eq!(entries(&section()).unwrap(), expected);
    }

    #[test]
    fn a_section_that_is_cut_gives_less() {
        let whole = section();
        for len in 0..whole.len() {
            let found = entries(&whole[..len]);
            assert_eq!(found.is_err(), len < 28, "{len}");
            assert!(found.is_ok_and(|found| found.len() <= 4) || len < 28);
        }
    }

    #[test]
    fn addresses_that_go_back_are_left_out() {
        let mut bytes = section();
        // The second entry of the regular page begins before the first.
        bytes[88..92].copy_from_slice(&0x0800_u32.to_le_bytes());
        let found = entries(&bytes).unwrap();
        assert!(found.is_sorted_by(|a, b| a.0.end <= b.0.start), "{found:x?}");
    }

    #[test]
    fn an_unknown_version_is_refused() {
        assert_eq!(entries(&words(&[2, 0, 0, 0, 0, 0, 0])), Err("an unknown version"));
    }
}
