//! Weights as shares of the whole and as times.

use crate::number::{grouped, percent};
use nyquist_analysis::{Summary, View};

/// What weights are measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    /// The weight of all that is asked about.
    pub(crate) total: u64,
    /// What a weight of 1 stands for.
    pub(crate) interval_ns: u64,
}

impl Scale {
    /// The scale of what is asked about.
    pub(crate) fn of(view: &View<'_>) -> Self {
        Self { total: view.total().weight, interval_ns: view.profile().meta().interval }
    }

    /// The scale of a summary.
    pub(crate) fn of_summary(summary: &Summary) -> Self {
        Self { total: summary.total.weight, interval_ns: summary.interval_ns }
    }

    /// The share of the whole, from 0 to 1.
    pub(crate) fn share(self, weight: u64) -> f64 {
        if self.total == 0 { 0.0 } else { weight as f64 / self.total as f64 }
    }

    /// The share of the whole as text; nothing for nothing.
    pub(crate) fn percent(self, weight: u64) -> String {
        if weight == 0 { String::new() } else { percent(self.share(weight)) }
    }

    /// The time as text; nothing for nothing.
    pub(crate) fn time(self, weight: u64) -> String {
        if weight == 0 { String::new() } else { milliseconds(weight.saturating_mul(self.interval_ns)) }
    }

    /// The least weight that is so many per cent of the whole.
    pub(crate) fn weight_of_percent(self, percent: f64) -> u64 {
        (self.total as f64 * percent / 100.0).ceil() as u64
    }
}

/// A time in ms: whole ones, where there are ten or more.
pub(crate) fn milliseconds(nanoseconds: u64) -> String {
    let milliseconds = nanoseconds as f64 / 1e6;
    if milliseconds >= 9.95 {
        format!("{} ms", grouped(milliseconds.round() as u64))
    } else {
        format!("{milliseconds:.1} ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_shares_and_times() {
        let scale = Scale { total: 200, interval_ns: 1_000_000 };
        assert_eq!((scale.percent(50), scale.time(50)), ("25.0%".to_owned(), "50 ms".to_owned()));
        assert_eq!((scale.percent(0), scale.time(0)), (String::new(), String::new()));
        assert_eq!(scale.weight_of_percent(0.4), 1);
        assert!(Scale { total: 0, interval_ns: 1 }.share(3).abs() < f64::EPSILON);
    }

    #[test]
    fn short_times_have_a_decimal() {
        assert_eq!(milliseconds(500_000), "0.5 ms");
        assert_eq!(milliseconds(9_960_000), "10 ms");
        assert_eq!(milliseconds(1_234_567_890), "1,235 ms");
    }
}
