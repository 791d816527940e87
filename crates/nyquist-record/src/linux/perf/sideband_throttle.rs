//! Reading the sideband in batches while it has many records.
//!
//! Each sideband record wakes the reader, so that files can be opened while the process that maps them lives.
//! For the wake-up, the kernel interrupts the CPU that wrote the record. This slowed a loop of short
//! processes, each with thirty mappings, by 25 %. While records keep coming, other events therefore replace
//! these. Their records cause no wake-up, and the reader reads them by the clock.

use super::events::OpenedEvents;
use super::ring_source::RingSource;

/// How often the rings are read while nothing wakes the reader.
const LOOK_EVERY_MS: u32 = 2;
/// The same for a recording that goes on all the time. Of the processes that are gone by then, few have a sample.
const SPARING_LOOK_EVERY_MS: u32 = 15;
/// How long no record must come before a burst counts as over.
const QUIET_NS: u64 = 20_000_000;
/// How many rounds of draining in a row must find records before this counts as a burst: a starting program
/// has a few.
const MANY_ROUNDS: u32 = 8;

/// The sideband events on one CPU, by their indices in [`OpenedEvents`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SidebandPair {
    /// Each record of this one wakes the reader.
    pub(crate) eager: usize,
    /// Only many records of this one wake it.
    pub(crate) lazy: usize,
}

/// The state of the sideband events.
#[derive(Debug)]
pub(crate) struct SidebandThrottle {
    pairs: Vec<SidebandPair>,
    look_every_ms: u32,
    state: ThrottleState,
    last_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThrottleState {
    /// Each record wakes the reader. The number counts the rounds in a row that have found records.
    Eager(u32),
    /// The reader reads by the clock.
    Lazy,
    /// Each record wakes the reader again, but the records from just before caused no wake-up.
    LastLook,
}

impl SidebandThrottle {
    /// At first, each record wakes the reader.
    pub(crate) fn new(pairs: Vec<SidebandPair>, spares_cpu_time: bool) -> Self {
        let look_every_ms = if spares_cpu_time { SPARING_LOOK_EVERY_MS } else { LOOK_EVERY_MS };
        Self { pairs, look_every_ms, state: ThrottleState::Eager(0), last_ns: 0 }
    }

    /// Whether the rings of these events contain records.
    pub(crate) fn is_in<'a>(&self, mut rings: impl Iterator<Item = &'a RingSource>) -> bool {
        let is_own = |waker: &usize| self.pairs.iter().any(|pair| [pair.eager, pair.lazy].contains(waker));
        let has_any = |source: &RingSource| source.ring.head() != source.ring.tail();
        rings.any(|source| source.wakers.iter().any(is_own) && has_any(source))
    }

    /// Notes a round of draining, and whether it found sideband records.
    pub(crate) fn note_round(&mut self, found: bool, now: u64, events: &OpenedEvents) {
        let next = self.next(found, now);
        // Both are enabled for a moment, so that no record is lost. A record may come twice, which changes
        // nothing.
        match (self.state, next) {
            (ThrottleState::Eager(_), ThrottleState::Lazy) => {
                self.switch(events, |pair| (pair.lazy, pair.eager));
            }
            (ThrottleState::Lazy, ThrottleState::LastLook) => {
                self.switch(events, |pair| (pair.eager, pair.lazy));
            }
            _ => {}
        }
        self.state = next;
    }

    fn next(&mut self, found: bool, now: u64) -> ThrottleState {
        let was_quiet = now.saturating_sub(self.last_ns) >= QUIET_NS;
        if found {
            self.last_ns = now;
        }
        match self.state {
            ThrottleState::Eager(_) | ThrottleState::LastLook if found && was_quiet => {
                ThrottleState::Eager(1)
            }
            ThrottleState::Eager(rounds) if found && rounds + 1 < MANY_ROUNDS => {
                ThrottleState::Eager(rounds + 1)
            }
            ThrottleState::Eager(_) if found => ThrottleState::Lazy,
            ThrottleState::Lazy if !found && was_quiet => ThrottleState::LastLook,
            ThrottleState::LastLook => ThrottleState::Eager(0),
            state => state,
        }
    }

    fn switch(&self, events: &OpenedEvents, of: impl Fn(&SidebandPair) -> (usize, usize)) {
        for pair in &self.pairs {
            let (on, off) = of(pair);
            events.switch(on, off);
        }
    }

    /// How long the rings may stay unread, while nothing signals their records.
    pub(crate) fn look_every_ms(&self) -> Option<u32> {
        (!matches!(self.state, ThrottleState::Eager(_))).then_some(self.look_every_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Runs rounds, each at a time in ms. Checks at which of them the reader begins or ends to read by the
    /// clock.
    fn check(rounds: impl IntoIterator<Item = (u64, bool)>, expected: &[u64]) {
        let events = OpenedEvents::default();
        let mut throttle = SidebandThrottle::new(Vec::new(), false);
        let mut changes = Vec::new();
        for (at, found) in rounds {
            let before = throttle.look_every_ms();
            throttle.note_round(found, 1_000 * MS + at * MS, &events);
            if throttle.look_every_ms() != before {
                changes.push(at);
            }
        }
        assert_eq!(changes, expected);
    }

    #[test]
    fn a_storm_is_taken_in_batches_until_it_is_over() {
        let storm = (0..100).map(|at| (at, true));
        let quiet = (100..160).step_by(2).map(|at| (at, false));
        // After the switch, one more reading comes by the clock.
        check(storm.chain(quiet), &[u64::from(MANY_ROUNDS) - 1, 122]);
    }

    #[test]
    fn a_single_record_is_reported_at_once() {
        check((0..7).map(|at| (at, true)), &[]);
        check((0..100).map(|n| (n * 30, true)), &[]);
        check((0..100).map(|at| (at, false)), &[]);
    }

    #[test]
    fn samples_between_do_not_end_a_storm() {
        check((0..100).map(|at| (at, at % 3 == 0)), &[3 * (u64::from(MANY_ROUNDS) - 1)]);
    }
}
