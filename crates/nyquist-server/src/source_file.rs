//! Reading a source file whose name has been found to be one that may be served.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::symbol_source::LookupError;

/// The longest source file that is served, in bytes; amalgamated C reaches 10 MB.
const LONGEST: u64 = 32 << 20;

/// Reads the file's text; bytes that are not UTF-8, as older comments have them, are replaced.
pub(crate) fn read(file: &str) -> Result<String, LookupError> {
    let unfit = |reason| LookupError::SourceUnfit { file: file.to_owned(), reason };
    if !Path::new(file).is_absolute() {
        return Err(unfit("its folder is not known"));
    }
    let unreadable = |source| LookupError::SourceUnreadable { file: file.to_owned(), source };
    let length = regular_length(file).map_err(unreadable)?.ok_or_else(|| unfit("it is no regular file"))?;
    if length > LONGEST {
        return Err(unfit("it is too long"));
    }
    let bytes = read_first(file, length).map_err(unreadable)?;
    if bytes.contains(&0) {
        return Err(unfit("it is not text"));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The length of a regular file; `None` for anything else. Asked ahead of opening, for merely opening a FIFO or
/// a device can wait for ever or have effects.
fn regular_length(file: &str) -> io::Result<Option<u64>> {
    let metadata = std::fs::metadata(file)?;
    Ok(metadata.is_file().then_some(metadata.len()))
}

/// Reads no more than was announced: the files below `/proc`, which may wait or never end, announce nothing.
fn read_first(file: &str, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}
