//! How often the reader looks at the rings of copied stacks.
//!
//! The kernel wakes it when so many bytes were written to a ring since it did so last, whether or not they have been read meanwhile. Rings of
//! several busy CPUs would wake it one after the other, although it empties all of them each time. So while samples come as fast as they
//! can, these rings are left alone and looked at by the clock: a large machine's reader is woken no more often than a small one's.

/// How often the reader is woken by a busy CPU at least. What many deep stacks lead to should begin early.
const WAKES_A_SECOND: usize = 10;
/// The bytes of samples with stack copies for which the reader is woken at least.
const SMALLEST_WAKE: usize = 256 << 10;
/// Rings that are full sooner than after twice that time are looked at when they say so: who comes late by the clock would lose samples.
const SHORTEST_PAUSE_NS: u64 = 20_000_000;

/// The bytes at which a ring for copies of stacks wakes the reader: at half of it the latest.
pub(crate) fn wake_at(ring_bytes: usize, stack_bytes: u32, rate_hz: u32) -> usize {
    let each_second = stack_bytes as usize * rate_hz as usize;
    (ring_bytes / 2).min((each_second / WAKES_A_SECOND).max(SMALLEST_WAKE))
}

/// For how long rings are left alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The bytes at which a ring wakes the reader.
    wake_at: u64,
    /// How long a busy CPU takes to write that many.
    pause_ns: u64,
    /// Until when they are left alone.
    until_ns: u64,
}

impl Pace {
    /// The pace of rings of that size, for copies of that size at most, taken so often on each CPU; `None` where the kernel has to say
    /// when they are to be read.
    pub(crate) fn new(ring_bytes: usize, most_stack_bytes: u32, rate_hz: u32) -> Option<Self> {
        let wake_at = wake_at(ring_bytes, most_stack_bytes, rate_hz) as u64;
        let each_second = u64::from(most_stack_bytes) * u64::from(rate_hz);
        let pause_ns = (wake_at * 1_000_000_000).checked_div(each_second)?;
        (pause_ns >= SHORTEST_PAUSE_NS).then_some(Self { wake_at, pause_ns, until_ns: 0 })
    }

    /// Takes note of a round in which one ring has given so many bytes, and none more. Where a CPU was busy, the next round is by the
    /// clock.
    pub(crate) fn note_round(&mut self, most_bytes: u64, now_ns: u64) {
        if most_bytes >= self.wake_at / 2 {
            self.until_ns = now_ns.saturating_add(self.pause_ns);
        }
    }

    /// Until when the rings are left alone, if they are.
    pub(crate) fn pauses_until(&self, now_ns: u64) -> Option<u64> {
        (now_ns < self.until_ns).then_some(self.until_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn rings_of_busy_cpus_are_looked_at_by_the_clock() {
        let mut pace = Pace::new(4 << 20, 32 << 10, 1000).unwrap();
        // Half of the ring is 64 copies.
        assert_eq!((pace.wake_at, pace.pause_ns), (2 << 20, 64 * MS));
        assert_eq!(pace.pauses_until(0), None);
        pace.note_round(2 << 20, 100 * MS);
        assert_eq!(
            [101, 163, 164].map(|now| pace.pauses_until(now * MS)),
            [Some(164 * MS), Some(164 * MS), None]
        );
        // Mappings and names are told at once meanwhile: such rounds find little, and change nothing.
        pace.note_round(10 << 10, 120 * MS);
        assert_eq!(pace.pauses_until(121 * MS), Some(164 * MS));
        pace.note_round(1 << 20, 164 * MS);
        assert_eq!(pace.pauses_until(165 * MS), Some(228 * MS));
        pace.note_round((1 << 20) - 1, 228 * MS);
        assert_eq!(pace.pauses_until(229 * MS), None);
    }

    #[test]
    fn a_ring_is_not_more_than_half_full_after_a_pause() {
        for (ring_bytes, stack_bytes, rate) in [
            (4 << 20, 32 << 10, 1000),
            (8 << 20, 64 << 10, 1000),
            (32 << 20, 32 << 10, 10_000),
            (2 << 20, 8, 1),
        ] {
            let pace = Pace::new(ring_bytes, stack_bytes, rate).unwrap();
            let written = u64::from(stack_bytes) * u64::from(rate) * pace.pause_ns / 1_000_000_000;
            assert!(written <= ring_bytes as u64 / 2, "{pace:?}");
        }
        // A plain user's ring is half full after 8 ms.
        assert!(Pace::new(512 << 10, 32 << 10, 1000).is_none());
        assert!(Pace::new(4 << 20, 0, 1000).is_none());
    }
}
