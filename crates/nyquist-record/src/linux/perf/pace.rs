//! How often the reader looks at the rings of copied stacks.
//!
//! The kernel wakes it when so many bytes were written to a ring since it did so last, whether or not they have been read meanwhile. Rings of
//! several busy CPUs would wake it one after the other, although it empties all of them each time. So while samples come as fast as they
//! can, these rings are left alone and looked at by the clock: a reader is woken no more often on sixteen CPUs than on two.
//!
//! Where something else has the rings looked at far more often (mappings in batches), no round finds
//! much, and none of this happens.

use crate::linux::budget::record_bytes;
use crate::linux::pool::{BUFFER_BYTES, BUFFERS};

/// How often the reader is woken by a busy CPU at least. What many deep stacks lead to should begin early.
const WAKES_A_SECOND: usize = 10;
/// The bytes of samples with stack copies for which the reader is woken at least.
const SMALLEST_WAKE: usize = 256 << 10;
/// Where rings cannot be left alone for so long, they are looked at when they say so: who comes late by the clock would lose samples.
const SHORTEST_PAUSE_NS: u64 = 10_000_000;
/// What all rings of a reader give in one round at most: as much as leaves half of its pool for what was read before.
const MOST_A_ROUND: u64 = (BUFFERS * BUFFER_BYTES / 2) as u64;

/// The bytes at which a ring for copies of stacks wakes the reader: at half of it the latest.
pub(crate) fn wake_at(ring_bytes: usize, stack_bytes: u32, rate_hz: u32) -> usize {
    let each_second = stack_bytes as usize * rate_hz as usize;
    (ring_bytes / 2).min((each_second / WAKES_A_SECOND).max(SMALLEST_WAKE))
}

/// What copies of stacks are written, and where to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) cpus: usize,
    /// How many readers share out their rings.
    pub(crate) readers: usize,
    /// The size of a CPU's ring.
    pub(crate) ring_bytes: usize,
    /// The size of each copy, and the one that may take its place.
    pub(crate) stack_bytes: u32,
    pub(crate) deep_stack_bytes: Option<u32>,
    /// How many a busy CPU writes in a second.
    pub(crate) rate_hz: u32,
}

/// For how long rings are left alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The bytes of one ring from which on its CPU was busy in a pause, and up to which it wrote no more than is reckoned with: threads
    /// that were born while events were opened can have several, all but one of which are left out later.
    busy_bytes: u64,
    most_bytes: u64,
    pause_ns: u64,
    /// Until when they are left alone.
    until_ns: u64,
}

impl Pace {
    /// The pace of some rings; `None` where the kernel has to say when they are to be read.
    pub(crate) fn new(flow: Flow) -> Option<Self> {
        let Flow { cpus, readers, ring_bytes, stack_bytes, deep_stack_bytes, rate_hz } = flow;
        let each_second = |stack_bytes: u32| record_bytes(stack_bytes) * u64::from(rate_hz);
        let most_stack_bytes = deep_stack_bytes.unwrap_or_default().max(stack_bytes);
        let most_bytes = (wake_at(ring_bytes, most_stack_bytes, rate_hz) as u64)
            .min(MOST_A_ROUND / cpus.div_ceil(readers.max(1)).max(1) as u64);
        let pause_ns = (most_bytes * 1_000_000_000).checked_div(each_second(most_stack_bytes))?;
        let busy_bytes = each_second(stack_bytes) * (pause_ns / 2) / 1_000_000_000;
        let most_bytes = most_bytes + most_bytes / 4;
        (pause_ns >= SHORTEST_PAUSE_NS).then_some(Self { busy_bytes, most_bytes, pause_ns, until_ns: 0 })
    }

    /// Takes note of a round in which one ring has given so many bytes, and none more. Where a CPU was busy, the next round is by the
    /// clock.
    pub(crate) fn note_round(&mut self, most_bytes: u64, now_ns: u64) {
        if (self.busy_bytes..=self.most_bytes).contains(&most_bytes) {
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

    /// Two CPUs of which 32 kB of each stack are copied.
    const FLOW: Flow = Flow {
        cpus: 2,
        readers: 1,
        ring_bytes: 4 << 20,
        stack_bytes: 32 << 10,
        deep_stack_bytes: None,
        rate_hz: 1000,
    };

    #[test]
    fn rings_of_busy_cpus_are_looked_at_by_the_clock() {
        let mut pace = Pace::new(FLOW).unwrap();
        // Half of the ring is 61 samples.
        let pause = pace.pause_ns;
        assert_eq!((pace.busy_bytes >> 10, pause / MS), (1023, 61));
        assert_eq!(pace.pauses_until(0), None);
        pace.note_round(2 << 20, 100);
        let pauses = [100, 99 + pause, 100 + pause].map(|now| pace.pauses_until(now));
        assert_eq!(pauses, [Some(100 + pause), Some(100 + pause), None]);
        // Mappings and names are told at once meanwhile: such rounds find little, and change nothing.
        pace.note_round(10 << 10, 120);
        assert_eq!(pace.pauses_until(121), Some(100 + pause));
        pace.note_round(1 << 20, 100 + pause);
        assert_eq!(pace.pauses_until(101 + pause), Some(100 + 2 * pause));
        pace.note_round((1 << 20) - 4096, 100 + 2 * pause);
        assert_eq!(pace.pauses_until(101 + 2 * pause), None);
        // More than is reckoned with would not find room in a ring that is left alone.
        pace.note_round(3 << 20, 100 + 2 * pause);
        assert_eq!(pace.pauses_until(101 + 2 * pause), None);
    }

    #[test]
    fn rings_are_at_most_half_full_after_a_pause() {
        let check = |flow: Flow, pause_ms: Option<u64>| {
            let pace = Pace::new(flow);
            assert_eq!(pace.map(|pace| pace.pause_ns / MS), pause_ms, "{flow:?}");
            let Some(pace) = pace else { return };
            let stack_bytes = flow.deep_stack_bytes.unwrap_or(flow.stack_bytes);
            let written = record_bytes(stack_bytes) * u64::from(flow.rate_hz) * pace.pause_ns / 1_000_000_000;
            assert!(written <= flow.ring_bytes as u64 / 2, "{flow:?}");
            assert!(written * flow.cpus as u64 <= MOST_A_ROUND, "{flow:?}");
        };
        check(FLOW, Some(61));
        check(Flow { deep_stack_bytes: Some(64 << 10), ring_bytes: 8 << 20, ..FLOW }, Some(64));
        check(Flow { rate_hz: 10_000, ring_bytes: 32 << 20, ..FLOW }, Some(48));
        check(Flow { cpus: 16, ..FLOW }, Some(61));
        check(Flow { cpus: 64, ..FLOW }, Some(15));
        check(Flow { cpus: 128, ..FLOW }, None);
        // A plain user's ring is half full after 8 ms.
        check(Flow { ring_bytes: 512 << 10, ..FLOW }, None);
        // Of a sample with a small copy, the rest is most of it.
        check(Flow { stack_bytes: 64, ring_bytes: 2 << 20, ..FLOW }, Some(163));
        check(Flow { stack_bytes: 8, ring_bytes: 256 << 10, ..FLOW }, Some(84));
    }
}
