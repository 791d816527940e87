//! The instructions of code that no unwind information covers.

use nyquist_object::elf::Segment;
use nyquist_object::{ByteSource, Elf, FileOffset, Svma};
use std::ops::Range;

/// Gaps shorter than this are padding between functions.
const MIN_GAP: u32 = 16;

/// The most bytes of instructions that are kept for a module. Real modules have little uncovered code but for
/// a few large ones that are built without unwind information; there, the rest goes by frame pointers alone.
const MAX_KEPT: usize = 32 << 20;

/// The executable segments of a module, relative to its image base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeRange {
    pub(crate) range: Range<u32>,
    offset: FileOffset,
}

/// The executable segments of the file, as far as there are bytes for them, by address.
pub(crate) fn code_ranges<S: ByteSource>(elf: &Elf<S>) -> Vec<CodeRange> {
    let (base, len) = (elf.image_base(), elf.source().len());
    let executable = elf.segments().iter().filter(|segment| segment.executable);
    let mut ranges: Vec<_> = executable.filter_map(|segment| code_range(segment, base, len)).collect();
    ranges.sort_by_key(|code| code.range.start);
    ranges
}

fn code_range(segment: &Segment, base: Svma, file_len: u64) -> Option<CodeRange> {
    let start = u32::try_from(segment.address.0.checked_sub(base.0)?).ok()?;
    let size = segment.file_size.min(file_len.checked_sub(segment.offset.0)?);
    let end = u64::from(start).saturating_add(size).min(u64::from(u32::MAX)) as u32;
    (start < end).then_some(CodeRange { range: start..end, offset: segment.offset })
}

/// The bytes of ranges of code, by address.
#[derive(Debug, Default)]
pub(crate) struct UncoveredCode {
    /// Relative addresses, and where in `bytes` they begin.
    ranges: Vec<(Range<u32>, usize)>,
    bytes: Vec<u8>,
}

impl UncoveredCode {
    /// Reads what of `code` is not in `covered`; both are in order.
    pub(crate) fn read<S: ByteSource>(source: &S, code: &[CodeRange], covered: &[Range<u32>]) -> Self {
        let mut uncovered = Self::default();
        for segment in code {
            let mut position = segment.range.start;
            let after = covered.partition_point(|range| range.end <= position);
            let inside = covered.iter().skip(after).take_while(|range| range.start < segment.range.end);
            let end = segment.range.end..segment.range.end;
            for range in inside.cloned().chain(std::iter::once(end)) {
                if range.start.saturating_sub(position) >= MIN_GAP {
                    uncovered.read_gap(source, segment, position..range.start);
                }
                position = position.max(range.end);
            }
        }
        uncovered
    }

    fn read_gap<S: ByteSource>(&mut self, source: &S, segment: &CodeRange, gap: Range<u32>) {
        let len = (gap.end - gap.start) as usize;
        if self.bytes.len() + len > MAX_KEPT || self.ranges.last().is_some_and(|last| last.0.end > gap.start)
        {
            return;
        }
        let offset = segment.offset.0 + u64::from(gap.start - segment.range.start);
        let kept = self.bytes.len();
        self.bytes.resize(kept + len, 0);
        // Code that cannot be read is code whose instructions are not known; that is no error.
        match self.bytes.get_mut(kept..).map(|buffer| source.read_exact_at(offset, buffer)) {
            Some(Ok(())) => self.ranges.push((gap, kept)),
            _ => self.bytes.truncate(kept),
        }
    }

    /// The bytes around a relative address, and where in them the address is. The end of a range counts.
    pub(crate) fn around(&self, address: u32) -> Option<(&[u8], usize)> {
        let index = self.ranges.partition_point(|(range, _)| range.end < address);
        let (range, start) = self.ranges.get(index).filter(|(range, _)| range.start <= address)?;
        let bytes = self.bytes.get(*start..*start + (range.end - range.start) as usize)?;
        Some((bytes, (address - range.start) as usize))
    }

    /// How many bytes are kept.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }
}
