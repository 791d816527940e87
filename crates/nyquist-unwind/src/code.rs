//! The instructions of code that no unwind information covers.

use crate::call_instruction::CallInstruction;
use crate::{aarch64, x86_64};
use nyquist_object::elf::{ElfSection, ElfSegment};
use nyquist_object::{Architecture, ByteSource, Elf, FileOffset, Pe, Svma};
use std::borrow::Cow;
use std::ops::Range;

impl CallInstruction {
    /// The call before a return address, given the last [`MAX_LEN`](Self::MAX_LEN) bytes of instructions
    /// before it, or fewer if the code begins later. `None` if there is no call, or if the architecture is
    /// not supported.
    pub fn before(architecture: Architecture, code: &[u8]) -> Option<Self> {
        match architecture {
            Architecture::X86_64 => x86_64::instructions::call_at_end(code),
            Architecture::Aarch64 => aarch64::instructions::call_at_end(code),
            Architecture::X86 | Architecture::Other(_) => None,
        }
    }
}

/// The largest alignment of functions that padding is expected to reach.
const FUNCTION_ALIGNMENT_BITS: u32 = 4;

/// Whether a gap is padding before a function, which is shorter than the alignment that it reaches. Any other
/// gap is code: glibc's `clone` is not described from its system call to the point where its two threads
/// diverge.
fn is_padding(gap: &Range<u32>) -> bool {
    gap.end.saturating_sub(gap.start) < 1 << gap.end.trailing_zeros().min(FUNCTION_ALIGNMENT_BITS)
}

/// The most bytes of instructions that are kept for a module. Real modules have little uncovered code, except
/// for a few large ones that are built without unwind information. In those, the remaining code is only
/// unwound by frame pointers.
const MAX_KEPT: usize = 32 << 20;

/// The executable segments of a module, relative to its image base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeRange {
    pub(crate) range: Range<u32>,
    pub(crate) offset: FileOffset,
}

/// The executable parts of executable segments, by the sections, because segments also hold data. Linkage
/// tables are left out. So is old code that BOLT keeps after it has moved functions to its own sections.
pub(crate) fn live_code<S: ByteSource>(elf: &Elf<S>, code: &[CodeRange]) -> Vec<CodeRange> {
    let is_live = |section: &ElfSection| section.is_code() && !section.name.starts_with(".bolt.org.");
    let sections = ranges_of(elf, is_live);
    if sections.is_empty() {
        return code.to_vec();
    }
    let sections: Vec<_> = ranges_of(elf, |section| is_live(section) && !is_linkage_table(section));
    within(code, &sections)
}

/// The tables of jumps to functions of other modules, with adjacent ones merged (System V ABI for AMD64,
/// "Procedure Linkage Table"), by address.
pub(crate) fn linkage_tables<S: ByteSource>(elf: &Elf<S>) -> Vec<CodeRange> {
    let mut tables = ranges_of(elf, |section| section.is_code() && is_linkage_table(section));
    // The boundary of two adjacent tables belongs to the second one.
    tables.dedup_by(|next, table| {
        let follows = next.start == table.end;
        if follows {
            table.end = next.end;
        }
        follows
    });
    within(&code_ranges(elf), &tables)
}

fn is_linkage_table(section: &ElfSection) -> bool {
    section.name == ".plt" || section.name.starts_with(".plt.")
}

/// The relative addresses of some sections, by address.
fn ranges_of<S: ByteSource>(elf: &Elf<S>, is_one: impl Fn(&ElfSection) -> bool) -> Vec<Range<u32>> {
    let base = elf.image_base().0;
    let ranges = elf.sections().iter().filter(|section| is_one(section)).filter_map(|section| {
        let start = u32::try_from(section.address.0.checked_sub(base)?).ok()?;
        Some(start..start.saturating_add(u32::try_from(section.size).unwrap_or(u32::MAX)))
    });
    let mut ranges: Vec<_> = ranges.filter(|range| !range.is_empty()).collect();
    ranges.sort_by_key(|range| range.start);
    ranges
}

/// The parts of `code` that are in one of the ranges, which are in order.
fn within(code: &[CodeRange], ranges: &[Range<u32>]) -> Vec<CodeRange> {
    let mut parts = Vec::new();
    for segment in code {
        for range in ranges {
            let (start, end) = (range.start.max(segment.range.start), range.end.min(segment.range.end));
            if start < end {
                let offset = FileOffset(segment.offset.0 + u64::from(start - segment.range.start));
                parts.push(CodeRange { range: start..end, offset });
            }
        }
    }
    parts
}

/// The executable segments of the file, as far as the file has bytes for them, by address.
pub(crate) fn code_ranges<S: ByteSource>(elf: &Elf<S>) -> Vec<CodeRange> {
    let (base, len) = (elf.image_base(), elf.source().len());
    let executable = elf.segments().iter().filter(|segment| segment.executable);
    let mut ranges: Vec<_> = executable.filter_map(|segment| code_range(segment, base, len)).collect();
    ranges.sort_by_key(|code| code.range.start);
    ranges
}

/// The same of a PE image.
pub(crate) fn pe_code_ranges<S: ByteSource>(pe: &Pe<S>) -> Vec<CodeRange> {
    let (base, len) = (pe.image_base(), pe.source().len());
    let segments = pe.segments();
    let executable = segments.iter().filter(|segment| segment.executable);
    let mut ranges: Vec<_> = executable.filter_map(|segment| code_range(segment, base, len)).collect();
    ranges.sort_by_key(|code| code.range.start);
    ranges
}

fn code_range(segment: &ElfSegment, base: Svma, file_len: u64) -> Option<CodeRange> {
    let start = u32::try_from(segment.address.0.checked_sub(base.0)?).ok()?;
    let size = segment.file_size.min(file_len.checked_sub(segment.offset.0)?);
    let end = u64::from(start).saturating_add(size).min(u64::from(u32::MAX)) as u32;
    (start < end).then_some(CodeRange { range: start..end, offset: segment.offset })
}

/// All bytes of ranges of code.
#[derive(Debug, Default)]
pub(crate) struct AllCode(Vec<(Range<u32>, Vec<u8>)>);

impl AllCode {
    /// Reads the ranges. Those that cannot be read have no bytes.
    pub(crate) fn read<S: ByteSource>(source: &S, code: &[CodeRange]) -> Self {
        let read = |code: &CodeRange| {
            let len = code.range.end - code.range.start;
            (code.range.clone(), source.read_range(code.offset.0, len.into()).unwrap_or_default())
        };
        Self(code.iter().map(read).collect())
    }

    /// The bytes of a range that is in one of them.
    pub(crate) fn of(&self, range: &Range<u32>) -> Option<&[u8]> {
        let (all, bytes) = self.0.iter().find(|(all, _)| all.contains(&range.start))?;
        bytes.get((range.start - all.start) as usize..range.end.checked_sub(all.start)? as usize)
    }
}

/// Reads nearby bytes in one call.
struct ReadAhead<'a, S> {
    source: &'a S,
    /// The offset of the current bytes.
    at: u64,
    bytes: Vec<u8>,
}

impl<S: ByteSource> ReadAhead<'_, S> {
    /// The `len` bytes from `offset` on. Some bytes after them are read too.
    fn read(&mut self, offset: u64, len: usize) -> Option<&[u8]> {
        const AHEAD: u64 = 64 << 10;
        let inside = |this: &Self| {
            let start = usize::try_from(offset.checked_sub(this.at)?).ok()?;
            start.checked_add(len).filter(|&end| end <= this.bytes.len()).map(|end| start..end)
        };
        if inside(self).is_none() {
            let there = self.source.len().saturating_sub(offset);
            self.at = offset;
            self.bytes.resize(usize::try_from(there.min(AHEAD.max(len as u64))).ok()?, 0);
            if self.source.read_exact_at(offset, &mut self.bytes).is_err() {
                self.bytes.clear();
            }
        }
        let range = inside(self)?;
        self.bytes.get(range)
    }
}

/// The bytes of a gap, unless it is padding or only has instructions that do nothing. Code that cannot be
/// read is treated as unknown code.
pub(crate) fn read_gap<S: ByteSource>(source: &S, gap: &CodeRange) -> Option<Vec<u8>> {
    let read = || source.read_range(gap.offset.0, gap.range.len() as u64).ok();
    let code = if is_padding(&gap.range) { None } else { read() };
    code.filter(|code| !x86_64::instructions::is_filling(code))
}

/// The part of code, in order, that a relative address is in.
pub(crate) fn part_at(code: &[CodeRange], address: u32) -> Option<&CodeRange> {
    let after = code.partition_point(|part| part.range.start <= address);
    code.get(after.checked_sub(1)?).filter(|part| part.range.contains(&address))
}

/// Uncovered code around an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeAround<'a> {
    pub(crate) code: Cow<'a, [u8]>,
    /// The offset of the address in the code.
    pub(crate) at: usize,
    pub(crate) extent: UncoveredExtent,
}

/// The extent of the uncovered code around an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UncoveredExtent {
    /// A large piece, or a piece of unknown origin.
    Any,
    /// A small gap between described functions, as linkers and start files leave it. It begins with a
    /// function, or with padding before one.
    SmallGap,
    /// The same in a large module, of which no more code should be read for this gap.
    LoneGap,
}

impl<'a> CodeAround<'a> {
    pub(crate) fn new((code, at): (&'a [u8], usize), extent: UncoveredExtent) -> Self {
        Self { code: code.into(), at, extent }
    }
}

/// The bytes of ranges of code, by address.
#[derive(Debug, Default)]
pub(crate) struct UncoveredCode {
    /// Relative addresses, and where in `bytes` they begin.
    ranges: Vec<(Range<u32>, usize)>,
    bytes: Vec<u8>,
}

impl UncoveredCode {
    /// Reads the executable parts of `code` that are not in `covered`. Both are in order.
    pub(crate) fn read<S: ByteSource>(elf: &Elf<S>, code: &[CodeRange], covered: &[Range<u32>]) -> Self {
        Self::read_source(elf.source(), &live_code(elf, code), covered)
    }

    /// As [`UncoveredCode::read`], for code that is all executable.
    pub(crate) fn read_source<S: ByteSource>(source: &S, code: &[CodeRange], covered: &[Range<u32>]) -> Self {
        let mut uncovered = Self::default();
        uncovered.read_gaps(source, code, covered);
        uncovered
    }

    /// Reads all of some code, which is in order. Code that cannot be read is left out.
    pub(crate) fn read_whole<S: ByteSource>(source: &S, code: &[CodeRange]) -> Self {
        let mut all = Self::default();
        for CodeRange { range, offset } in code {
            if all.has_room(range)
                && let Ok(bytes) = source.read_range(offset.0, range.len() as u64)
            {
                all.keep(range.clone(), &bytes);
            }
        }
        all
    }

    /// Whether a range of code may be kept: it is after all kept code, and fits the limit.
    fn has_room(&self, range: &Range<u32>) -> bool {
        let is_behind = self.ranges.last().is_none_or(|(last, _)| last.end <= range.start);
        is_behind && self.bytes.len() + range.len() <= MAX_KEPT
    }

    fn keep(&mut self, range: Range<u32>, bytes: &[u8]) {
        self.ranges.push((range, self.bytes.len()));
        self.bytes.extend_from_slice(bytes);
    }

    /// Code that is all uncovered, from relative address 0 on.
    pub(crate) fn all(bytes: Vec<u8>) -> Self {
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        Self { ranges: vec![(0..len, 0)], bytes }
    }

    /// Reads the gaps between covered ranges.
    fn read_gaps<S: ByteSource>(&mut self, source: &S, code: &[CodeRange], covered: &[Range<u32>]) {
        let mut source = ReadAhead { source, at: 0, bytes: Vec::new() };
        for segment in code {
            let mut position = segment.range.start;
            let after = covered.partition_point(|range| range.end <= position);
            let inside = covered.iter().skip(after).take_while(|range| range.start < segment.range.end);
            let end = segment.range.end..segment.range.end;
            for range in inside.cloned().chain(std::iter::once(end)) {
                let gap = position..range.start;
                if !is_padding(&gap) {
                    self.read_gap(&mut source, segment, gap);
                }
                position = position.max(range.end);
            }
        }
    }

    fn read_gap<S: ByteSource>(
        &mut self,
        source: &mut ReadAhead<'_, S>,
        segment: &CodeRange,
        gap: Range<u32>,
    ) {
        if !self.has_room(&gap) {
            return;
        }
        let offset = segment.offset.0 + u64::from(gap.start - segment.range.start);
        // Code that cannot be read is treated as unknown code. This is no error.
        let code = source.read(offset, gap.len()).unwrap_or_default();
        if !x86_64::instructions::is_filling(code) {
            self.keep(gap, code);
        }
    }

    /// The bytes around a relative address, and the offset of the address in them. The end of a range counts
    /// as part of it.
    pub(crate) fn around(&self, address: u32) -> Option<(&[u8], usize)> {
        let index = self.ranges.partition_point(|(range, _)| range.end < address);
        let (range, start) = self.ranges.get(index).filter(|(range, _)| range.start <= address)?;
        let bytes = self.bytes.get(*start..*start + (range.end - range.start) as usize)?;
        Some((bytes, (address - range.start) as usize))
    }

    /// The ranges, and the bytes of each.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (Range<u32>, &[u8])> {
        self.ranges.iter().filter_map(|(range, start)| {
            let bytes = self.bytes.get(*start..*start + (range.end - range.start) as usize)?;
            Some((range.clone(), bytes))
        })
    }

    /// Whether a relative address is in one of the ranges.
    pub(crate) fn holds(&self, address: u32) -> bool {
        let index = self.ranges.partition_point(|(range, _)| range.end <= address);
        self.ranges.get(index).is_some_and(|(range, _)| range.contains(&address))
    }

    /// The number of bytes that are kept.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_sections_that_run_is_kept() {
        let code = [(0x1000..0x2000, 0x100), (0x4000..0x5000, 0x1100)];
        let code = code.map(|(range, offset)| CodeRange { range, offset: FileOffset(offset) });
        let check = |sections: &[(u32, u32)], expected: &[(u32, u32, u64)]| {
            let sections: Vec<_> = sections.iter().map(|&(start, end)| start..end).collect();
            let parts = within(&code, &sections);
            let parts: Vec<_> =
                parts.iter().map(|part| (part.range.start, part.range.end, part.offset.0)).collect();
            assert_eq!(parts, expected, "{sections:x?}");
        };
        check(&[], &[]);
        check(&[(0x1000, 0x1080), (0x4f00, 0x5000)], &[(0x1000, 0x1080, 0x100), (0x4f00, 0x5000, 0x2000)]);
        check(&[(0x0800, 0x4010)], &[(0x1000, 0x2000, 0x100), (0x4000, 0x4010, 0x1100)]);
        check(&[(0x2000, 0x4000)], &[]);
    }

    #[test]
    fn code_stated_to_be_there_often_is_kept_once() {
        let code = |start: u32, end: u32| CodeRange { range: start..end, offset: FileOffset(0) };
        let check = |code: &[CodeRange], len: usize, expected: &[(u32, u32)]| {
            let all = UncoveredCode::read_whole(&vec![0xc3; len], code);
            let retained: Vec<_> = all.ranges.iter().map(|(range, _)| (range.start, range.end)).collect();
            assert_eq!(retained, expected);
            assert!(all.bytes.len() <= MAX_KEPT);
        };
        let (table, same) = (code(0x100, 0x200), code(0x100, 0x200));
        check(
            &[table, same, code(0x180, 0x220), code(0x200, 0x240)],
            0x1000,
            &[(0x100, 0x200), (0x200, 0x240)],
        );
        let half = MAX_KEPT as u32 / 2 + 1;
        check(
            &[code(0, half), code(half, 2 * half), code(2 * half, 2 * half + 9)],
            half as usize,
            &[(0, half), (2 * half, 2 * half + 9)],
        );
    }

    #[test]
    fn keeps_what_no_range_covers() {
        let bytes: Vec<u8> = (0..=255).collect();
        let file = [vec![0; 0x100], bytes].concat();
        let code = [CodeRange { range: 0x1000..0x1100, offset: FileOffset(0x100) }];
        let check = |covered: &[(u32, u32)], address: u32, expected: Option<(u8, usize, usize)>| {
            let covered: Vec<_> = covered.iter().map(|&(start, end)| start..end).collect();
            let mut uncovered = UncoveredCode::default();
            uncovered.read_gaps(&file, &code, &covered);
            let around = uncovered.around(address).map(|(bytes, at)| (bytes[0], bytes.len(), at));
            assert_eq!(around, expected, "{covered:x?} at {address:#x}");
        };
        check(&[], 0x1010, Some((0, 0x100, 0x10)));
        check(&[(0x1000, 0x1100)], 0x1010, None);
        check(&[(0x1040, 0x1100)], 0x1010, Some((0, 0x40, 0x10)));
        // The end of a range counts, because a call at its end returns there.
        check(&[(0x1040, 0x1100)], 0x1040, Some((0, 0x40, 0x40)));
        check(&[(0x1040, 0x1100)], 0x1041, None);
        check(&[(0x1000, 0x1040), (0x1080, 0x1100)], 0x1050, Some((0x40, 0x40, 0x10)));
        // Padding before an aligned function is not code. A hole in a function is code, however small it is.
        check(&[(0x1000, 0x1041), (0x1050, 0x1100)], 0x1044, None);
        check(&[(0x1000, 0x1041), (0x1048, 0x1100)], 0x1044, None);
        check(&[(0x1000, 0x1040), (0x1048, 0x1100)], 0x1044, Some((0x40, 8, 4)));
        check(&[(0x1000, 0x10d7), (0x10e1, 0x1100)], 0x10d9, Some((0xd7, 10, 2)));
        check(&[(0x0800, 0x1040), (0x10f0, 0x2000)], 0x1050, Some((0x40, 0xb0, 0x10)));
        check(&[], 0x0fff, None);
        check(&[], 0x1101, None);
        // Instructions that do nothing are not code either.
        check(&[(0x1000, 0x1090), (0x1091, 0x1100)], 0x1090, None);
        check(&[(0x1000, 0x1090), (0x1092, 0x1100)], 0x1091, Some((0x90, 2, 1)));
    }
}
