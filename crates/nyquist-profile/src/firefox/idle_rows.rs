//! Rows for the time in which a thread was idle. The front end draws a sample's stack up to the next
//! row.
//!
//! A sample stands for the time before it, but the front end shows its stack after it. Without a separate
//! row, the time in which a thread slept would show the stack before it. So a wait also has a row with its
//! stack where it begins, and other idle time one without a stack. These rows have no weight and no CPU time,
//! so that no sum changes. The reader removes them again ([`is_idle_row`]).

use crate::sample::Sample;
use crate::samples::Samples;

/// A thread is idle between two samples if it used no CPU for this many sampling intervals. In most
/// shorter gaps other threads had the CPU. Rows for each of them would cut the chart into stripes.
const IDLE_INTERVALS: u64 = 8;

/// The samples of a thread, with rows for the idle time between them.
#[derive(Clone)]
pub(super) struct IdleRows<'a> {
    samples: &'a Samples,
    /// The start of the thread, in ns since the profile's zero.
    start: u64,
    /// The sampling interval in ns; `None` if the CPU time between samples is not known. Then all rows are
    /// samples.
    interval: Option<u64>,
}

impl<'a> IdleRows<'a> {
    /// The rows of a thread that began at `start`.
    pub(super) fn new(samples: &'a Samples, start: u64, interval: Option<u64>) -> Self {
        Self { samples, start, interval: interval.filter(|interval| *interval > 0) }
    }

    /// All rows in the order of time. O(samples).
    pub(super) fn iter(&self) -> impl Iterator<Item = Sample> + '_ {
        let mut before = None;
        self.samples.iter().flat_map(move |sample| {
            let idle = self.rows_between(before, &sample);
            before = Some(sample);
            idle.into_iter().flatten().chain([sample])
        })
    }

    /// The rows before a sample: one where the thread became idle, and one where the time of the sample
    /// begins.
    fn rows_between(&self, before: Option<Sample>, sample: &Sample) -> [Option<Sample>; 2] {
        let Some(interval) = self.interval else { return [None, None] };
        // A profile may state that a thread began after its first sample.
        let since = before.map_or(self.start.min(sample.time), |before| before.time);
        let begin = Self::begin(before, sample, interval).max(since);
        let is_idle = begin - since >= interval.saturating_mul(IDLE_INTERVALS);
        let row = |time, stack| Some(Sample { time, cpu_delta: 0, stack, weight: 0, off_cpu: false });
        // A running sample is drawn for an interval. A wait ends at its sample.
        let ended = match before {
            Some(before) if !before.off_cpu => since.saturating_add(interval),
            _ => since,
        };
        let continues =
            begin == since && before.is_some_and(|before| before.off_cpu && before.stack == sample.stack);
        let first = if is_idle { row(ended, None) } else { None };
        // A wait has its stack from its begin on.
        let is_begun = if sample.off_cpu { !continues } else { is_idle };
        let stack = sample.stack.filter(|_| sample.off_cpu);
        let second = if is_begun { row(begin, stack) } else { None };
        [first, second]
    }

    /// The begin of the time that a sample stands for.
    fn begin(before: Option<Sample>, sample: &Sample, interval: u64) -> u64 {
        if sample.off_cpu {
            return sample.start(interval);
        }
        // A thread's first delta may be missing, so its sample stands for at least one interval.
        let used = if before.is_some() { sample.cpu_delta } else { sample.cpu_delta.max(interval) };
        sample.time.saturating_sub(used)
    }
}

/// Whether a row is idle time and not a sample: it has no weight.
pub(super) fn is_idle_row(sample: &Sample) -> bool {
    sample.weight == 0 && sample.cpu_delta == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::StackId;

    const MS: u64 = 1_000_000;

    fn stack(index: usize) -> StackId {
        StackId::from_index(index)
    }

    fn running(ms: u64, cpu_ms: u64) -> Sample {
        Sample::new(ms * MS, Some(stack(1)), cpu_ms * MS)
    }

    fn waiting(ms: u64, weight: u64) -> Sample {
        Sample { time: ms * MS, cpu_delta: 0, stack: Some(stack(2)), weight, off_cpu: true }
    }

    /// The rows added to these samples of a thread that began at 0: their times in ms and their stacks.
    fn idle(samples: &[Sample]) -> Vec<(u64, Option<StackId>)> {
        let samples: Samples = samples.iter().copied().collect();
        let rows = IdleRows::new(&samples, 0, Some(MS));
        let times: Vec<_> = rows.iter().map(|row| row.time).collect();
        assert!(times.is_sorted(), "{times:?}");
        let retained: Vec<_> = rows.iter().filter(|row| !is_idle_row(row)).collect();
        assert_eq!(retained, samples.iter().collect::<Vec<_>>());
        rows.iter().filter(is_idle_row).map(|row| (row.time / MS, row.stack)).collect()
    }

    #[test]
    fn a_sleep_has_rows_without_a_stack() {
        assert_eq!(idle(&[running(1, 1), running(2, 1), running(302, 1)]), [(3, None), (301, None)]);
    }

    #[test]
    fn a_thread_that_runs_all_the_time_has_none() {
        assert_eq!(idle(&[running(1, 1), running(2, 1), running(9, 1)]), []);
        // The time of a sample of many intervals was all used.
        assert_eq!(idle(&[running(1, 1), running(101, 100)]), []);
    }

    #[test]
    fn the_time_before_the_first_sample_is_idle() {
        assert_eq!(idle(&[running(50, 7)]), [(0, None), (43, None)]);
        assert_eq!(idle(&[running(50, 0)]), [(0, None), (49, None)]);
    }

    #[test]
    fn a_late_thread_has_its_rows_in_order() {
        let samples: Samples = [running(1, 1), waiting(3, 1)].into_iter().collect();
        let times: Vec<_> = IdleRows::new(&samples, 9 * MS, Some(MS)).iter().map(|row| row.time).collect();
        assert!(times.is_sorted(), "{times:?}");
        let samples: Samples = [waiting(3, 1)].into_iter().collect();
        let times: Vec<_> = IdleRows::new(&samples, 9 * MS, Some(MS)).iter().map(|row| row.time).collect();
        assert!(times.is_sorted(), "{times:?}");
    }

    #[test]
    fn a_wait_shows_its_stack_from_its_beginning() {
        assert_eq!(idle(&[running(1, 1), waiting(101, 100)]), [(1, Some(stack(2)))]);
        assert_eq!(idle(&[running(1, 1), waiting(101, 60)]), [(2, None), (41, Some(stack(2)))]);
        // The first sample of a thread may be a wait, too.
        assert_eq!(idle(&[waiting(30, 10)]), [(0, None), (20, Some(stack(2)))]);
        // A short wait is drawn from its start; one with the same stack continues it.
        let short = [running(1, 1), waiting(5, 3), waiting(6, 1), running(7, 1)];
        assert_eq!(idle(&short), [(2, Some(stack(2)))]);
    }

    #[test]
    fn a_wait_after_a_wait_has_its_own_stack() {
        let other = |ms, weight| Sample { stack: Some(stack(3)), ..waiting(ms, weight) };
        let samples = [running(1, 1), waiting(21, 20), other(41, 20), waiting(61, 20)];
        assert_eq!(idle(&samples), [(1, Some(stack(2))), (21, Some(stack(3))), (41, Some(stack(2)))]);
        // Between them the thread ran, but shorter than a sampling interval, or was not observed.
        let samples = [waiting(20, 20), other(41, 20), waiting(100, 20)];
        let expected = [(0, Some(stack(2))), (21, Some(stack(3))), (41, None), (80, Some(stack(2)))];
        assert_eq!(idle(&samples), expected);
        // After a wait, idle time has no stack.
        assert_eq!(idle(&[waiting(20, 20), running(51, 1)]), [(0, Some(stack(2))), (20, None), (50, None)]);
    }

    #[test]
    fn unknown_cpu_time_adds_nothing() {
        let samples: Samples = [running(1, 1), running(302, 1)].into_iter().collect();
        assert_eq!(IdleRows::new(&samples, 0, None).iter().count(), 2);
    }
}
