//! How long the reader of live stacks rests. On average the rests are long enough to keep to its share of a
//! CPU. As far as that permits, a single rest is short enough that two successive readings can be combined.

use crate::linux::perf::outer_stacks::MemoryReading;

/// How many times longer than its CPU time the rest is.
const REST_PER_CPU_TIME: u64 = 20;
/// The longest single rest, in nanoseconds; the remainder is carried over as debt. Stacks between two
/// readings more than about 10 ms apart are not trusted. Without this limit, one slow reading, such as when a
/// hypervisor takes the CPU away, would truncate all stacks of a moment.
const MAX_SINGLE_REST_NS: u64 = 6_000_000;
/// With a larger debt than this, it rests for all of it at once. If each reading is slow, a series of
/// readings that can be combined is worth more than the same number of isolated ones.
const MAX_DEBT_NS: u64 = 200_000_000;

/// The same for a recording that goes on all the time, divided by the samples a second of all CPUs: with the process
/// that reads memory for the reader, that is half of a hundredth of a CPU for 20 of them.
const SPARING_REST: u64 = 16_000;

/// The time of the next reading.
#[derive(Debug)]
pub(crate) struct DutyCycle {
    rest_per_cpu_time: u64,
    until: u64,
    /// The end of the rest if all CPU time used so far were paid off at once.
    owed_until: u64,
}

impl DutyCycle {
    pub(crate) fn of(reading: MemoryReading) -> Self {
        let rest_per_cpu_time = match reading {
            MemoryReading::Sparing { samples } => {
                (SPARING_REST / u64::from(samples.max(1))).max(REST_PER_CPU_TIME)
            }
            MemoryReading::Full | MemoryReading::None => REST_PER_CPU_TIME,
        };
        Self { rest_per_cpu_time, until: 0, owed_until: 0 }
    }

    /// Notes how much CPU time was used since the last call, in nanoseconds.
    pub(crate) fn note_used(&mut self, used: u64, now: u64) {
        self.owed_until =
            self.owed_until.max(now).saturating_add(self.rest_per_cpu_time.saturating_mul(used));
        let owed = self.owed_until - now;
        self.until = now + if owed > MAX_DEBT_NS { owed } else { owed.min(MAX_SINGLE_REST_NS) };
    }

    /// Delays the next reading at least until this time.
    pub(crate) fn extend_to(&mut self, time: u64) {
        self.until = self.until.max(time);
    }

    /// How long the rest still lasts.
    pub(crate) fn remaining_ns(&self, now: u64) -> u64 {
        self.until.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times of readings within a second, given the cost of each.
    fn readings(costs: impl IntoIterator<Item = u64>) -> Vec<u64> {
        readings_of(MemoryReading::Full, costs)
    }

    fn readings_of(reading: MemoryReading, costs: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let (mut cycle, mut now, mut times) = (DutyCycle::of(reading), 1_000_000_000, Vec::new());
        for used in costs {
            now += used;
            times.push(now);
            cycle.note_used(used, now);
            now += cycle.remaining_ns(now);
            if now > 2_000_000_000 {
                break;
            }
        }
        times
    }

    fn longest_between(times: &[u64]) -> u64 {
        times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
    }

    #[test]
    fn short_readings_are_paid_for_at_once() {
        let times = readings(std::iter::repeat(100_000));
        assert_eq!(longest_between(&times), 2_100_000);
        assert!((475..478).contains(&times.len()), "{}", times.len());
    }

    #[test]
    fn a_long_reading_is_paid_for_little_by_little() {
        let costs = (0..).map(|turn| if turn == 3 { 9_000_000 } else { 100_000 });
        let times = readings(costs);
        assert_eq!(longest_between(&times), 9_000_000 + 2_000_000);
    }

    #[test]
    fn long_readings_come_in_rows_within_their_share() {
        let used = 1_000_000;
        let times = readings(std::iter::repeat(used));
        let useful = times.windows(2).filter(|pair| pair[1] - pair[0] <= MAX_SINGLE_REST_NS + used).count();
        assert!(useful * 10 >= times.len() * 8, "{useful} of {}", times.len());
        let part = times.len() as f64 * used as f64 / 1e9;
        assert!((0.04..0.07).contains(&part), "{part} of a CPU");
    }

    /// Three fifths of the readings that 19 samples a second of two CPUs would need, if each takes 0.1 ms.
    #[test]
    fn few_samples_have_a_small_share() {
        let used = |samples| {
            let times = readings_of(MemoryReading::Sparing { samples }, std::iter::repeat(100_000));
            times.len() as u64 * 100_000
        };
        assert!((2_000_000..3_000_000).contains(&used(38)), "{}", used(38));
        assert!((500_000..700_000).contains(&used(8)), "{}", used(8));
        assert_eq!(used(1_000_000), readings(std::iter::repeat(100_000)).len() as u64 * 100_000);
    }

    #[test]
    fn a_reading_may_be_put_off() {
        let mut cycle = DutyCycle::of(MemoryReading::Full);
        cycle.extend_to(50);
        cycle.extend_to(40);
        assert_eq!([45, 50, 60].map(|now| cycle.remaining_ns(now)), [5, 0, 0]);
    }
}
