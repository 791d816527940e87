//! Processes, threads and their samples.

use crate::id::{ProcessIndex, StackId};
use crate::marker::Marker;
use crate::samples::Samples;

/// A process that was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its id. The builder makes it distinct (`77`, `77.1`, ...): the kernel uses a number again.
    pub pid: String,
    /// Its name.
    pub name: String,
    /// When it began, in ns since the profile's zero; 0 if that was before.
    pub start: u64,
    /// When it ended, in ns since the profile's zero; `None` if it outlived the recording.
    pub end: Option<u64>,
}

/// A thread that was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// Its process.
    pub process: ProcessIndex,
    /// Its id.
    pub tid: String,
    /// Its name.
    pub name: String,
    /// When it began, in ns since the profile's zero.
    pub start: u64,
    /// When it ended; `None` if it outlived the recording.
    pub end: Option<u64>,
    /// Whether it stands for its process. A finished profile has exactly one such thread a process.
    pub is_main: bool,
    /// Its samples; ordered by time in a finished profile.
    pub samples: Samples,
    /// Its markers; ordered by the times that they begin at in a finished profile.
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

/// One observation of a thread.
///
/// A sample stands for time that has passed: its weight is the time that ended at it. This holds for all samples, on the CPU
/// and off it, of a sampler and of a trace. Formats in which a sample stands for the time after it are converted where they
/// are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When what it stands for ended, in ns since the profile's zero.
    pub time: u64,
    /// The CPU time that the thread used since its sample before, in ns. Without meaning for a thread's first
    /// sample, and where [`Meta::has_cpu_deltas`](crate::Meta::has_cpu_deltas) is not set.
    pub cpu_delta: u64,
    /// Where it was; `None` where no stack is known.
    pub stack: Option<StackId>,
    /// How many periods (sampling intervals) it stands for, of CPU time (or of what else samples
    /// [count](crate::Meta::measure)) or, if it is [`off_cpu`](Self::off_cpu), of waiting:
    /// 1 for an ordinary sample, more for one that stands for time that could not be sampled.
    pub weight: u32,
    /// Whether the thread waited, off the CPU. Such samples are apart from CPU time: what sums up CPU time leaves them
    /// out.
    pub off_cpu: bool,
}

impl Sample {
    /// When the time begins that its weight stands for, in sampling intervals of that length.
    pub fn start(&self, interval: u64) -> u64 {
        self.time.saturating_sub(u64::from(self.weight).saturating_mul(interval))
    }

    /// A sample of weight 1, on the CPU.
    pub fn new(time: u64, stack: Option<StackId>, cpu_delta: u64) -> Self {
        Self { time, cpu_delta, stack, weight: 1, off_cpu: false }
    }
}
