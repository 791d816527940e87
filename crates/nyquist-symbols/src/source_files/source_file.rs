//! The text of one source file, and why there is none.

use nyquist_system::{is_regular, path_of_open, real_path};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::SystemTime;

/// The longest source file that is read, in bytes. Amalgamated C reaches 10 MB.
pub(super) const MAX_SOURCE_BYTES: u64 = 32 << 20;

/// A source file.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its text. Bytes that are not UTF-8, as in old comments, are replaced.
    pub text: String,
    /// When it was last changed, if that is known.
    pub modified: Option<SystemTime>,
}

/// Why there is no source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The path is relative to an unknown folder.
    #[error("its folder is not known; --source-map FROM=TO tells where it is")]
    NoFolder,
    /// The file exists, but no trusted source names it.
    #[error("no debug info on this machine names it; --source-dir DIR allows its folder")]
    NotAllowed,
    /// The system does not permit reading it.
    #[error("{0}")]
    Unreadable(#[source] io::Error),
    /// It is of a Rust toolchain whose source is not on this machine.
    #[error("{missing}: `{command}` gets it")]
    NoRustSource {
        /// The missing part.
        missing: String,
        /// The command that installs it.
        command: String,
    },
    /// It is no source file.
    #[error("{0}")]
    Unfit(&'static str),
}

/// A regular file with an acceptable length.
pub(super) struct OpenSourceFile {
    file: File,
    length: u64,
    modified: Option<SystemTime>,
}

/// Opens a source file whose real path is in a folder. `None` if there is no such file. It is checked again when it
/// is open, because a folder on its path may have become a link meanwhile.
pub(super) fn open_below(folder: &Path, path: &Path) -> Option<Result<OpenSourceFile, SourceError>> {
    let (real, folder) = (real_path(path).ok()?, real_path(folder).ok()?);
    if !real.starts_with(&folder) || !is_regular(&real) {
        return None;
    }
    let opened = open(&real, MAX_SOURCE_BYTES);
    let is_below = opened.as_ref().is_ok_and(|opened| {
        let now = path_of_open(&opened.file).and_then(|path| fs::read_link(path).ok());
        now.is_none_or(|now| now.starts_with(&folder))
    });
    (is_below || opened.is_err()).then_some(opened)
}

/// Opens a source file.
pub(super) fn open(path: &Path, longest: u64) -> Result<OpenSourceFile, SourceError> {
    let file = nyquist_system::open_regular(path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => SourceError::Unfit("it is not a regular file"),
        _ => SourceError::Unreadable(error),
    })?;
    let metadata = file.metadata().map_err(SourceError::Unreadable)?;
    if metadata.len() > longest {
        return Err(SourceError::Unfit("it is too long"));
    }
    Ok(OpenSourceFile { file, length: metadata.len(), modified: metadata.modified().ok() })
}

impl OpenSourceFile {
    /// Reads no more than the file's stated length. Files below `/proc`, which may block or never end, state
    /// 0.
    pub(super) fn text(self) -> Result<SourceFile, SourceError> {
        let mut bytes = Vec::new();
        self.file.take(self.length).read_to_end(&mut bytes).map_err(SourceError::Unreadable)?;
        if bytes.contains(&0) {
            return Err(SourceError::Unfit("it is not text"));
        }
        Ok(SourceFile { text: String::from_utf8_lossy(&bytes).into_owned(), modified: self.modified })
    }
}
