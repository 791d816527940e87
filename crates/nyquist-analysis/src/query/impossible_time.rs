//! Finds CPU time that is more than the CPUs can have had. That is so if a file states wrong periods.

use crate::query::summary::ProfileSummary;
use crate::sample_state::SampleState;
use crate::view::View;

/// The CPU time that there can have been, where samples state more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImpossibleTime {
    /// The time that there can have been, in ns.
    possible_ns: u64,
    /// The number of CPUs, or of threads if these are fewer.
    busy: u64,
    /// Whether the CPUs are the limit.
    is_by_cpus: bool,
}

impl ImpossibleTime {
    /// The warning. `time` formats nanoseconds.
    pub fn sentence(self, time: impl Fn(u64) -> String) -> String {
        let Self { possible_ns, busy, is_by_cpus } = self;
        let noun = if is_by_cpus { "CPU" } else { "thread" };
        let plural = if busy == 1 { "" } else { "s" };
        let time = time(possible_ns);
        let most = format!("{busy} {noun}{plural} can use {time} at most");
        format!("That cannot be: {most}, so the weights are shares, and no exact times")
    }
}

impl View<'_> {
    /// The CPU time that there can have been, if the samples of the selection state more.
    pub fn impossible_time(&self, summary: &ProfileSummary) -> Option<ImpossibleTime> {
        let meta = self.profile().meta();
        let is_cpu_time = self.selection().state == SampleState::OnCpu && meta.measure.is_cpu_time();
        is_cpu_time.then(|| impossible_time(summary, meta.logical_cpus)).flatten()
    }
}

fn impossible_time(summary: &ProfileSummary, cpus: Option<u32>) -> Option<ImpossibleTime> {
    /// The samples at the ends stand for time before them, and clocks differ.
    const TOLERANCE: f64 = 1.05;
    let threads = summary.threads as u64;
    let busy = cpus.map_or(threads, |cpus| u64::from(cpus).min(threads)).max(1);
    let ends = summary.interval_ns.saturating_mul(2 * threads);
    let possible_ns = summary.duration_ns.saturating_mul(busy);
    let used = summary.total.weight.saturating_mul(summary.interval_ns);
    let is_by_cpus = cpus.is_some_and(|cpus| u64::from(cpus) <= threads);
    (used as f64 > possible_ns as f64 * TOLERANCE + ends as f64).then_some(ImpossibleTime {
        possible_ns,
        busy,
        is_by_cpus,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Amount;

    #[test]
    fn more_time_than_there_was_is_not_passed_over() {
        let message = |used_ms: u64, duration_ms: u64, threads, cpus| {
            let total = Amount { weight: used_ms, ..Amount::default() };
            let (interval_ns, duration_ns) = (1_000_000, duration_ms * 1_000_000);
            let summary =
                ProfileSummary { duration_ns, interval_ns, total, threads, ..ProfileSummary::default() };
            impossible_time(&summary, cpus).map(|it| it.sentence(|ns| format!("{} ms", ns / 1_000_000)))
        };
        let text = message(1400, 130, 1, Some(4)).unwrap();
        assert!(text.starts_with("That cannot be: 1 thread can use 130 ms at most"), "{text}");
        let text = message(1400, 300, 9, Some(4)).unwrap();
        assert!(text.starts_with("That cannot be: 4 CPUs can use 1200 ms at most"), "{text}");
        assert_eq!(message(1195, 300, 9, Some(4)), None);
        assert_eq!(message(3, 1, 1, None), None, "the samples at the ends");
    }
}
