//! Files that are not on this machine: binaries, debug files and sources from debuginfod, Windows symbols
//! from symbol servers, and Breakpad symbol files. All network access of the project is in this crate.
//! [`Downloads`] is the source for a [`nyquist_symbols::Finder`]. [`PerfArchive`] unpacks the files of an
//! archive made by `perf archive`.
//!
//! Only servers that the user has named are used; there are no built-in ones. A download is limited in
//! size and time, is checked before it is kept, and appears in its cache completely or not at all.

#![forbid(unsafe_code)]

mod archive_reader;
mod cabinet;
mod cache_file;
mod debuginfod;
mod downloads;
mod observer;
mod perf_archive;
mod pointer;
mod post;
mod reachable;
mod request;
mod symbol_path;
mod symbol_store;
mod transfer;

pub use cache_file::{Usage, clear, usage};
pub use debuginfod::Debuginfod;
pub use downloads::Downloads;
pub use observer::{NoObserver, Observer};
pub use perf_archive::PerfArchive;
pub use post::{Answer, Connection, NoAnswer, PemError, Sender};
pub use reachable::accepts_connections;
pub use symbol_path::{PathElement, parse_symbol_path};
pub use symbol_store::{StoreConfig, SymbolStores};
pub use transfer::Limits;

/// The example of the page that the registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
