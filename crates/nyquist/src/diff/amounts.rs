//! Amounts and changes of a comparison as text.

use crate::number::percent;
use crate::scale::amount;
use nyquist_analysis::{Comparison, Diff, DiffUnit};
use nyquist_profile::{Measure, Unit};

/// A change as a share of the value before, with its sign.
pub(super) fn relative(comparison: &Comparison) -> String {
    match comparison.relative {
        Some(share) => format!("{:+.1}%", share * 100.0),
        None if comparison.after > 0.0 => "new".to_owned(),
        None => "+0.0%".to_owned(),
    }
}

/// The form of values.
#[derive(Clone, Copy)]
pub(super) enum ValueForm {
    /// Amounts of the events that the profiles count.
    Amounts(Unit),
    Shares,
}

impl ValueForm {
    pub(super) fn of(diff: &Diff<'_>, measure: &Measure) -> Self {
        match diff.unit {
            DiffUnit::Nanoseconds => Self::Amounts(measure.unit),
            DiffUnit::Share => Self::Shares,
        }
    }

    /// A value in its unit.
    pub(super) fn value(self, value: f64) -> String {
        match self {
            Self::Amounts(unit) => amount(unit, value.abs() as u64),
            Self::Shares => percent(value.abs()),
        }
    }

    /// A change in the values' unit, with its sign.
    pub(super) fn change(self, change: f64) -> String {
        format!("{}{}", if change < 0.0 { '-' } else { '+' }, self.value(change))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_a_sign_and_a_unit() {
        let check = |shown: ValueForm, number, expected| assert_eq!(shown.change(number), expected);
        check(ValueForm::Amounts(Unit::Time), 12_400_000.0, "+12 ms");
        check(ValueForm::Amounts(Unit::Time), -1_240_000.0, "-1.2 ms");
        check(ValueForm::Amounts(Unit::Count), 3000.0, "+3,000");
        check(ValueForm::Amounts(Unit::Bytes), -2048.0, "-2.0 kB");
        check(ValueForm::Shares, -0.012, "-1.2%");
    }
}
