//! Mach-O files as modules. A universal file contains several images, of which one was mapped.

use nyquist_object::elf::{Architecture, ElfSegment};
use nyquist_object::macho::SourceRange;
use nyquist_object::{ByteSource, MachO, MachUuid};

/// The architectures whose code is sampled.
const SAMPLED: [Architecture; 2] = [Architecture::Aarch64, Architecture::X86_64];

/// Opens the Mach-O file with an id: a file, or a part of a universal file.
pub(crate) fn open<S: ByteSource + Clone>(source: S, id: MachUuid) -> Option<MachO<SourceRange<S>>> {
    let mut files = SAMPLED.into_iter().filter_map(|architecture| {
        MachO::open_for(source.clone(), architecture, |file| file.uuid() == Some(id)).ok()
    });
    files.find(|file| file.uuid() == Some(id))
}

/// The segments of an image, with their places in the whole file.
pub(crate) fn segments<S: ByteSource>(file: &MachO<SourceRange<S>>) -> Vec<ElfSegment> {
    let start = file.source().start().0;
    let segment = |segment: &nyquist_object::macho::MachOSegment| ElfSegment {
        offset: nyquist_object::FileOffset(segment.bytes.offset.0.saturating_add(start)),
        address: segment.address,
        file_size: segment.bytes.size,
        memory_size: segment.memory_size,
        executable: segment.executable,
    };
    file.segments().iter().map(segment).collect()
}
