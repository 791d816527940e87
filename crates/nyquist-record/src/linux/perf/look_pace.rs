//! How often the reader looks at the rings by itself, before the kernel wakes it.

use std::time::Duration;

/// The longest time between two looks at rings that had nothing new, in ms.
const MAX_QUIET_MS: u32 = 2000;

/// The pace of looks at the rings.
#[derive(Debug)]
pub(crate) struct LookPace {
    /// The time between two looks at rings in which there is something, in ms.
    busy_ms: u32,
    /// Whether it becomes longer while there is nothing.
    is_lazy: bool,
    current_ms: u32,
    /// How much had been written to the rings at the last look.
    written: u64,
}

impl LookPace {
    /// Looks this often; if `is_lazy`, less often while nothing is written.
    pub(crate) fn new(every: Duration, is_lazy: bool) -> Self {
        let busy_ms = every.as_millis().max(1) as u32;
        Self { busy_ms, is_lazy, current_ms: busy_ms, written: 0 }
    }

    /// The time until the next look, in ms.
    pub(crate) fn ms(&self) -> u32 {
        self.current_ms
    }

    /// Notes a look, and how much has been written to the rings so far.
    pub(crate) fn note_round(&mut self, written: u64) {
        let is_quiet = std::mem::replace(&mut self.written, written) == written;
        let longer = self.current_ms.saturating_mul(2).min(MAX_QUIET_MS.max(self.busy_ms));
        self.current_ms = if self.is_lazy && is_quiet { longer } else { self.busy_ms };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_rings_are_looked_at_less_often() {
        let mut pace = LookPace::new(Duration::from_millis(250), true);
        let next = [10, 10, 10, 10, 10, 10, 20].map(|written| {
            pace.note_round(written);
            pace.ms()
        });
        assert_eq!(next, [250, 500, 1000, 2000, 2000, 2000, 250]);
        let mut eager = LookPace::new(Duration::from_millis(100), false);
        eager.note_round(0);
        assert_eq!(eager.ms(), 100);
    }
}
