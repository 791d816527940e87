//! Whether something became slower by more than is accepted.

use super::amounts::relative;
use crate::number::percent;
use crate::text::Names;
use nyquist_analysis::{Comparison, Diff, DiffUnit, FunctionDiff};

/// The least share of the whole at which a function can make a check fail.
const MIN_SHARE: f64 = 0.01;

/// The number of functions that a failed check names.
const NAMED: usize = 3;

/// What became slower than is accepted.
pub(super) struct Verdict<'d, 'a> {
    /// The accepted change, as a share.
    pub(super) accepted: f64,
    /// The functions beyond it.
    pub(super) slower: Vec<&'d FunctionDiff<'a>>,
    /// Whether the whole is beyond it.
    pub(super) whole_is_slower: bool,
    whole: Comparison,
}

impl<'d, 'a> Verdict<'d, 'a> {
    /// The verdict on a comparison.
    pub(super) fn of(diff: &'d Diff<'a>, accepted: f64) -> Self {
        let whole = whole_after(diff);
        let counts = |function: &&FunctionDiff<'_>| {
            is_slower(&function.self_time, accepted) && function.self_time.after >= whole * MIN_SHARE
        };
        Self {
            accepted,
            slower: diff.functions.iter().filter(counts).collect(),
            whole_is_slower: diff.unit != DiffUnit::Share && is_slower(&diff.total, accepted),
            whole: diff.total,
        }
    }

    /// Whether nothing became slower than is accepted.
    pub(super) fn passed(&self) -> bool {
        self.slower.is_empty() && !self.whole_is_slower
    }

    /// The sentence about what became slower.
    pub(super) fn failure(&self, names: Names) -> Option<String> {
        if self.passed() {
            return None;
        }
        let named = |function: &&FunctionDiff<'_>| {
            format!("{} ({})", names.show(&function.name), relative(&function.self_time))
        };
        let mut what: Vec<_> = self.slower.iter().take(NAMED).map(named).collect();
        if self.slower.len() > NAMED {
            what.push(format!("{} more", self.slower.len() - NAMED));
        }
        if self.slower.is_empty() {
            what.push(format!("the whole ({})", relative(&self.whole)));
        }
        Some(format!("slower by more than {}: {}", percent(self.accepted), what.join(", ")))
    }
}

fn is_slower(comparison: &Comparison, accepted: f64) -> bool {
    // A function that did not exist before has grown by an infinite share.
    comparison.change > 0.0
        && !comparison.is_noise
        && comparison.relative.is_none_or(|share| share > accepted)
}

/// The whole weight after, in the unit of the functions.
fn whole_after(diff: &Diff<'_>) -> f64 {
    match diff.unit {
        DiffUnit::Nanoseconds => diff.total.after,
        DiffUnit::Share => 1.0,
    }
}
