//! Finds the file or memory of a mapping, opens it once, and reads it for unwinding.

pub(crate) mod jitdump;
pub(crate) mod lib_source;
pub(crate) mod mapped_file;
pub(crate) mod mapping_kind;
pub(crate) mod memfd;
mod memory_image;
pub(crate) mod module;
pub(crate) mod provided_symbols;
pub(crate) mod recorded_files;
pub(crate) mod replaced_text;
mod shared;
pub(crate) mod store;
mod vdso;
