//! Opens profiles and recordings of any format, compressed or not, and finds the names that are missing.
//!
//! A caller takes these steps, and may change its rights between them:
//!
//! 1. [`InputFile::open`] opens a file and reads its first bytes. Recordings also need the
//!    [kernel's files](InputFile::with_kernel_files).
//! 2. [`InputFile::unpack`] decompresses it if the reader of its format does not know its compression.
//! 3. [`UnpackedInput::read`] reads the profile, or converts the recording or trace and looks up its names.
//! 4. [`look_up_missing_names`] looks up the names that a saved profile does not have.
//!
//! Nothing is printed: a [`ReadObserver`] receives what the user should know, and how far the work is. Inputs may be
//! hostile; readers do not panic, and use memory that is linear in the decompressed input.

#![forbid(unsafe_code)]

mod counted_file;
mod document;
mod error;
mod event_trace;
mod input_file;
mod lookup;
mod missing_names;
mod module_request;
mod note;
mod observer;
mod options;
mod perf_data;
mod read;
mod recording_folders;
mod requested_files;
mod samply_symbols;
mod saved_profile;
mod source;
#[cfg(feature = "parquet")]
mod tables;

pub use document::{Document, document};
pub use error::{InputError, UnknownContent};
pub use input_file::{InputFile, UnpackedInput};
pub use lookup::{look_up_recording, symbolicator};
pub use missing_names::look_up_missing_names;
pub use module_request::module_request;
pub use note::{LostAmount, MissingFile, Note, SamplySymbolsError};
pub use observer::ReadObserver;
pub use options::{Finders, ReadOptions};
pub use recording_folders::recording_folders;
pub use samply_symbols::samply_symbols;

/// The example of the page that the registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
