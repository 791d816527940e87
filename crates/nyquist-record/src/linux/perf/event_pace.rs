//! Selects which occurrences of additional events are recorded: all of them if there are few, and one
//! of every N if there are many. The kernel's own method (`perf_event_attr.freq`) records a few in quick
//! succession, computes a high rate from them, and then skips most of the following ones.

use std::os::fd::AsFd as _;

use super::events::OpenedEvents;
use crate::linux::sys::event;
use crate::random::Random;

/// How often the periods are changed.
const EVERY_NS: u64 = 100_000_000;

/// When they are changed first. Until then, all occurrences are recorded.
const FIRST_NS: u64 = 10_000_000;

/// Changes the periods of events with the rate of what they count.
#[derive(Debug)]
pub(crate) struct EventPace {
    paced: Vec<PacedEvent>,
    random: Random,
    changed_ns: u64,
    next_ns: u64,
}

/// An event whose period is changed.
#[derive(Debug)]
struct PacedEvent {
    /// The index of the event.
    place: usize,
    /// How many samples to record per second.
    requested_hz: u64,
    /// Its count when its period was last checked.
    count: u64,
    period: u64,
}

impl EventPace {
    /// Paces the events with these indices, if there are any, each with its samples per second. At first,
    /// everything that they count is recorded. `now_ns` is the time of the monotonic clock.
    pub(crate) fn new(events: impl Iterator<Item = (usize, u64)>, now_ns: u64) -> Option<Self> {
        let paced =
            events.map(|(place, requested_hz)| PacedEvent { place, requested_hz, count: 0, period: 1 });
        let paced: Vec<_> = paced.collect();
        let next_ns = now_ns.saturating_add(FIRST_NS);
        (!paced.is_empty()).then(|| Self { paced, random: Random::new(now_ns), changed_ns: now_ns, next_ns })
    }

    /// When the periods change next, in nanoseconds of the monotonic clock.
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Changes the periods if it is time to.
    pub(crate) fn change(&mut self, events: &OpenedEvents, now_ns: u64) {
        if now_ns < self.next_ns {
            return;
        }
        let elapsed_ns = now_ns.saturating_sub(self.changed_ns);
        (self.changed_ns, self.next_ns) = (now_ns, now_ns.saturating_add(EVERY_NS));
        for paced in &mut self.paced {
            // An event whose threads have ended counts nothing.
            let Some((event, count)) = events.get(paced.place).zip(events.count(paced.place).ok()) else {
                continue;
            };
            let counted = count.saturating_sub(std::mem::replace(&mut paced.count, count));
            let requested = requested(paced.requested_hz, elapsed_ns);
            let period = period(counted, requested, &mut self.random);
            // If an event's period cannot be changed, it records more or less than it should.
            if period != paced.period && event::set_period(event.as_fd(), period).is_ok() {
                paced.period = period;
            }
        }
    }
}

/// How many samples to record in some time.
fn requested(requested_hz: u64, elapsed_ns: u64) -> u64 {
    (u128::from(elapsed_ns) * u128::from(requested_hz) / 1_000_000_000).max(1) as u64
}

/// The period at which this many occurrences yield at most the requested number of samples. It is random, so
/// that it cannot be in step with a program.
fn period(counted: u64, requested: u64, random: &mut Random) -> u64 {
    let least = counted.div_ceil(requested).max(1);
    if least == 1 { 1 } else { least + random.below(least / 2 + 2) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_events_are_all_recorded() {
        let mut random = Random::new(1);
        assert_eq!((requested(2000, EVERY_NS), requested(2000, 0)), (200, 1));
        assert_eq!([0, 1, 199, 200].map(|counted| period(counted, 200, &mut random)), [1; 4]);
    }

    #[test]
    fn of_many_events_few_are_recorded() {
        let mut random = Random::new(1);
        let periods: Vec<_> = (0..100).map(|_| period(20_000, 200, &mut random)).collect();
        assert!(periods.iter().all(|period| (100..=151).contains(period)), "{periods:?}");
        assert!(periods.windows(2).any(|two| two[0] != two[1]));
    }

    #[test]
    fn a_period_of_two_changes_too() {
        let mut random = Random::new(1);
        let periods: Vec<_> = (0..20).map(|_| period(300, 200, &mut random)).collect();
        assert!(periods.contains(&2) && periods.contains(&3), "{periods:?}");
    }
}
