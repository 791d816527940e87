//! What tests of several crates, fuzz targets and benchmarks share: files that are made by the descriptions of their
//! formats, profiles, damage to files, and an oracle.

#![forbid(unsafe_code)]

pub mod art_trace;
#[cfg(feature = "profiles")]
pub mod generator;
pub mod go_image;
pub mod jfr_recording;
pub mod made_elf;
pub mod made_trace;
pub mod mutation;
pub mod nettrace;
pub mod random;
#[cfg(feature = "profiles")]
pub mod sample_profile;
pub mod shared_cache_image;
pub mod sysprof;
#[cfg(feature = "unwind-rows")]
pub mod unwind_rows;
