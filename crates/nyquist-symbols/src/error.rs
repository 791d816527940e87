//! Errors that concern a module's files as a whole.

use std::path::PathBuf;

/// Why a module has no symbols at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SymbolsError {
    /// No file of the module's identity was found.
    #[error("no file of this identity was found")]
    NoFile,
    /// The only file that was found cannot be read as an object.
    #[error("cannot read {path}")]
    Object {
        /// The file, or the name of the image.
        path: PathBuf,
        /// The error.
        #[source]
        source: nyquist_object::ObjectError,
    },
}
