//! Decides when stack copies are enlarged, from the feedback on the copies so far.

use nyquist_convert::StackCopyFeedback;

/// This many truncated copies are not a coincidence.
const MANY: u64 = 16;
/// They must also be at least this part of all copies: one in twenty-five.
const PART: u64 = 25;
/// After this many copies, older ones have half the weight.
const RECENT: u64 = 4096;
/// How long after the switch the events are switched once more, for threads that were being born.
const AGAIN_AFTER_NS: u64 = 50_000_000;

/// Decides when to switch to larger copies.
#[derive(Debug, Default)]
pub(crate) struct StackSizeEscalation {
    copies: u64,
    ended_early: u64,
    switched_ns: Option<u64>,
    is_done: bool,
}

impl StackSizeEscalation {
    /// Whether to switch the events now, given the feedback on more copies.
    pub(crate) fn apply_feedback(&mut self, counts: &StackCopyFeedback, now_ns: u64) -> bool {
        if let Some(switched) = self.switched_ns {
            let again = !self.is_done && now_ns.saturating_sub(switched) >= AGAIN_AFTER_NS;
            self.is_done |= again;
            return again;
        }
        self.copies += counts.copies;
        self.ended_early += counts.ended_early;
        let is_time = self.ended_early >= MANY && self.ended_early * PART >= self.copies;
        if is_time {
            self.switched_ns = Some(now_ns);
        } else if self.copies > RECENT {
            self.copies /= 2;
            self.ended_early /= 2;
        }
        is_time
    }

    /// When the events were switched, in nanoseconds of the monotonic clock.
    pub(crate) fn switched_ns(&self) -> Option<u64> {
        self.switched_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(copies: u64, ended_early: u64) -> StackCopyFeedback {
        StackCopyFeedback { copies, ended_early, ..StackCopyFeedback::default() }
    }

    #[test]
    fn many_that_end_early_lead_to_larger_ones() {
        let check = |turns: &[(u64, u64)], expected| {
            let mut deepening = StackSizeEscalation::default();
            let switched =
                turns.iter().any(|(copies, ended)| deepening.apply_feedback(&counts(*copies, *ended), 0));
            assert_eq!(switched, expected, "{turns:?}");
        };
        check(&[(16, 16)], true);
        check(&[(15, 15)], false);
        check(&[(8, 8), (8, 8)], true);
        check(&[(1000, 16)], false);
        check(&[(400, 16)], true);
        check(&[(100_000, 100), (100_000, 100), (0, 0)], false);
        // Older copies have less and less weight.
        let shallow_at_first: Vec<_> = std::iter::repeat_n((5000, 0), 100).chain([(300, 300)]).collect();
        check(&shallow_at_first, true);
    }

    #[test]
    fn the_switch_is_made_twice_and_no_more() {
        let mut deepening = StackSizeEscalation::default();
        let mut switches = |ms: u64| deepening.apply_feedback(&counts(100, 100), ms * 1_000_000);
        assert_eq!([0, 10, 49, 50, 51, 200].map(&mut switches), [true, false, false, true, false, false]);
        assert_eq!(deepening.switched_ns(), Some(0));
    }
}
