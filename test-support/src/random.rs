//! Numbers that are the same in every run.

/// A generator of pseudo-random numbers: splitmix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator whose numbers are determined by `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number from 0 to 1, without 1.
    pub fn unit(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number below `bound`. Small numbers are more frequent the greater `skew` is; 1 means no skew.
    pub fn below(&mut self, bound: usize, skew: f64) -> usize {
        ((self.unit().powf(skew) * bound as f64) as usize).min(bound.saturating_sub(1))
    }
}

/// A number that is determined by another and looks random.
pub fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
