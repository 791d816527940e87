//! A sample: one observation of a thread.

use crate::id::StackId;

/// One observation of a thread.
///
/// A sample stands for past time: its weight is the time that ended at it. This holds for all samples,
/// on-CPU and off-CPU, of a sampler and of a trace. In some formats a sample stands for the time after it.
/// They are converted when they are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The end of its time, in ns since the profile's zero.
    pub time: u64,
    /// The CPU time that the thread used since its previous sample, in ns. It has no meaning for a
    /// thread's first sample, or if [`Meta::has_cpu_deltas`](crate::Meta::has_cpu_deltas) is not set.
    pub cpu_delta: u64,
    /// Its stack; `None` if no stack is known.
    pub stack: Option<StackId>,
    /// The number of periods (sampling intervals) that it stands for. They are periods of CPU time (or of
    /// what else samples [measure](crate::Meta::measure)) or, if it is [`off_cpu`](Self::off_cpu), of
    /// waiting. It is 1 for an ordinary sample, and more for one that stands for time that could not be
    /// sampled.
    pub weight: u64,
    /// Whether the thread waited, off the CPU. Sums of CPU time leave such samples
    /// out.
    pub off_cpu: bool,
}

impl Sample {
    /// The start of its time, for that length of a sampling interval.
    pub fn start(&self, interval: u64) -> u64 {
        self.time.saturating_sub(self.weight.saturating_mul(interval))
    }

    /// A sample of weight 1, on the CPU.
    pub fn new(time: u64, stack: Option<StackId>, cpu_delta: u64) -> Self {
        Self { time, cpu_delta, stack, weight: 1, off_cpu: false }
    }
}

/// A sample without its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UntimedSample {
    /// As in [`Sample::cpu_delta`].
    pub cpu_delta: u64,
    /// As in [`Sample::stack`].
    pub stack: Option<StackId>,
    /// As in [`Sample::weight`].
    pub weight: u64,
    /// As in [`Sample::off_cpu`].
    pub off_cpu: bool,
}

impl Sample {
    /// The sample without its time.
    #[inline]
    pub fn untimed(&self) -> UntimedSample {
        let Self { cpu_delta, stack, weight, off_cpu, .. } = *self;
        UntimedSample { cpu_delta, stack, weight, off_cpu }
    }
}
