//! What can be wrong with a module's files as a whole.

use std::path::PathBuf;

/// Why a module has no symbols at all.
#[derive(Debug, thiserror::Error)]
pub enum SymbolsError {
    /// No file of the module's identity was found.
    #[error("no file of this identity was found")]
    NoFile,
    /// The one file that was found cannot be read as an object.
    #[error("cannot read {path}")]
    Object {
        /// The file, or the name of the image.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: nyquist_object::ObjectError,
    },
}
