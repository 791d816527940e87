//! Converts addresses in the mapping of a file to addresses relative to the module's image base.

use crate::elf::ElfSegment;
use crate::{Avma, FileOffset, RelativeAddress, Svma};

/// A module mapped into a process, represented by the address of its image base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedModule {
    /// The address of the image base in the process.
    pub base: Avma,
}

impl MappedModule {
    /// The address of the image base, if the bytes of the file from `offset` on were mapped at `start`
    /// as code.
    ///
    /// Only executable segments are used. Adjacent segments can share a page of the file, so the first
    /// segment that contains the offset can be the wrong one. `None` if no executable segment has bytes in
    /// the `len` bytes from `offset` on.
    pub fn from_mapping(
        segments: &[ElfSegment],
        image_base: Svma,
        start: Avma,
        offset: FileOffset,
        len: u64,
    ) -> Option<Self> {
        let end = offset.0.saturating_add(len);
        let overlap = |segment: &&ElfSegment| {
            let segment_end = segment.offset.0.saturating_add(segment.file_size);
            segment.executable && segment.offset.0 < end && offset.0 < segment_end
        };
        let segment = segments.iter().find(overlap)?;
        let bias =
            start.0.wrapping_sub(offset.0).wrapping_sub(segment.address.0.wrapping_sub(segment.offset.0));
        Some(Self { base: Avma(image_base.0.wrapping_add(bias)) })
    }

    /// The address of `avma` relative to the image base.
    pub fn relative(&self, avma: Avma) -> Option<RelativeAddress> {
        RelativeAddress::from_avma(avma, self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(offset: u64, address: u64, file_size: u64, executable: bool) -> ElfSegment {
        ElfSegment {
            offset: FileOffset(offset),
            address: Svma(address),
            file_size,
            memory_size: file_size,
            executable,
        }
    }

    #[test]
    fn an_executable_segment_wins_a_shared_page() {
        // The layout of lld: the code begins in the same file page in which the read-only data ends.
        let segments = [segment(0, 0, 0x1734, false), segment(0x1740, 0x2740, 0x5000, true)];
        let mapped =
            MappedModule::from_mapping(&segments, Svma(0), Avma(0x5000_2000), FileOffset(0x1000), 0x6000);
        assert_eq!(mapped, Some(MappedModule { base: Avma(0x5000_0000) }));
        assert_eq!(mapped.unwrap().relative(Avma(0x5000_2740)), Some(RelativeAddress(0x2740)));
    }

    #[test]
    fn fixed_position_executables_map_where_they_say() {
        let segments = [segment(0, 0x40_0000, 0x500, false), segment(0x1000, 0x40_1000, 0x2000, true)];
        let mapped = MappedModule::from_mapping(
            &segments,
            Svma(0x40_0000),
            Avma(0x40_1000),
            FileOffset(0x1000),
            0x2000,
        );
        assert_eq!(mapped, Some(MappedModule { base: Avma(0x40_0000) }));
    }

    #[test]
    fn a_mapping_without_code_is_no_module() {
        let segments = [segment(0, 0, 0x1000, false)];
        assert_eq!(MappedModule::from_mapping(&segments, Svma(0), Avma(0x1000), FileOffset(0), 0x1000), None);
    }
}
