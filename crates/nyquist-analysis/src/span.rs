//! The span of time that a sample stands for.

use std::ops::Range;

use nyquist_profile::{Meta, Sample, StackId, Unit};

/// The span of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// The times of the thread that it stands for.
    pub(crate) times: Range<u64>,
    /// The thread's running or waiting time within these, in ns, or what else samples measure.
    pub(crate) ns: u64,
    /// The stack before filters and transforms, which `View::node_of_span` looks up.
    pub(crate) stack: Option<StackId>,
}

impl Span {
    /// The span of a sample. `last` is the time of the sample before it, 0 for the first.
    ///
    /// A sample stands for the time before it. A sampler of CPU time takes a sample at the end of each
    /// period. The sample stands for the CPU time used since the previous one. Gaps of less than half an
    /// interval are noise and are closed, unless times are exact.
    ///
    /// An amount that is no time belongs to the moment of its sample.
    pub(crate) fn new(meta: &Meta, sample: &Sample, is_first_of_thread: bool, last: u64) -> Self {
        let ns = length(meta, sample, is_first_of_thread);
        if are_moments(meta) {
            let start = sample.time.saturating_sub(1);
            return Self { times: start..start.saturating_add(1), ns, stack: sample.stack };
        }
        let start = sample.time.saturating_sub(ns);
        let is_noise = !meta.has_exact_times && start.saturating_sub(last) < meta.interval / 2;
        let start = if is_noise { last } else { start.max(last) };
        Self { times: start..sample.time, ns, stack: sample.stack }
    }

    /// Whether it stands for more time than there was since the sample before it.
    pub(crate) fn has_no_room(&self) -> bool {
        self.ns > self.times.end - self.times.start
    }

    /// The time used up to `time`. Differences of it lose nothing to rounding.
    pub(crate) fn used_until(&self, time: u64) -> u64 {
        let length = self.times.end - self.times.start;
        (u128::from(self.ns) * u128::from(time - self.times.start) / u128::from(length)) as u64
    }
}

/// Whether samples are moments, because they measure no time. With exact times, the axis of times counts what
/// they measure, and samples have a length.
pub(crate) fn are_moments(meta: &Meta) -> bool {
    meta.measure.unit != Unit::Time && !meta.has_exact_times
}

/// The thread's running or waiting time before a sample, in ns, or what else samples measure.
pub(crate) fn length(meta: &Meta, sample: &Sample, is_first_of_thread: bool) -> u64 {
    let is_time = meta.measure.unit == Unit::Time;
    if is_time && meta.has_cpu_deltas && !sample.off_cpu && !is_first_of_thread {
        sample.cpu_delta
    } else {
        sample.weight.saturating_mul(meta.interval)
    }
}
