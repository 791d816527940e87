//! Positions of records in their files, for readers that read a part of one again.

use nyquist_system::FileExt as _;
use std::fs::File;
use std::sync::Arc;

/// A position in the files of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    file: usize,
    offset: u64,
}

impl Place {
    pub(crate) fn new(file: usize, offset: u64) -> Self {
        Self { file, offset }
    }

    /// The position that many bytes further.
    #[must_use]
    pub fn plus(self, bytes: u64) -> Self {
        Self { offset: self.offset.saturating_add(bytes), ..self }
    }
}

/// The files with the records of a recording, unless it is a stream.
#[derive(Clone, Debug, Default)]
pub struct PlacedFiles {
    files: Vec<Option<Arc<File>>>,
}

impl FromIterator<Option<Arc<File>>> for PlacedFiles {
    fn from_iter<I: IntoIterator<Item = Option<Arc<File>>>>(files: I) -> Self {
        Self { files: files.into_iter().collect() }
    }
}

impl PlacedFiles {
    /// The recording's file, or the first one of its folder.
    pub fn main(&self) -> Option<&File> {
        self.files.first()?.as_deref()
    }

    /// Reads the data at a position until the buffer is full. Returns the number of bytes read, which is
    /// smaller if the file was truncated since, or cannot be read.
    pub fn read(&self, place: Place, buffer: &mut [u8]) -> usize {
        let Some(Some(file)) = self.files.get(place.file) else { return 0 };
        let mut read = 0;
        while let Some(rest) = buffer.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, place.offset.saturating_add(read as u64)) {
                Ok(len) if len > 0 => read += len,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        read
    }
}
