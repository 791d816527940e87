//! The parts of an image that have code.

use super::{MachOImage, MachoFiles};
use nyquist_object::FileOffset;
use nyquist_object::elf::ElfSegment;

impl MachoFiles {
    /// The image that was mapped.
    pub(crate) fn binary(&self) -> Option<&MachOImage> {
        self.binary.as_ref()
    }

    /// The segments of the image as the loader maps them, as ELF segments.
    pub(crate) fn segments(image: &MachOImage) -> Vec<ElfSegment> {
        let segment = |segment: &nyquist_object::macho::MachOSegment| ElfSegment {
            offset: FileOffset(segment.bytes.offset.0),
            address: segment.address,
            file_size: segment.bytes.size,
            memory_size: segment.memory_size,
            executable: segment.executable,
        };
        image.segments().iter().map(segment).collect()
    }
}
