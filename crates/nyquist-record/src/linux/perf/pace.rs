//! How often a ring for stack copies wakes the reader.

/// The minimum number of wake-ups per second by a busy CPU. Reactions to many deep stacks must start early.
const WAKES_A_SECOND: usize = 10;
/// The smallest amount of samples with stack copies that wakes the reader, in bytes.
const MIN_WAKE_BYTES: usize = 256 << 10;

/// The fill level in bytes at which a ring for stack copies wakes the reader: at most half of the ring.
pub(crate) fn wake_at(ring_bytes: usize, stack_bytes: u32, rate_hz: u32) -> usize {
    let each_second = stack_bytes as usize * rate_hz as usize;
    (ring_bytes / 2).min((each_second / WAKES_A_SECOND).max(MIN_WAKE_BYTES))
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
        // The ring of an ordinary user.
        check(512, 32 << 10, 1000, 256);
        check(4 << 10, 64, 1000, 256);
    }
}
