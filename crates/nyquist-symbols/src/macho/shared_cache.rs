//! Libraries of the system that are only in the dyld shared cache.

use super::images::MachOImage;
use crate::OpenFile;
use crate::find::open_source;
use crate::section_contents::SharedSource;
use nyquist_object::macho::shared_cache::{MAGIC, SharedCache};
use nyquist_object::{ByteSource, DebugId, MachO, ObjectError};
use std::ffi::OsStr;
use std::sync::Arc;

/// Whether a file begins like the first file of a cache.
pub(crate) fn begins_as_cache(source: &SharedSource) -> bool {
    let mut start = [0; MAGIC.len()];
    source.read_exact_at(0, &mut start).is_ok() && start == *MAGIC
}

/// The ids and paths of the libraries in a cache, by its first file.
///
/// # Errors
/// The file is no cache, or is damaged.
pub(crate) fn ids_in_cache(source: &SharedSource) -> Result<Vec<(DebugId, String)>, ObjectError> {
    let images = SharedCache::images_of(source)?;
    Ok(images.into_iter().map(|image| (image.uuid.debug_id(), image.path)).collect())
}

/// The library with this id, in the cache with this first file. The other files of the cache are beside it.
///
/// # Errors
/// The file is no cache, or the library is in a file that does not exist.
pub(crate) fn image_in_cache(file: &OpenFile, requested: DebugId) -> Result<Option<MachOImage>, ObjectError> {
    let beside = |suffix: &str| {
        let mut name = file.path.file_name().unwrap_or(OsStr::new("")).to_owned();
        name.push(suffix);
        open_source(&file.path.with_file_name(name), file.source.budget())
            .ok()
            .map(|source| source as SharedSource)
    };
    let cache = SharedCache::open(file.source.clone() as SharedSource, beside)?;
    let Some(image) = cache.images().iter().find(|image| image.uuid.debug_id() == requested) else {
        return Ok(None);
    };
    let extracted = Arc::new(cache.extract(image)?);
    MachO::open(extracted as SharedSource).map(Some)
}
