//! A file's profile as a document of the Firefox Profiler.

use crate::error::InputError;
use nyquist_formats::{Format, PREFIX_BYTES, Packing, detect, is_recoded};
use nyquist_profile::Profile;
use nyquist_profile::firefox::{self, WriteOptions};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};

/// The profile that was read from a file as a document of the Firefox Profiler: the file's bytes if it is one,
/// otherwise `profile` converted, compressed with gzip. `file` is the file that was read, and not another one that is at its
/// path now.
///
/// # Errors
/// [`InputError::Document`] if it cannot be converted.
pub fn document(file: Option<File>, profile: &Profile) -> Result<Vec<u8>, InputError> {
    if profile.meta().measure.is_cpu_time()
        && let Some(Ok(bytes)) = file.map(whole)
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

/// The bytes of an open file.
fn whole(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
