//! Taking the sideband in batches while much of it comes.
//!
//! Each of its records wakes the reader, so that files can be opened while the process that maps them lives. For that the
//! kernel interrupts the CPU that wrote it: a loop of short processes, each of which maps thirty times, became 25 % slower
//! by it. So while records keep coming, other events take over whose records wake nobody, and the reader looks by the clock.

use super::events::Events;
use super::ring_source::RingSource;

/// How often the rings are looked at while nothing wakes the reader.
const LOOK_EVERY_MS: u32 = 2;
/// For how long nothing comes when much has come.
const QUIET_NS: u64 = 20_000_000;
/// How many rounds of draining in a row find something when much comes: a program that starts has a few.
const MANY_ROUNDS: u32 = 8;

/// The events of the sideband on one CPU, by their places in [`Events`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SidebandPair {
    /// Each record of this one wakes the reader.
    pub(crate) eager: usize,
    /// Many records of this one do.
    pub(crate) lazy: usize,
}

/// The state of the sideband's events.
#[derive(Debug)]
pub(crate) struct SidebandThrottle {
    pairs: Vec<SidebandPair>,
    state: State,
    last_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Each record wakes the reader. So many rounds in a row have found something.
    Eager(u32),
    /// The reader looks by the clock.
    Lazy,
    /// Each record wakes the reader again, but of what came just before nobody told it.
    LastLook,
}

impl SidebandThrottle {
    /// Each record wakes the reader at first.
    pub(crate) fn new(pairs: Vec<SidebandPair>) -> Self {
        Self { pairs, state: State::Eager(0), last_ns: 0 }
    }

    /// Whether there is something in the rings of these events.
    pub(crate) fn is_in<'a>(&self, mut rings: impl Iterator<Item = &'a RingSource>) -> bool {
        let is_own = |waker: &usize| self.pairs.iter().any(|pair| [pair.eager, pair.lazy].contains(waker));
        let has_any = |source: &RingSource| source.ring.head() != source.ring.tail();
        rings.any(|source| source.wakers.iter().any(is_own) && has_any(source))
    }

    /// Takes note of a round of draining, in which there was something of the sideband or nothing.
    pub(crate) fn note_round(&mut self, found: bool, now: u64, events: &Events) {
        let next = self.next(found, now);
        // Both are on for a moment, and a record may come twice, which changes nothing, rather than never.
        match (self.state, next) {
            (State::Eager(_), State::Lazy) => self.switch(events, |pair| (pair.lazy, pair.eager)),
            (State::Lazy, State::LastLook) => self.switch(events, |pair| (pair.eager, pair.lazy)),
            _ => {}
        }
        self.state = next;
    }

    fn next(&mut self, found: bool, now: u64) -> State {
        let was_quiet = now.saturating_sub(self.last_ns) >= QUIET_NS;
        if found {
            self.last_ns = now;
        }
        match self.state {
            State::Eager(_) | State::LastLook if found && was_quiet => State::Eager(1),
            State::Eager(rounds) if found && rounds + 1 < MANY_ROUNDS => State::Eager(rounds + 1),
            State::Eager(_) if found => State::Lazy,
            State::Lazy if !found && was_quiet => State::LastLook,
            State::LastLook => State::Eager(0),
            state => state,
        }
    }

    fn switch(&self, events: &Events, of: impl Fn(&SidebandPair) -> (usize, usize)) {
        for pair in &self.pairs {
            let (on, off) = of(pair);
            events.switch(on, off);
        }
    }

    /// How long the rings may stay without a look, where nothing would tell of what is in them.
    pub(crate) fn look_every_ms(&self) -> Option<u32> {
        (!matches!(self.state, State::Eager(_))).then_some(LOOK_EVERY_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Goes through rounds, each at a time in ms, and says at which of them the reader begins or ends to look by the clock.
    fn check(rounds: impl IntoIterator<Item = (u64, bool)>, expected: &[u64]) {
        let events = Events::new(false);
        let mut batching = SidebandThrottle::new(Vec::new());
        let mut changes = Vec::new();
        for (at, found) in rounds {
            let before = batching.look_every_ms();
            batching.note_round(found, 1_000 * MS + at * MS, &events);
            if batching.look_every_ms() != before {
                changes.push(at);
            }
        }
        assert_eq!(changes, expected);
    }

    #[test]
    fn a_storm_is_taken_in_batches_until_it_is_over() {
        let storm = (0..100).map(|at| (at, true));
        let quiet = (100..160).step_by(2).map(|at| (at, false));
        // After the switch there is one look more by the clock.
        check(storm.chain(quiet), &[u64::from(MANY_ROUNDS) - 1, 122]);
    }

    #[test]
    fn what_comes_alone_is_told_at_once() {
        check((0..7).map(|at| (at, true)), &[]);
        check((0..100).map(|n| (n * 30, true)), &[]);
        check((0..100).map(|at| (at, false)), &[]);
    }

    #[test]
    fn samples_between_do_not_end_a_storm() {
        check((0..100).map(|at| (at, at % 3 == 0)), &[3 * (u64::from(MANY_ROUNDS) - 1)]);
    }
}
