//! Modules of Windows: the files that were found for one, their contents, and the names in the image itself.

mod contents;
mod files;
mod image_symbols;

pub use contents::{ImageContents, WindowsContents};
pub(crate) use files::PeFiles;
