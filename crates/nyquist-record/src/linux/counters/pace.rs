//! How often the counters of processes are read.

use std::time::Duration;

/// The shortest pause between readings.
pub(super) const MIN_PAUSE: Duration = Duration::from_millis(50);

/// The share of a CPU's time that readings may use, as a divisor: 0.2 %.
const SHARE: u32 = 500;

/// How many readings come at the shortest pause. Later, the pauses grow, so that the number of readings in an
/// endless recording grows with the logarithm of its time.
const FREQUENT: u32 = 12_000;

/// After this many rounds in which no process ran, the pauses are longer, so that sleeping processes do not
/// cause constant wake-ups of the recorder.
const QUIET: u32 = 20;

/// The pause while no process runs.
const WHILE_QUIET: Duration = Duration::from_millis(250);

/// The pause after a round that took `cost` of CPU time. `passed` is the time since the first round, and
/// `quiet_readings` the number of rounds in which no process ran.
pub(super) fn pause(passed: Duration, cost: Duration, quiet_readings: u32) -> Duration {
    let shortest = if quiet_readings < QUIET { MIN_PAUSE } else { WHILE_QUIET };
    shortest.max(cost.saturating_mul(SHARE)).max(passed / FREQUENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_processes_are_looked_at_less_often() {
        let check = |passed: u64, cost_us: u64, quiet: u32, expected_ms: u64| {
            let found = pause(Duration::from_secs(passed), Duration::from_micros(cost_us), quiet);
            assert_eq!(found, Duration::from_millis(expected_ms), "{passed} s, {cost_us} µs, {quiet}");
        };
        check(0, 0, 0, 50);
        check(0, 100, 19, 50);
        check(0, 100, 20, 250);
        check(0, 4000, 20, 2000);
        check(600, 100, 0, 50);
        check(6000, 100, 20, 500);
        check(6000, 4000, 0, 2000);
    }
}
