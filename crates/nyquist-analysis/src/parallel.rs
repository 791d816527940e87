//! Distributes work over the CPUs.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use nyquist_resources::{cpu_count, join, on_threads};

/// Fewer rows than this are sorted, or made, by one CPU.
pub(crate) const ROWS_WORTH_SHARING: usize = 5000;

/// Splits `0..len` into a range for each CPU and processes them in parallel. The results are in the order of
/// the ranges. No range is smaller than `least`, because starting a thread takes as long as that much work.
pub(crate) fn pieces<T: Send + Sync>(
    len: usize,
    least: usize,
    work: impl Fn(Range<usize>) -> T + Sync,
) -> Vec<T> {
    let cpus = cpu_count().get();
    let count = cpus.min(len / least.max(1)).max(1);
    let piece = |number: usize| work(len * number / count..len * (number + 1) / count);
    let (results, next) = (slots(count), AtomicUsize::new(0));
    on_threads(count, || {
        while let Some((number, result)) = claim(&next, &results) {
            let _ = result.set(piece(number));
        }
    });
    results.into_iter().filter_map(OnceLock::into_inner).collect()
}

/// A slot for each result.
fn slots<T>(count: usize) -> Vec<OnceLock<T>> {
    std::iter::repeat_with(OnceLock::new).take(count).collect()
}

/// The next slot that no thread has claimed yet.
fn claim<'r, T>(next: &AtomicUsize, results: &'r [OnceLock<T>]) -> Option<(usize, &'r OnceLock<T>)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    Some((number, results.get(number)?))
}

/// Applies a function to each item. Each CPU processes a range of at least `least` items.
pub(crate) fn map<'i, I: Sync, T: Send + Sync>(
    items: &'i [I],
    least: usize,
    work: impl Fn(&'i I) -> T + Sync,
) -> Vec<T> {
    let pieces = pieces(items.len(), least, |range| items[range].iter().map(&work).collect::<Vec<_>>());
    pieces.into_iter().flatten().collect()
}

/// Sorts; each of two CPUs sorts a half. Equal items may change places.
pub(crate) fn sort<T: Ord + Send>(items: &mut [T]) {
    let (first, second) = items.split_at_mut(items.len() / 2);
    let is_worth_it = first.len() >= ROWS_WORTH_SHARING;
    both(is_worth_it, || first.sort_unstable(), || second.sort_unstable());
    // This sort detects that both halves are in order, and merges them.
    items.sort();
}

/// Runs two functions in parallel, if that is worth starting a thread.
pub(crate) fn both<A: Send, B>(
    is_worth_it: bool,
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B,
) -> (A, B) {
    if is_worth_it { join(first, second) } else { (first(), second()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_in_order_and_are_all() {
        for (len, least) in [(0, 1), (1, 1), (1, 0), (1000, 1), (1000, 900)] {
            let numbers = pieces(len, least, Iterator::collect::<Vec<_>>);
            assert!(numbers.concat().into_iter().eq(0..len), "{len} {least}");
        }
        assert_eq!(pieces(1000, 501, |range| range).len(), 1);
    }

    #[test]
    fn halves_are_sorted_and_merged() {
        for len in [0, 1, 2, 3, 1000, 2 * ROWS_WORTH_SHARING + 1] {
            let mut numbers: Vec<_> =
                (0..len as u64).map(|number| number.wrapping_mul(0x9E37_79B9) % 1000).collect();
            let mut expected = numbers.clone();
            expected.sort_unstable();
            sort(&mut numbers);
            assert_eq!(numbers, expected);
        }
    }
}
