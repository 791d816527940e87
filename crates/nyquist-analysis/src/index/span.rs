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
    /// The span of a sample. `last` is the time of the sample before it, 0 for the first. `ran_before` is
    /// CPU time between these samples that was measured where the thread waited, in ns.
    ///
    /// A sample stands for the time before it. A sampler of CPU time takes a sample at the end of each
    /// period. The sample stands for the CPU time used since the previous one.
    ///
    /// An amount that is no time belongs to the moment of its sample.
    pub(crate) fn new(
        meta: &Meta,
        (sample, ran_before): (&Sample, u64),
        is_first_of_thread: bool,
        last: u64,
    ) -> Self {
        let ns = length(meta, sample, is_first_of_thread);
        let ns = if measures_cpu_time(meta) { ns.saturating_add(ran_before) } else { ns };
        if are_moments(meta) {
            let start = sample.time.saturating_sub(1);
            return Self { times: start..start.saturating_add(1), ns, stack: sample.stack };
        }
        let start = sample.time.saturating_sub(ns).max(last);
        Self { times: start..sample.time, ns, stack: sample.stack }
    }

    /// The same from the sample before it on, if the gap between them is noise: less than half an interval,
    /// unless times are exact.
    pub(crate) fn without_noise(mut self, meta: &Meta, last: u64) -> Self {
        let gap = self.times.start.saturating_sub(last);
        if !meta.has_exact_times && !are_moments(meta) && gap < meta.interval / 2 {
            self.times.start = last;
        }
        self
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

/// Whether a running sample of this length stands for more than the time since the one before it. What is less
/// than an interval is the timer's inaccuracy.
pub(crate) fn has_overflow(meta: &Meta, ns: u64, since_last: u64) -> bool {
    ns.saturating_sub(since_last) > if since_last == 0 { 0 } else { meta.interval }
}

/// Whether samples have the CPU time since the one before.
fn measures_cpu_time(meta: &Meta) -> bool {
    meta.measure.unit == Unit::Time && meta.has_cpu_deltas
}

/// The thread's running or waiting time before a sample, in ns, or what else samples measure.
pub(crate) fn length(meta: &Meta, sample: &Sample, is_first_of_thread: bool) -> u64 {
    if measures_cpu_time(meta) && !sample.off_cpu && !is_first_of_thread {
        sample.cpu_delta
    } else {
        sample.weight.saturating_mul(meta.interval)
    }
}
