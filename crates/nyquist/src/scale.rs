//! Weights as shares of the whole, and as times.

use crate::number::{grouped, percent};
use nyquist_analysis::{ProfileSummary, View};
use nyquist_profile::Unit;

/// The unit of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    /// The weight of the whole selection.
    pub(crate) total: u64,
    /// The value of a weight of 1.
    pub(crate) interval_ns: u64,
    /// The unit of that value.
    pub(crate) unit: Unit,
}

impl Scale {
    /// The scale of the selected part.
    pub(crate) fn of(view: &View<'_>) -> Self {
        let meta = view.profile().meta();
        Self { total: view.total().weight, interval_ns: meta.interval, unit: meta.measure.unit }
    }

    /// The scale of the summary of a recording, whose unit is time.
    pub(crate) fn of_summary(summary: &ProfileSummary) -> Self {
        Self { total: summary.total.weight, interval_ns: summary.interval_ns, unit: Unit::Time }
    }

    /// The share of the whole, from 0 to 1.
    pub(crate) fn share(self, weight: u64) -> f64 {
        if self.total == 0 { 0.0 } else { weight as f64 / self.total as f64 }
    }

    /// The share of the whole as text. It is empty for zero.
    pub(crate) fn percent(self, weight: u64) -> String {
        if weight == 0 { String::new() } else { percent(self.share(weight)) }
    }

    /// The time, or the number of other units, as text. It is empty for zero.
    pub(crate) fn time(self, weight: u64) -> String {
        if weight == 0 { String::new() } else { self.amount(weight) }
    }

    /// The time, or the number of other units, as text.
    pub(crate) fn amount(self, weight: u64) -> String {
        let of_weight = weight.saturating_mul(self.interval_ns);
        if self.unit == Unit::Time && self.is_fine() {
            return microseconds(of_weight);
        }
        amount(self.unit, of_weight)
    }

    /// Whether the whole is so short, and known so exactly, that most of its parts would be 0.0 ms.
    fn is_fine(self) -> bool {
        const SHORT: u64 = 10_000_000;
        const COARSE_INTERVAL: u64 = 100_000;
        self.interval_ns < COARSE_INTERVAL && self.total.saturating_mul(self.interval_ns) < SHORT
    }

    /// The least weight that is the given percentage of the whole.
    pub(crate) fn weight_of_percent(self, percent: f64) -> u64 {
        (self.total as f64 * percent / 100.0).ceil() as u64
    }
}

/// A number of ns, bytes or other units as text.
pub(crate) fn amount(unit: Unit, amount: u64) -> String {
    match unit {
        Unit::Time => milliseconds(amount),
        Unit::Bytes => bytes(amount),
        Unit::Count => grouped(amount),
    }
}

/// A number of bytes in the largest unit that gives at least 1.
pub(crate) fn bytes(bytes: u64) -> String {
    let units = ["kB", "MB", "GB", "TB"];
    let power = (1..=units.len()).rev().find(|&power| bytes >= 1 << (10 * power));
    match power {
        Some(power) => format!("{:.1} {}", bytes as f64 / (1_u64 << (10 * power)) as f64, units[power - 1]),
        None => format!("{bytes} B"),
    }
}

/// A time in ms, without decimals from 10 ms on.
pub(crate) fn milliseconds(nanoseconds: u64) -> String {
    number_of(nanoseconds as f64 / 1e6, "ms")
}

/// A time in µs, without decimals from 10 µs on.
fn microseconds(nanoseconds: u64) -> String {
    number_of(nanoseconds as f64 / 1e3, "µs")
}

fn number_of(number: f64, unit: &str) -> String {
    if number >= 9.95 {
        format!("{} {unit}", grouped(number.round() as u64))
    } else {
        format!("{number:.1} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_shares_and_times() {
        let scale = Scale { total: 200, interval_ns: 1_000_000, unit: Unit::Time };
        assert_eq!((scale.percent(50), scale.time(50)), ("25.0%".to_owned(), "50 ms".to_owned()));
        assert_eq!((scale.percent(0), scale.time(0)), (String::new(), String::new()));
        assert_eq!(scale.weight_of_percent(0.4), 1);
        assert!(Scale { total: 0, interval_ns: 1, unit: Unit::Time }.share(3).abs() < f64::EPSILON);
    }

    #[test]
    fn parts_of_a_short_trace_are_not_zero() {
        let scale = |total, interval_ns| Scale { total, interval_ns, unit: Unit::Time };
        assert_eq!([scale(90, 1000).time(1), scale(90, 1000).time(70)], ["1.0 µs", "70 µs"]);
        assert_eq!(scale(9_000, 1000).time(1_234), "1,234 µs");
        // A sampler's interval, and a whole of which most parts are worth showing in ms.
        assert_eq!([scale(2, 1_000_000).time(1), scale(10_000, 1000).time(60)], ["1.0 ms", "0.1 ms"]);
    }

    #[test]
    fn what_is_no_time_has_its_unit() {
        let scale = |unit| Scale { total: 200, interval_ns: 512, unit };
        assert_eq!(scale(Unit::Bytes).time(3), "1.5 kB");
        assert_eq!(scale(Unit::Count).time(3), "1,536");
        assert_eq!((bytes(1023), bytes(3 << 30)), ("1023 B".to_owned(), "3.0 GB".to_owned()));
    }

    #[test]
    fn short_times_have_a_decimal() {
        assert_eq!(milliseconds(500_000), "0.5 ms");
        assert_eq!(milliseconds(9_960_000), "10 ms");
        assert_eq!(milliseconds(1_234_567_890), "1,235 ms");
    }
}
