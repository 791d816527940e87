//! Source files: their names for people, and their text on this machine.

#[cfg(feature = "source-files")]
mod files;
#[cfg(feature = "source-files")]
mod moved;
mod repository_path;
#[cfg(feature = "source-files")]
mod rust;
mod rust_path;
#[cfg(feature = "source-files")]
mod source_file;
mod special_path;

#[cfg(feature = "source-files")]
pub use files::SourceFiles;
pub use rust_path::short_source_path;
#[cfg(feature = "source-files")]
pub use source_file::{SourceError, SourceFile};
pub use special_path::{disk_source_path, special_source_path};
