//! The pace of snapshots: the larger the recording, the more expensive each one is.

use std::time::Duration;

/// The pause after a snapshot, as a multiple of the time for the snapshot and its queries. It limits them to
/// about a tenth of a CPU.
const PAUSE: u32 = 9;

/// The costs of the snapshots so far.
#[derive(Debug)]
pub(crate) struct Pace {
    least: Duration,
    before: Option<Duration>,
}

impl Pace {
    /// At most one snapshot in the time `least`.
    pub(crate) fn new(least: Duration) -> Self {
        Self { least, before: None }
    }

    /// The pause after a snapshot of that cost. Of the last two costs the smaller one is used, because
    /// opening the files of libs takes long only once.
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
