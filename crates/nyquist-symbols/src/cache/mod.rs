//! A cache of answers, in a folder with a file for each module. The folder also has debug info that was
//! inflated for them, and the functions of large symbol tables.
//!
//! Readers take no lock, because blocks have checksums, and a rewritten file replaces the old one atomically.
//! A process that adds a block locks the file. The cache is optional. If it cannot be read or written,
//! everything works without it, and [`AnswerCache::problem`] returns the reason.

mod answer_cache;
mod block;
pub(crate) mod block_file;
mod cache_key;
mod cached_answers;
pub(crate) mod checksum;
mod disk;
mod extent;
mod file;
mod folder;
mod inflated;
mod tables;

pub use answer_cache::{AnswerCache, CachedModule};
#[cfg(feature = "test-hooks")]
pub(crate) use block::sealed_block;
#[cfg(feature = "kernel")]
pub(crate) use cache_key::MAKER;
pub(crate) use cached_answers::CachedAnswers;
pub(crate) use extent::{Extent, push_unless_covered};
#[cfg(feature = "test-hooks")]
pub(crate) use file::read_answers;
#[cfg(feature = "test-hooks")]
pub(crate) use inflated::{read_inflated, sealed_list};
pub(crate) use tables::TableFile;
