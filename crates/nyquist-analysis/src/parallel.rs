//! Work that is shared out to the CPUs.

use std::ops::Range;
use std::thread;

/// Cuts `0..len` into a piece for each CPU and works on all of them at once; the results in the order of the pieces.
/// No piece is smaller than `least`: starting a thread takes as long as that much work.
pub(crate) fn pieces<T: Send>(len: usize, least: usize, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let count = cpus.min(len / least.max(1)).max(1);
    let piece = |number: usize| work(len * number / count..len * (number + 1) / count);
    thread::scope(|scope| {
        let piece = &piece;
        let others: Vec<_> = (1..count).map(|number| scope.spawn(move || piece(number))).collect();
        let first = piece(0);
        let others = others.into_iter().map(|other| match other.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        std::iter::once(first).chain(others).collect()
    })
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
}
