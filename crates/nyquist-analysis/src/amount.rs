//! The amount of a profile that something accounts for.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use nyquist_profile::{Profile, UntimedSample};
use serde::Serialize;

/// The amount of a profile that something accounts for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Amount {
    /// The number of sampling intervals.
    pub weight: u64,
    /// The CPU time in ns; 0 if the profile has no CPU deltas.
    pub cpu_ns: u64,
}

impl Amount {
    /// The amount of a sample. A thread's first CPU delta has no meaning, because no sample precedes it. Its
    /// time follows from its weight instead.
    pub(crate) fn of_sample(profile: &Profile, sample: &UntimedSample, is_first: bool) -> Self {
        let weight = sample.weight;
        let cpu_ns = match profile.meta() {
            meta if !meta.has_cpu_deltas => 0,
            meta if is_first && !sample.off_cpu => weight.saturating_mul(meta.interval),
            _ if is_first => 0,
            _ => sample.cpu_delta,
        };
        Self { weight, cpu_ns }
    }

    /// Whether the amount is zero.
    pub fn is_zero(self) -> bool {
        self == Self::default()
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.weight = self.weight.saturating_add(other.weight);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
    }
}

impl Add for Amount {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl Sub for Amount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            weight: self.weight.saturating_sub(other.weight),
            cpu_ns: self.cpu_ns.saturating_sub(other.cpu_ns),
        }
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Add::add)
    }
}
