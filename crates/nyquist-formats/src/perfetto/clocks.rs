//! The clocks of a trace. Times of all clocks are converted to the boot-time clock.

use rustc_hash::FxHashMap;

use super::message::ClockSnapshot;

/// Clocks that the system has.
const REALTIME: u32 = 1;
pub(super) const BOOTTIME: u32 = 6;

/// Clock ids from here on are local to their sequence.
const OF_SEQUENCE: u32 = 64;

/// A clock of a sequence.
#[derive(Clone, Copy)]
struct OfSequence {
    /// The offset that is added to its time, in ns.
    offset: i128,
    unit: u64,
    /// Its last time in ns, if times are relative to the previous packet.
    last: Option<i128>,
}

/// The state of the clocks so far.
#[derive(Default)]
pub(super) struct Clocks {
    offsets: FxHashMap<u32, i128>,
    of_sequences: FxHashMap<(u32, u32), OfSequence>,
    /// The offset from times of the trace to times since 1970, in ns.
    pub(super) since_1970: Option<i128>,
}

impl Clocks {
    /// Adds the values of the clocks at one time, from a packet of this sequence.
    pub(super) fn add(&mut self, sequence: u32, snapshot: &ClockSnapshot) {
        let find = |id| snapshot.clocks.iter().find(|clock| clock.id == id);
        let reference = find(BOOTTIME).or_else(|| find(snapshot.primary)).or_else(|| snapshot.clocks.first());
        let Some(reference) = reference else { return };
        let zero = i128::from(reference.time) * i128::from(reference.unit_ns.max(1));
        for clock in &snapshot.clocks {
            let unit = clock.unit_ns.max(1);
            let time = i128::from(clock.time) * i128::from(unit);
            if clock.id >= OF_SEQUENCE {
                let last = clock.is_incremental.then_some(time);
                self.of_sequences
                    .insert((sequence, clock.id), OfSequence { offset: zero - time, unit, last });
            } else {
                self.offsets.entry(clock.id).or_insert(zero - time);
            }
            if clock.id == REALTIME {
                self.since_1970.get_or_insert(time - zero);
            }
        }
    }

    /// A packet's time in ns of the trace's clock.
    pub(super) fn time(&mut self, sequence: u32, clock: u32, time: u64) -> u64 {
        let nanoseconds = match self.of_sequences.get_mut(&(sequence, clock)) {
            Some(own) => {
                let time = i128::from(time) * i128::from(own.unit);
                let now = own.last.map_or(time, |last| last.saturating_add(time));
                own.last = own.last.map(|_| now);
                now.saturating_add(own.offset)
            }
            None => i128::from(time) + self.offsets.get(&clock).copied().unwrap_or(0),
        };
        u64::try_from(nanoseconds.max(0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::Clock;
    use super::*;

    #[test]
    fn times_of_all_clocks_are_those_of_one() {
        let clock = |id, time, is_incremental, unit_ns| Clock { id, time, is_incremental, unit_ns };
        let mut clocks = Clocks::default();
        let shown = vec![
            clock(BOOTTIME, 5_000, false, 0),
            clock(3, 4_000, false, 0),
            clock(REALTIME, 1_000_000, false, 0),
            clock(64, 2, true, 1000),
        ];
        clocks.add(7, &ClockSnapshot { clocks: shown, primary: 0 });
        assert_eq!(clocks.time(7, BOOTTIME, 6_000), 6_000);
        assert_eq!(clocks.time(1, 3, 4_500), 5_500);
        assert_eq!((clocks.time(7, 64, 1), clocks.time(7, 64, 3)), (6_000, 9_000));
        assert_eq!(clocks.since_1970, Some(995_000));
        // Another sequence does not have this clock.
        assert_eq!(clocks.time(1, 64, 9), 9);
    }
}
