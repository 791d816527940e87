//! For the profiled program itself: its allocations in nyquist's profiles.
//!
//! `nyquist record --alloc ./app` needs nothing of this crate: it preloads a library that sees `malloc`. A
//! program that is linked statically, or that brings an allocator of its own, wraps this allocator instead:
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: nyquist_alloc::Recorded<std::alloc::System> = nyquist_alloc::Recorded::new(std::alloc::System);
//! ```
//!
//! Until a recorder listens, an allocation costs one load and one branch more. Allocations are recorded on
//! Linux, on x86_64 and aarch64. Elsewhere the wrapper calls the allocator and does nothing else.
//!
//! [`protocol`] defines what the recorder reads.

#![cfg_attr(not(test), no_std)]

pub mod protocol;
mod sys;

pub use sys::Recorded;

/// The library that is preloaded into programs. Empty on systems that have none.
#[cfg(feature = "library")]
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libnyquist_alloc.so"));

/// The same library, which also has C++'s operators `new` and `delete`: for programs whose allocator brings its own,
/// which do not call `malloc`. Other programs get the plain one, because their operators may be in libraries that are
/// loaded while they run.
#[cfg(feature = "library")]
pub const LIBRARY_WITH_OPERATORS: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/libnyquist_alloc_operators.so"));

/// The example of the page that the registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
