//! How often processes are looked at.

use std::time::Duration;

/// The shortest pause between looks.
pub(super) const SHORTEST: Duration = Duration::from_millis(50);

/// The part of a CPU's time that looks may take, as a divisor: 0.2 %.
const SHARE: u32 = 500;

/// So many looks come in the shortest pause. Later, each is rarer, so that what an endless recording has of them grows with the
/// logarithm of its time.
const FREQUENT: u32 = 12_000;

/// After so many rounds in which nobody ran, the next ones are rarer, so that what sleeps does not wake the recorder all the time.
const QUIET: u32 = 20;

/// The pause where nobody runs.
const WHILE_QUIET: Duration = Duration::from_millis(250);

/// The pause after a round of looks that took `cost` of CPU time, when so much time has passed since the first, and nobody ran in so
/// many rounds.
pub(super) fn pause(passed: Duration, cost: Duration, quiet_rounds: u32) -> Duration {
    let shortest = if quiet_rounds < QUIET { SHORTEST } else { WHILE_QUIET };
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
