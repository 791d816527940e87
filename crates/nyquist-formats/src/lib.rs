//! The formats of other profilers: one file a format, reading and writing.
//!
//! Writers take a [`Profile`](nyquist_profile::Profile) and a `Write`; they write whole lines or values and do not buffer.
//! Readers take a file's bytes and give a profile with notes on what was left out. Whatever the bytes, no reader panics,
//! and memory is linear in the (decompressed) input.

#![forbid(unsafe_code)]

pub mod csv;
mod error;
pub mod folded;
mod gzip;
mod import;
mod json;
mod layout;
pub mod pprof;
mod select;
mod spans;
pub mod speedscope;
#[cfg(test)]
mod test_profile;

pub use error::{Imported, Note, ReadError};
