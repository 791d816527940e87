//! Where the bytes of a recording come from: a file, of which parts can be passed over, or a pipe.

use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use rustix::fs::{Advice, fadvise};

/// How far ahead of the place that is read the file is fetched from the disk where parts are passed over: the kernel takes
/// such reading for random, and would fetch page by page.
const FETCHED_AHEAD: u64 = 8 << 20;

/// A recording's bytes, from front to end.
pub(crate) enum Source {
    /// A file from some place on.
    File(FilePart),
    /// Bytes that come but once.
    Pipe(Box<dyn Read + Send>),
}

/// A file from some place on. Several of them read one open file independently.
#[derive(Debug)]
pub(crate) struct FilePart {
    file: Arc<File>,
    at: u64,
    /// Up to where the file was asked to be fetched.
    fetched: u64,
}

impl Source {
    /// A file from `at` on.
    pub(crate) fn file(file: Arc<File>, at: u64) -> Self {
        Self::File(FilePart { file, at, fetched: at })
    }

    /// The file, if it is one.
    pub(crate) fn as_file(&mut self) -> Option<&mut FilePart> {
        match self {
            Self::File(part) => Some(part),
            Self::Pipe(_) => None,
        }
    }
}

impl FilePart {
    /// The open file.
    pub(crate) fn open_file(&self) -> &Arc<File> {
        &self.file
    }

    /// Passes over the next `len` bytes.
    pub(crate) fn pass_over(&mut self, len: u64) {
        self.at = self.at.saturating_add(len);
        if self.at.saturating_add(FETCHED_AHEAD / 2) > self.fetched {
            let start = self.at.max(self.fetched);
            // Where it cannot be fetched ahead, reading is slower and no more.
            let _ = fadvise(&*self.file, start, NonZeroU64::new(FETCHED_AHEAD), Advice::WillNeed);
            self.fetched = start.saturating_add(FETCHED_AHEAD);
        }
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(part) => {
                let read = part.file.read_at(buffer, part.at)?;
                part.at += read as u64;
                Ok(read)
            }
            Self::Pipe(pipe) => pipe.read(buffer),
        }
    }
}
