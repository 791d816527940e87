//! How a recording is converted, and the result.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use nyquist_object::elf::Architecture;
use nyquist_perf::Budget;
use nyquist_symbols::Finder;

use super::choose::EventUse;
use crate::build::seen_addresses::AddressSender;
use crate::conversion_result::ConversionResult;
use crate::selection::sample_selection::SampleSelection;
use crate::shape::Shape;

/// How to convert a recording.
#[derive(Debug, Default)]
pub struct ImportOptions {
    /// Finds binaries.
    pub finder: Finder,
    /// Which samples are requested.
    pub selection: SampleSelection,
    /// The names of the requested events. Without names, the first clock or cycle counter is used, and events of
    /// waiting.
    pub events: Vec<String>,
    /// The title of the profile. If it is not given, the recorded command is the title.
    pub name: Option<String>,
    /// The architecture of the registers in samples, if the recording does not state it or states a wrong
    /// one.
    pub architecture: Option<Architecture>,
    /// Folders to search for jitdumps, perf maps and marker files whose original path is gone.
    pub aux_folders: Vec<PathBuf>,
    /// The owner of the recording. Files of that user are also trusted.
    pub owner: Option<u32>,
    /// How much memory the names in perf maps and jitdumps may take.
    pub side_files: Budget,
    /// How much memory mappings and the names of processes, threads and files may take beside the profile, in
    /// bytes. The default is [`DEFAULT_PROCESS_MEMORY`](crate::DEFAULT_PROCESS_MEMORY).
    pub process_memory: Option<u64>,
    /// When the recording was saved, in nanoseconds since 1970-01-01 UTC, if that is known. The recording's
    /// own clocks may not show when it was made.
    pub saved_ns: Option<u64>,
    /// Which threads the profile has.
    pub shape: Shape,
    /// How many threads may work at once. The default is the number of CPUs. The number does not change the
    /// profile.
    pub threads: Option<NonZeroUsize>,
    /// Receives each address when it first occurs.
    pub sender: Option<AddressSender>,
}

/// A converted recording.
#[derive(Debug)]
pub struct ImportedProfile {
    /// The profile, and the sources of its names.
    pub finished: ConversionResult,
    /// The recording's events, and the use of each.
    pub events: Vec<EventUse>,
    /// Notes about incomplete parts of the recording, a sentence each.
    pub notes: Vec<String>,
    /// The machine that the recording was made on, if it is not this machine.
    pub other_machine: Option<String>,
}
