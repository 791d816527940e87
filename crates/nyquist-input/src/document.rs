//! A file's profile as a document of the Firefox Profiler.

use crate::error::InputError;
use nyquist_formats::{Format, PREFIX_BYTES, Packing, detect, is_recoded};
use nyquist_profile::Profile;
use nyquist_profile::firefox::{self, WriteOptions};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};

/// A document of the Firefox Profiler.
#[derive(Debug)]
pub enum Document {
    /// The file that it is.
    File(File),
    /// Its bytes.
    Bytes(Vec<u8>),
}

/// The profile that was read from a file as a document of the Firefox Profiler: the file if it is one,
/// otherwise `profile` converted, compressed with gzip. `file` is the file that was read, and not another one that is
/// at its path now.
///
/// # Errors
/// [`InputError::Document`] if it cannot be converted.
pub fn document(file: Option<File>, profile: &Profile) -> Result<Document, InputError> {
    if profile.meta().measure.is_cpu_time()
        && let Some(mut file) = file
        && let Ok(start) = start_of(&mut file)
    {
        let is_document = matches!(detect(&start, ""), None | Some(Format::Firefox))
            && matches!(Packing::of(&start), None | Some(Packing::Gzip));
        if is_document && !is_recoded(&start) {
            return Ok(Document::File(file));
        }
    }
    let mut document = Vec::new();
    firefox::write(profile, WriteOptions { gzip: true, ..WriteOptions::default() }, &mut document)
        .map_err(InputError::Document)?;
    Ok(Document::Bytes(document))
}

/// The first bytes of an open file.
fn start_of(file: &mut File) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    file.rewind()?;
    file.take(PREFIX_BYTES as u64).read_to_end(&mut start)?;
    Ok(start)
}
