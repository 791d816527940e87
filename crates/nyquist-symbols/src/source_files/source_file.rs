//! The text of one source file, and why there is none.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::SystemTime;

/// The longest source file that is read, in bytes; amalgamated C reaches 10 MB.
pub(super) const LONGEST: u64 = 32 << 20;

/// A source file.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its text; bytes that are not UTF-8, as older comments have them, are replaced.
    pub text: String,
    /// When it was last changed, where that is known.
    pub modified: Option<SystemTime>,
}

/// Why there is no source.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The path is relative, to a folder that is not known.
    #[error("its folder is not known; --source-map FROM=TO tells where it is")]
    NoFolder,
    /// It is there, but nothing that can be trusted names it.
    #[error("no debug info on this machine names it; --source-dir DIR allows its folder")]
    NotAllowed,
    /// The system does not let it be read.
    #[error("{0}")]
    Unreadable(#[source] io::Error),
    /// It is of a Rust toolchain, of which there is no source here.
    #[error("{missing}: `{command}` gets it")]
    NoRustSource {
        /// What there is not.
        missing: String,
        /// The command that gets it.
        command: String,
    },
    /// It is no source file.
    #[error("{0}")]
    Unfit(&'static str),
}

/// A regular file of a length that is read.
pub(super) struct Opened {
    file: File,
    length: u64,
    modified: Option<SystemTime>,
}

/// Opens a source file.
pub(super) fn open(path: &Path, longest: u64) -> Result<Opened, SourceError> {
    let file = nyquist_system::open_regular(path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => SourceError::Unfit("it is no regular file"),
        _ => SourceError::Unreadable(error),
    })?;
    let metadata = file.metadata().map_err(SourceError::Unreadable)?;
    if metadata.len() > longest {
        return Err(SourceError::Unfit("it is too long"));
    }
    Ok(Opened { file, length: metadata.len(), modified: metadata.modified().ok() })
}

impl Opened {
    /// Reads no more than was announced: the files below `/proc`, which may wait or never end, announce nothing.
    pub(super) fn text(self) -> Result<SourceFile, SourceError> {
        let mut bytes = Vec::new();
        self.file.take(self.length).read_to_end(&mut bytes).map_err(SourceError::Unreadable)?;
        if bytes.contains(&0) {
            return Err(SourceError::Unfit("it is not text"));
        }
        Ok(SourceFile { text: String::from_utf8_lossy(&bytes).into_owned(), modified: self.modified })
    }
}
