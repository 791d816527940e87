//! A sample: one observation of a thread.

use crate::id::StackId;

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
