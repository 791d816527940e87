//! A file's profile as a document of the Firefox Profiler.

use crate::error::InputError;
use nyquist_formats::{Format, PREFIX_BYTES, Packing, detect, is_recoded};
use nyquist_profile::Profile;
use nyquist_profile::firefox::{self, WriteOptions};
use std::path::Path;

/// The profile that was read from `path` as a document of the Firefox Profiler: the file's bytes if it is one,
/// otherwise `profile` converted, compressed with gzip.
///
/// # Errors
/// [`InputError::Document`] if it cannot be converted.
pub fn document(path: &Path, profile: &Profile) -> Result<Vec<u8>, InputError> {
    // A file that only root may read can no longer be read.
    if profile.meta().measure.is_cpu_time()
        && path.is_file()
        && let Ok(bytes) = std::fs::read(path)
    {
        let start = &bytes[..bytes.len().min(PREFIX_BYTES)];
        let is_document = matches!(detect(start, ""), None | Some(Format::Firefox))
            && matches!(Packing::of(start), None | Some(Packing::Gzip));
        if is_document && !is_recoded(start) {
            return Ok(bytes);
        }
    }
    let mut document = Vec::new();
    firefox::write(profile, WriteOptions { gzip: true, ..WriteOptions::default() }, &mut document)
        .map_err(InputError::Document)?;
    Ok(document)
}
