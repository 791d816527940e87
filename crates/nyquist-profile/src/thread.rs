//! Processes and threads.

use crate::id::ProcessIndex;
use crate::marker::Marker;
use crate::samples::Samples;
use crate::well_known;

/// A recorded process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its id. The builder makes it distinct (`77`, `77.1`, ...), because the kernel reuses ids.
    pub pid: String,
    /// Its name.
    pub name: String,
    /// Its start, in ns since the profile's zero; 0 if it started earlier.
    pub start: u64,
    /// Its end, in ns since the profile's zero; `None` if it outlived the recording.
    pub end: Option<u64>,
}

impl Process {
    /// Whether it is not a real process, but contains a row per CPU and one for all CPUs
    /// (`--per-cpu-threads`). Their samples and markers repeat those of threads.
    pub fn is_of_cpus(&self) -> bool {
        self.pid == well_known::CPU_PROCESS_ID && self.name == well_known::CPU_PROCESS
    }
}

/// A recorded thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// Its process.
    pub process: ProcessIndex,
    /// Its id.
    pub tid: String,
    /// Its name.
    pub name: String,
    /// Its start, in ns since the profile's zero.
    pub start: u64,
    /// Its end; `None` if it outlived the recording.
    pub end: Option<u64>,
    /// Whether it represents its process. A finished profile has exactly one such thread per process.
    pub is_main: bool,
    /// Its samples; ordered by time in a finished profile.
    pub samples: Samples,
    /// Its markers; ordered by start in a finished profile.
    pub markers: Vec<Marker>,
}

impl Thread {
    /// A thread without samples that began at the profile's zero.
    pub fn new(process: ProcessIndex, tid: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            process,
            tid: tid.into(),
            name: name.into(),
            start: 0,
            end: None,
            is_main: false,
            samples: Samples::new(),
            markers: Vec::new(),
        }
    }
}
