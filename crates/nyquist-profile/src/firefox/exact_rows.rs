//! Rows for samples that stand for exact times. The front end draws a sample's stack up to the next
//! row.
//!
//! So each sample has its row at the start of its time, not at its end. A gap before the next sample
//! starts with a row without a stack, and so does the end of the last sample. These rows have no weight,
//! and the reader removes them again.

use crate::sample::Sample;
use crate::samples::Samples;

/// The rows of a thread whose samples have exact times, in the order of time. O(samples).
pub(super) fn exact_rows(samples: &Samples, interval: u64) -> impl Iterator<Item = Sample> + '_ {
    // The end of the time that rows cover so far, and the time of the last row.
    let (mut over, mut last) = (None, 0);
    let rows = samples.iter().filter(|sample| sample.weight > 0).flat_map(move |sample| {
        let start = sample.start(interval).max(last);
        let free = over.filter(|&over| over < start).map(empty_row);
        (over, last) = (Some(sample.time.max(start)), start);
        free.into_iter().chain([Sample { time: start, ..sample }])
    });
    rows.chain(samples.last().map(|last| empty_row(last.time)))
}

fn empty_row(time: u64) -> Sample {
    Sample { weight: 0, ..Sample::new(time, None, 0) }
}

/// The sample of a row; `None` for a row that only ends the previous one.
pub(super) fn sample_of_exact_row(row: Sample, interval: u64) -> Option<Sample> {
    let length = row.weight.saturating_mul(interval);
    (row.weight > 0).then_some(Sample { time: row.time.saturating_add(length), ..row })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::StackId;

    fn sample(time: u64, weight: u64, stack: usize) -> Sample {
        Sample { weight, ..Sample::new(time, Some(StackId::from_index(stack)), 0) }
    }

    /// The rows' times, stacks and weights.
    fn rows(samples: &[Sample]) -> Vec<(u64, Option<usize>, u64)> {
        let all: Samples = samples.iter().copied().collect();
        let rows: Vec<_> = exact_rows(&all, 10).collect();
        let read: Vec<_> = rows.iter().filter_map(|&row| sample_of_exact_row(row, 10)).collect();
        assert_eq!(read, samples);
        rows.iter().map(|row| (row.time, row.stack.map(StackId::index), row.weight)).collect()
    }

    #[test]
    fn samples_are_drawn_from_begin_to_end() {
        let samples = [sample(100, 10, 1), sample(900, 80, 2), sample(1500, 10, 3)];
        let expected =
            [(0, Some(1), 10), (100, Some(2), 80), (900, None, 0), (1400, Some(3), 10), (1500, None, 0)];
        assert_eq!(rows(&samples), expected);
    }

    #[test]
    fn times_that_overlap_do_not_go_backwards() {
        let all: Samples = [sample(100, 5, 1), sample(110, 9, 2)].into_iter().collect();
        let times: Vec<_> = exact_rows(&all, 10).map(|row| row.time).collect();
        assert_eq!(times, [50, 50, 110]);
    }
}
