//! Random numbers, so that no measurement is in step with a program.

/// Marsaglia's xorshift64 (Journal of Statistical Software 8, 14). It is predictable.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Starts from any number, such as the time.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// A number from 0 to 1, excluding 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number below another one.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        (self.fraction() * end as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn all_parts_are_as_frequent() {
        let mut random = Random::new(12_345);
        let mut counts = [0; 4];
        for _ in 0..4000 {
            counts[random.below(4) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
    }
}
