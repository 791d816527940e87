//! How often a snapshot is made: the larger the recording, the more one costs.

use std::time::Duration;

/// For each second that a snapshot and the answers about it take, there are so many without one: they take at most about a tenth of a
/// CPU.
const PAUSE: u32 = 9;

/// The costs of the snapshots so far.
#[derive(Debug)]
pub(crate) struct Pace {
    least: Duration,
    before: Option<Duration>,
}

impl Pace {
    /// No more often than that.
    pub(crate) fn new(least: Duration) -> Self {
        Self { least, before: None }
    }

    /// How long to wait after a snapshot that took so long. Of the last two the cheaper one counts: one that opens the files of
    /// libs for the first time takes long once.
    pub(crate) fn pause_after(&mut self, cost: Duration) -> Duration {
        let usual = self.before.replace(cost).map_or(Duration::ZERO, |before| before.min(cost));
        self.least.max(usual * PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_recordings_have_fewer_snapshots() {
        let mut pace = Pace::new(Duration::from_secs(1));
        let mut after = |ms| pace.pause_after(Duration::from_millis(ms)).as_millis();
        // Opening files, once.
        assert_eq!(after(3000), 1000);
        assert_eq!(after(20), 1000);
        assert_eq!(after(400), 1000);
        assert_eq!(after(500), 3600);
        assert_eq!(after(500), 4500);
    }
}
