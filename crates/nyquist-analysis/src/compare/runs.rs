//! The measurements of several runs of a program: mean and spread, and whether two programs differ
//! significantly.

use crate::compare::statistics::{deviations_for, student_of_normal};

/// The values of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunSpread {
    /// The number of runs.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// The standard deviation of a run, estimated from these (with `count - 1`); 0 for one run.
    pub deviation: f64,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
}

impl RunSpread {
    /// The spread of these values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len();
        if count == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Self { count, mean, deviation, min, max })
    }

    /// The deviation relative to the mean; `None` for one run, or if the mean is 0.
    pub fn relative_deviation(&self) -> Option<f64> {
        (self.count > 1 && self.mean != 0.0).then(|| self.deviation / self.mean.abs())
    }

    /// The squared standard error of the mean.
    fn error_squared(&self) -> f64 {
        self.deviation.powi(2) / self.count as f64
    }
}

/// The difference between the means of two programs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanChange {
    /// The later mean minus the earlier one.
    pub difference: f64,
    /// Half the width of the difference's confidence interval; `None` if a side has only one run.
    pub margin: Option<f64>,
    /// The difference relative to the earlier mean; `None` if that is 0.
    pub relative: Option<f64>,
}

impl MeanChange {
    /// Compares the runs of two programs, with a confidence such as 0.95. It uses Welch's t interval,
    /// which assumes neither equal deviations nor equal numbers of runs (B. L. Welch, "The generalization
    /// of Student's problem when several different population variances are involved", 1947).
    pub fn between(before: &RunSpread, after: &RunSpread, confidence: f64) -> Self {
        let difference = after.mean - before.mean;
        let has_spread = before.count > 1 && after.count > 1;
        Self {
            difference,
            margin: has_spread.then(|| margin(before, after, confidence)),
            relative: (before.mean != 0.0).then(|| difference / before.mean.abs()),
        }
    }

    /// Whether the difference is significant: its confidence interval does not include 0.
    pub fn is_significant(&self) -> bool {
        self.margin.is_some_and(|margin| self.difference.abs() > margin)
    }
}

fn margin(before: &RunSpread, after: &RunSpread, confidence: f64) -> f64 {
    let (one, other) = (before.error_squared(), after.error_squared());
    let variance = one + other;
    if variance == 0.0 {
        return 0.0;
    }
    let parts = one.powi(2) / (before.count - 1) as f64 + other.powi(2) / (after.count - 1) as f64;
    let freedom = variance.powi(2) / parts;
    student_of_normal(deviations_for(confidence), freedom) * variance.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_a_mean_and_a_deviation() {
        let spread = RunSpread::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert!((spread.mean - 5.0).abs() < 1e-9 && (spread.deviation - 2.138_09).abs() < 1e-4, "{spread:?}");
        assert_eq!((spread.min, spread.max, spread.count), (2.0, 9.0, 8));
        assert_eq!(RunSpread::of(&[3.0]).unwrap().relative_deviation(), None);
        assert_eq!(RunSpread::of(&[]), None);
    }

    /// The worked example of Wikipedia's "Student's t-test": a standard error of 0.0485 with 7.03 degrees of
    /// freedom. A difference exceeds 2.363 standard errors with a probability of 5 %.
    #[test]
    fn the_interval_is_welchs() {
        let before = RunSpread::of(&[29.89, 29.93, 29.72, 29.98, 30.02, 29.98]).unwrap();
        let after = RunSpread::of(&[30.02, 29.99, 30.11, 29.97, 30.01, 29.99]).unwrap();
        let change = MeanChange::between(&before, &after, 0.95);
        let margin = change.margin.unwrap();
        assert!((change.difference - 0.095).abs() < 1e-9, "{change:?}");
        assert!((margin - 0.1146).abs() < 0.001 && !change.is_significant(), "{change:?}");
    }

    #[test]
    fn a_difference_beyond_the_spread_is_significant() {
        let spread = |values: &[f64]| RunSpread::of(values).unwrap();
        let (slow, fast) = (spread(&[10.0, 10.1, 9.9]), spread(&[8.0, 8.1, 7.9]));
        let change = MeanChange::between(&slow, &fast, 0.95);
        assert!(change.is_significant() && (change.relative.unwrap() + 0.2).abs() < 1e-9, "{change:?}");
        assert!(!MeanChange::between(&slow, &spread(&[1.0]), 0.95).is_significant());
        assert!(!MeanChange::between(&slow, &slow, 0.95).is_significant());
        assert!(MeanChange::between(&spread(&[1.0, 1.0]), &spread(&[2.0, 2.0]), 0.95).is_significant());
    }
}
