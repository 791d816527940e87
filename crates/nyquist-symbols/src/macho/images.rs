//! The Mach-O files in a file, one for each architecture.

use crate::section_contents::SharedSource;
use nyquist_object::macho::{SourceRange, UniversalFile};
use nyquist_object::{Architecture, DebugId, FileIdentity, MachO, ModuleId, ObjectError};
use std::sync::Arc;

/// A Mach-O file for one architecture.
pub(crate) type MachOImage = MachO<SharedSource>;

/// The architecture of the machine that this runs on.
const OWN: Architecture =
    if cfg!(target_arch = "aarch64") { Architecture::Aarch64 } else { Architecture::X86_64 };

/// The files in a file: the readable ones of a universal file, or the file itself.
///
/// # Errors
/// The file is neither universal nor a Mach-O file of 64 bits, or it is universal and contains no readable
/// file.
pub(crate) fn images(source: &SharedSource) -> Result<Vec<MachOImage>, ObjectError> {
    let universal = match UniversalFile::read(source) {
        Ok(universal) => universal,
        Err(ObjectError::NotAnObject) => return Ok(vec![MachO::open(source.clone())?]),
        Err(error) => return Err(error),
    };
    let mut opened = Vec::new();
    let mut failed = ObjectError::NotAnObject;
    for slice in universal.slices() {
        let range = SourceRange::new(source.clone(), slice.offset, slice.size);
        match MachO::open(Arc::new(range) as SharedSource) {
            Ok(image) => opened.push(image),
            Err(error) => failed = error,
        }
    }
    if opened.is_empty() { Err(failed) } else { Ok(opened) }
}

/// The id by which a profile names the file: its UUID or, if it has none, the hash of its code.
pub(crate) fn id_of(image: &MachOImage) -> Option<DebugId> {
    if let Some(uuid) = image.uuid() {
        return Some(uuid.debug_id());
    }
    let text_hash = image.text_hash().ok()?;
    let file = FileIdentity { device: 0, inode: 0, size: 0, modified_ns: 0, text_hash };
    Some(ModuleId::File(file).debug_id())
}

/// The file with this id among the files in one. If no id is given, the file for the current machine, or the
/// first one.
pub(crate) fn choose(mut images: Vec<MachOImage>, requested: Option<DebugId>) -> Option<MachOImage> {
    let index = match requested {
        Some(requested) => images.iter().position(|image| id_of(image) == Some(requested))?,
        None => images.iter().position(|image| image.architecture() == OWN).unwrap_or(0),
    };
    (index < images.len()).then(|| images.swap_remove(index))
}
