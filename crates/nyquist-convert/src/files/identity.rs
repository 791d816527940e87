//! Whether a file is the one that was mapped.

use super::macho;
use crate::event::MappedFile;
use nyquist_object::{Elf, FileSource, Pe};
use nyquist_system::file_id;
use std::fs::File;

/// The path of a file that may have been deleted since.
pub(crate) fn without_deleted(path: &str) -> &str {
    path.strip_suffix(" (deleted)").unwrap_or(path)
}

/// Whether an open file can be the one that the kernel mapped. The device is not compared, because on stacked
/// file systems `stat` returns another device than the mapping has.
pub(crate) fn has_identity(file: &File, identity: &MappedFile) -> bool {
    match identity {
        MappedFile::Inode { inode, .. } => file_id(file).is_ok_and(|id| id.number == *inode),
        MappedFile::BuildId(id) => {
            let elf = file.try_clone().ok().and_then(|file| Elf::open(FileSource::new(file)).ok());
            elf.and_then(|elf| elf.build_id()).as_ref() == Some(id)
        }
        MappedFile::Pe(id) => {
            let pe = file.try_clone().ok().and_then(|file| Pe::open(FileSource::new(file)).ok());
            pe.is_some_and(|pe| pe.code_id() == *id)
        }
        MappedFile::Provided(image) => {
            let pe = file.try_clone().ok().and_then(|file| Pe::open(FileSource::new(file)).ok());
            pe.and_then(|pe| pe.id().ok()).is_some_and(|id| image.may_be(id))
        }
        MappedFile::MachO(id) => {
            let source = file.try_clone().map(FileSource::new);
            source.is_ok_and(|source| macho::open(&source, *id).is_some())
        }
        MappedFile::Unknown => true,
    }
}
