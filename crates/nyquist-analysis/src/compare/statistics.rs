//! The statistics that a comparison of recordings needs.

/// The probability that a normally distributed value is within `z` standard deviations of its mean.
///
/// The approximation of the error function by Abramowitz and Stegun, 7.1.26; its error is below 2e-7.
pub(crate) fn chance_within(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let polynomial = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592]
        .into_iter()
        .fold(0.0, |sum, coefficient| (sum + coefficient) * t);
    1.0 - polynomial * (-x * x).exp()
}

/// The number of standard deviations that is exceeded with a probability of `1 - chance`: the inverse of
/// [`chance_within`], by bisection.
pub(crate) fn deviations_for(chance: f64) -> f64 {
    let (mut low, mut high) = (0.0, 8.0);
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if chance_within(middle) < chance {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The normal deviation that is as likely as `t` in Student's distribution with that many degrees of freedom.
///
/// The approximation of D. L. Wallace, "Bounds on normal approximations to Student's and the chi-square
/// distributions", 1959. For a probability of 95 %, its error is below 0.03 from two degrees of freedom on, and
/// 0.12 for one.
pub(crate) fn normal_of_student(t: f64, freedom: f64) -> f64 {
    if !freedom.is_finite() {
        return t;
    }
    let z = (freedom * (1.0 + t * t / freedom).ln()).sqrt();
    t.signum() * z * (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0)
}

/// The inverse of [`normal_of_student`].
pub(crate) fn student_of_normal(z: f64, freedom: f64) -> f64 {
    if !freedom.is_finite() {
        return z;
    }
    let z = z * (8.0 * freedom + 3.0) / (8.0 * freedom + 1.0);
    (freedom * ((z * z / freedom).exp() - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution_is_that_of_the_tables() {
        for (z, chance) in
            [(0.0, 0.0), (1.0, 0.682_689), (1.959_964, 0.95), (2.575_829, 0.99), (-3.0, 0.9973)]
        {
            assert!((chance_within(z) - chance).abs() < 1e-6, "{z}");
        }
        assert!((deviations_for(0.99) - 2.575_829).abs() < 1e-4);
    }

    #[test]
    fn students_distribution_is_near_the_tables() {
        // The deviations that are exceeded with a probability of 5 %.
        for (t, freedom) in [(4.303, 2.0), (2.776, 4.0), (2.228, 10.0), (1.984, 100.0)] {
            assert!((normal_of_student(t, freedom) - 1.96).abs() < 0.03, "{freedom}");
            assert!((student_of_normal(normal_of_student(t, freedom), freedom) - t).abs() < 1e-9);
        }
        assert!((normal_of_student(12.706, 1.0) - 1.96).abs() < 0.12);
    }
}
