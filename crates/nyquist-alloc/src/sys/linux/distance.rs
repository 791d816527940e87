//! Distances between samples, in bytes: geometric, so that each byte is sampled with the same chance.

/// The next number of a thread's own sequence (xorshift64*). The state is never 0.
pub(super) fn next_random(state: &mut u64) -> u64 {
    let mut x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    x.wrapping_mul(0x2545_f491_4f6c_dd1d)
}

/// The distance to the next sample, if samples are `mean` bytes apart on average: at least 1.
pub(super) fn distance(mean: u64, random: u64) -> i64 {
    // 53 bits, of which none gives 0.
    let uniform = ((random >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    let distance = -natural_logarithm(uniform) * mean as f64;
    // The distance in whole bytes, rounded up. At most 37 times the mean.
    (distance as i64).saturating_add(1)
}

/// The natural logarithm of a positive number. `core` has none.
fn natural_logarithm(number: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    const ONE: u64 = 1023 << 52;
    let bits = number.to_bits();
    let exponent = (bits >> 52) as i64 - 1023;
    let mantissa = f64::from_bits(bits & MANTISSA | ONE);
    // ln(m) = 2 artanh((m - 1) / (m + 1)), of which the argument is at most 1/3.
    let x = (mantissa - 1.0) / (mantissa + 1.0);
    let square = x * x;
    let (mut sum, mut power, mut odd) = (0.0, x, 1.0);
    while odd < 31.0 {
        sum += power / odd;
        power *= square;
        odd += 2.0;
    }
    2.0 * sum + exponent as f64 * core::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_that_of_std() {
        for number in [1e-17, 0.1, 0.25, 0.5, 0.75, 0.999, 1.0, 2.5, 1e9] {
            let difference = natural_logarithm(number) - f64::ln(number);
            assert!(difference.abs() < 1e-12, "{number}: {difference}");
        }
    }

    #[test]
    fn distances_have_their_mean_and_no_memory() {
        let (mut state, mean, count) = (9, 1000, 200_000_u32);
        let distances: Vec<f64> =
            (0..count).map(|_| distance(mean, next_random(&mut state)) as f64).collect();
        let sum: f64 = distances.iter().sum();
        let error = mean as f64 / f64::from(count).sqrt();
        // Half a byte more, because distances are whole bytes.
        assert!((sum / f64::from(count) - mean as f64 - 0.5).abs() < 4.0 * error);
        let beyond = distances.iter().filter(|it| **it > 2000.0).count() as f64 / f64::from(count);
        assert!((beyond - (-2.0_f64).exp()).abs() < 0.004, "{beyond}");
    }
}
