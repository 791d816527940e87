//! How often a ring for copies of stacks wakes the reader.

/// How often the reader is woken by a busy CPU at least. What many deep stacks lead to should begin early.
const WAKES_A_SECOND: usize = 10;
/// The bytes of samples with stack copies for which the reader is woken at least.
const SMALLEST_WAKE: usize = 256 << 10;

/// The bytes at which a ring for copies of stacks wakes the reader: at half of it the latest.
pub(crate) fn wake_at(ring_bytes: usize, stack_bytes: u32, rate_hz: u32) -> usize {
    let each_second = stack_bytes as usize * rate_hz as usize;
    (ring_bytes / 2).min((each_second / WAKES_A_SECOND).max(SMALLEST_WAKE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_wakes_ten_times_a_second_or_half_full() {
        let check = |ring_kb: usize, stack_bytes, rate_hz, expected_kb| {
            assert_eq!(wake_at(ring_kb << 10, stack_bytes, rate_hz) >> 10, expected_kb);
        };
        check(16 << 10, 32 << 10, 1000, 3200);
        check(4 << 10, 32 << 10, 1000, 2048);
        // A plain user's ring.
        check(512, 32 << 10, 1000, 256);
        check(4 << 10, 64, 1000, 256);
    }
}
