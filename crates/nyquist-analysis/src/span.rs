//! What a sample stands for in time.

use std::ops::Range;

use nyquist_profile::{Meta, Sample, StackId};

/// A sample's place in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// From when to when it stands for what the thread did.
    pub(crate) times: Range<u64>,
    /// How much of that the thread ran, or waited, in ns.
    pub(crate) ns: u64,
    /// The stack that it had before filters and transforms, which `View::node_of_span` looks up.
    pub(crate) stack: Option<StackId>,
}

impl Span {
    /// What a sample stands for; `last` is the time of the one before it, 0 for the first.
    ///
    /// A sample stands for the time before it. A sampler of CPU time takes one when a period of it is over. The
    /// sample stands for the CPU time used since the one before. Gaps of less than half an interval are noise
    /// and closed, unless times are exact.
    pub(crate) fn new(meta: &Meta, sample: &Sample, is_first_of_thread: bool, last: u64) -> Self {
        let ns = length(meta, sample, is_first_of_thread);
        let start = sample.time.saturating_sub(ns);
        let is_noise = !meta.has_exact_times && start.saturating_sub(last) < meta.interval / 2;
        let start = if is_noise { last } else { start.max(last) };
        Self { times: start..sample.time, ns, stack: sample.stack }
    }

    /// What was used up to a time, so that rounding loses nothing.
    pub(crate) fn used_until(&self, time: u64) -> u64 {
        let length = self.times.end - self.times.start;
        (u128::from(self.ns) * u128::from(time - self.times.start) / u128::from(length)) as u64
    }
}

/// How much of the time before a sample its thread ran, or waited, in ns.
pub(crate) fn length(meta: &Meta, sample: &Sample, is_first_of_thread: bool) -> u64 {
    if meta.has_cpu_deltas && !sample.off_cpu && !is_first_of_thread {
        sample.cpu_delta
    } else {
        u64::from(sample.weight).saturating_mul(meta.interval)
    }
}
