//! Files that are not on this machine: binaries, debug files and sources by debuginfod, Windows symbols by symbol
//! servers, Breakpad symbol files. All of the project's network access is in this crate; [`Downloads`] is what a
//! [`nyquist_symbols::Finder`] asks. What came in an archive that `perf archive` has made is unpacked by [`PerfArchive`].
//!
//! Nothing is asked that the user has not named: no server is known from the start. A download is bounded in
//! size and time, is checked before it is kept, and appears in its cache whole or not at all.

#![forbid(unsafe_code)]

mod cabinet;
mod cache_file;
mod debuginfod;
mod downloads;
mod observer;
mod perf_archive;
mod pointer;
mod reachable;
mod request;
mod symbol_path;
mod symbol_store;
mod transfer;

pub use cache_file::{Usage, clear, usage};
pub use debuginfod::Debuginfod;
pub use downloads::Downloads;
pub use observer::{Observer, Unobserved};
pub use perf_archive::PerfArchive;
pub use reachable::accepts_connections;
pub use symbol_path::{PathElement, parse_symbol_path};
pub use symbol_store::{StoreConfig, SymbolStores};
pub use transfer::Limits;
