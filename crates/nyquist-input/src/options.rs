//! What of a file is read, and how names are found.

use crate::observer::ReadObserver;
use nyquist_convert::{Progress, SampleSelection, Shape};
use nyquist_object::elf::Architecture;
use nyquist_perf::Budget;
use nyquist_symbols::Finder;
use std::path::PathBuf;
use std::sync::Arc;

/// What of a file is read, and how names are found. Formats that lack the data for an option ignore it.
pub struct ReadOptions<'a> {
    /// Which samples of a recording or a trace are requested.
    pub selection: SampleSelection,
    /// The names of the requested events of a recording, or one value of another profiler's file. Without names, the
    /// first clock or cycle counter is used, or the first value.
    pub events: Vec<String>,
    /// The labels of requested samples, `KEY=VALUE` or `KEY`, in formats whose samples have labels.
    pub labels: Vec<String>,
    /// The title of a recording's or trace's profile. If it is not given, it is the recorded command or the name of
    /// the file.
    pub name: Option<String>,
    /// The architecture of a recording that does not state it, or states a wrong one.
    pub architecture: Option<Architecture>,
    /// Folders to search for jitdumps, perf maps and marker files whose original path is gone. That of the
    /// recording is searched in any case.
    pub aux_folders: Vec<PathBuf>,
    /// Which threads the profile of a recording or a trace has.
    pub shape: Shape,
    /// Whether no names are looked up, and functions keep their addresses.
    pub no_symbols: bool,
    /// Whether there are places to search that were not searched when the profile was saved. Its missing names
    /// are then looked up again.
    pub has_new_places: bool,
    /// How much memory the files beside a recording or a profile may take: perf maps, jitdumps and samply's symbols.
    pub side_files: Budget,
    /// How much memory the mappings and names of a recording's processes may take beside the profile, in bytes. There
    /// is a default.
    pub process_memory: Option<u64>,
    /// The folder in which archives of `perf archive` are unpacked. Without it they are not used.
    pub archives: Option<PathBuf>,
    /// Makes the finders of binaries and debug files.
    pub finders: &'a dyn Finders,
    /// Receives what happens.
    pub observer: &'a dyn ReadObserver,
}

impl<'a> ReadOptions<'a> {
    /// Options for reading all of a file, with its names.
    pub fn new(finders: &'a dyn Finders, observer: &'a dyn ReadObserver) -> Self {
        Self {
            selection: SampleSelection::default(),
            events: Vec::new(),
            labels: Vec::new(),
            name: None,
            architecture: None,
            aux_folders: Vec::new(),
            shape: Shape::default(),
            no_symbols: false,
            has_new_places: false,
            side_files: Budget::default(),
            process_memory: None,
            archives: None,
            finders,
            observer,
        }
    }
}

/// Makes finders of binaries and debug files. The caller decides about folders, servers and caches.
pub trait Finders {
    /// A finder that also searches `folders`. Its downloads end when `work` is cancelled.
    fn finder(&self, folders: &[PathBuf], work: Option<&Arc<Progress>>) -> Finder;
}
