//! What a reader reports to the user besides the profile: which parts are missing, and why.

use nyquist_symbols::KernelError;
use std::io;
use std::path::PathBuf;

/// What the user should know of a file that is read, or of the look-up of its names.
#[derive(Debug)]
pub enum Note {
    /// A compressed file is cut off or damaged. What comes before was unpacked.
    Cut {
        /// The file.
        path: PathBuf,
        /// The error of the decompressor.
        error: io::Error,
    },
    /// A part of another profiler's file is not in the profile.
    LeftOut(nyquist_formats::Note),
    /// A part of a recording or a trace is incomplete, as a sentence.
    Incomplete(String),
    /// A recorder lost something.
    Lost(LostAmount),
    /// An event's samples are not shown, because another event was chosen.
    EventNotShown {
        /// The event.
        name: String,
        /// The number of its samples.
        samples: u64,
    },
    /// The event that is shown by default has no samples, and another one was chosen.
    EventInstead {
        /// The event that is shown.
        shown: String,
        /// The event without samples.
        empty: String,
    },
    /// Files that a recording needs are not on this machine.
    MissingFiles {
        /// The machine of the recording, if it is not this one.
        machine: Option<String>,
        /// The files, by their paths.
        files: Vec<MissingFile>,
    },
    /// The samples of a trace have no stacks.
    NoStacks,
    /// The archive beside a recording is being unpacked, which may take long.
    Unpacking {
        /// The archive.
        archive: PathBuf,
    },
    /// Not all of the archive beside a recording could be unpacked.
    NotUnpacked {
        /// The archive.
        archive: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The look-up of names was ended early.
    LookupEnded,
    /// Functions of the kernel have no names.
    NoKernelNames(KernelError),
    /// No files with the recorded identities of these libs, which have names.
    NoFilesOf {
        /// The names of the libs. They are at least one.
        libs: Vec<String>,
    },
    /// Names are taken from samply's file beside the profile.
    SamplySymbols {
        /// The file.
        path: PathBuf,
        /// The number of libs in it.
        libs: usize,
    },
    /// Samply's file beside the profile is not used.
    SamplySymbolsRefused {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: SamplySymbolsError,
    },
}

/// How much a recorder lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostAmount {
    /// Records of a recording of perf.
    Records(u64),
    /// Events of a trace of Windows.
    Events(u64),
}

/// A file that is not on this machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingFile {
    /// Where it was on the recorded machine.
    pub path: String,
    /// Its build id in hexadecimal digits, if that is known.
    pub build_id: Option<String>,
}

/// Why samply's file beside a profile is not used.
#[derive(Debug)]
pub enum SamplySymbolsError {
    /// It is a link, a folder or a device.
    NotRegular,
    /// The system does not open or read it.
    Unreadable(io::Error),
    /// Reading it would take too much memory.
    TooLarge {
        /// The greatest size that is read, in bytes.
        most: u64,
    },
    /// It is not samply's.
    Malformed(nyquist_formats::ReadError),
}
