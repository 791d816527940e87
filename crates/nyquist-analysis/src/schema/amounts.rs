//! What functions, lines, threads and the like take of the whole.

use nyquist_profile::Unit;
use serde::Serialize;

use crate::view::View;

/// What the amounts of an answer are parts of, and their unit
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Whole {
    /// The weight of all selected samples; shares are shares of this
    pub weight: u64,
    /// The sampling interval: a weight of 1 stands for so much CPU time, or for so many of the `unit`
    pub interval_ns: u64,
    /// The unit of amounts: `ns`, `bytes` or `count`
    pub unit: &'static str,
    /// The mean distance of samples that were chosen by chance, in bytes.
    #[serde(skip)]
    sample_distance: Option<u64>,
}

/// What an item takes in its own code, and with what it calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Amounts {
    /// The weight in its own code
    #[serde(rename = "self")]
    pub self_weight: u64,
    /// The weight with what it calls; recursion counts once
    pub total: u64,
    /// `self` as a share of the whole, from 0 to 1
    pub self_share: f64,
    /// `total` as a share of the whole
    pub total_share: f64,
    /// `self` in the `unit` of the answer: ns for times
    pub self_amount: u64,
    /// `total` in the `unit` of the answer
    pub total_amount: u64,
}

/// What an item takes that is no code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Totals {
    /// The weight of its samples
    pub total: u64,
    /// `total` as a share of the whole, from 0 to 1
    pub total_share: f64,
    /// `total` in the `unit` of the answer: ns for times
    pub total_amount: u64,
}

impl Whole {
    /// The whole of a view.
    pub fn of(view: &View<'_>) -> Self {
        let meta = view.profile().meta();
        let sample_distance = meta.sample_distance.filter(|_| meta.measure.unit == Unit::Bytes);
        Self {
            weight: view.total().weight,
            interval_ns: meta.interval,
            unit: meta.measure.unit.as_str(),
            sample_distance,
        }
    }

    /// A weight as a share of the whole.
    pub fn share(self, weight: u64) -> f64 {
        if self.weight == 0 { 0.0 } else { weight as f64 / self.weight as f64 }
    }

    /// A weight in the unit.
    pub fn amount(self, weight: u64) -> u64 {
        weight.saturating_mul(self.interval_ns)
    }

    /// The amounts of two weights: that of its own code, and that with what it calls.
    pub fn amounts(self, own: u64, total: u64) -> Amounts {
        Amounts {
            self_weight: own,
            total,
            self_share: self.share(own),
            total_share: self.share(total),
            self_amount: self.amount(own),
            total_amount: self.amount(total),
        }
    }

    /// The amounts of a weight.
    pub fn totals(self, total: u64) -> Totals {
        Totals { total, total_share: self.share(total), total_amount: self.amount(total) }
    }

    /// The most that the standard error of a weight can be, if samples are allocations that were chosen by chance:
    /// blocks as small as the distance of samples or smaller have this error, and larger ones less.
    pub fn standard_error(self, weight: u64) -> Option<f64> {
        Some((self.sample_distance? as f64 * self.amount(weight) as f64).sqrt())
    }
}
