//! What all parts of the measurement use.

use std::path::{Path, PathBuf};

/// The program that is measured, the places, and the amount of work.
pub(super) struct Bench<'a> {
    pub(super) nyquist: PathBuf,
    /// The folder for recordings.
    pub(super) folder: PathBuf,
    pub(super) workloads: &'a Path,
    /// How many allocations and frees there are.
    pub(super) pairs: u64,
    /// How often each is measured.
    pub(super) rounds: u32,
    /// How many recordings of known sums there are.
    pub(super) runs: u32,
}
