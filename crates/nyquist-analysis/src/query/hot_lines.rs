//! The hottest source line of each function.

use std::cmp::Reverse;

use nyquist_profile::{FuncId, Profile, StackId};
use rustc_hash::FxHashMap;

use crate::query::places::PlaceWeight;
use crate::view::View;

impl View<'_> {
    /// For each function that has lines in its own file, the line with the greatest self weight, or else with
    /// the greatest total weight. It uses the stacks before filters and transforms. O(samples + stacks).
    pub fn hottest_lines(&self) -> FxHashMap<FuncId, u32> {
        let profile = self.profile();
        let mut hottest: FxHashMap<FuncId, (PlaceWeight, u32)> = FxHashMap::default();
        for ((func, line), weight) in line_weights(profile, stack_weights(self)) {
            let key = |weight: PlaceWeight, line| (weight.own, weight.total, Reverse(line));
            let best = hottest.entry(func).or_insert((weight, line));
            if key(weight, line) > key(best.0, best.1) {
                *best = (weight, line);
            }
        }
        hottest.into_iter().map(|(func, (_, line))| (func, line)).collect()
    }
}

/// The self and total weight of each stack.
fn stack_weights(view: &View<'_>) -> Vec<PlaceWeight> {
    let profile = view.profile();
    let mut weights = vec![PlaceWeight::default(); profile.stacks().len()];
    for sample in view.samples() {
        if let Some(stack) = sample.sample.stack {
            let own = &mut weights[stack.index()].own;
            *own = own.saturating_add(sample.amount.weight);
        }
    }
    // Callers precede what they call.
    for (index, stack) in profile.stacks().iter().enumerate().rev() {
        let weight = &mut weights[index];
        weight.total = weight.total.saturating_add(weight.own);
        let total = weight.total;
        if let Some(prefix) = stack.prefix {
            let caller = &mut weights[prefix.index()].total;
            *caller = caller.saturating_add(total);
        }
    }
    weights
}

/// The weights of the lines of functions. In a recursion, a line has the weight of each call.
fn line_weights(profile: &Profile, stacks: Vec<PlaceWeight>) -> FxHashMap<(FuncId, u32), PlaceWeight> {
    let mut lines: FxHashMap<(FuncId, u32), PlaceWeight> = FxHashMap::default();
    for (index, weight) in stacks.into_iter().enumerate().filter(|(_, weight)| weight.total > 0) {
        let frame = profile.frame(profile.stack(StackId::from_index(index)).frame);
        let is_in_own_file = profile.frame_source(frame) == profile.func(frame.func).source;
        if let Some(line) = profile.frame_line(frame).filter(|_| is_in_own_file) {
            let sum = lines.entry((frame.func, line)).or_default();
            sum.own = sum.own.saturating_add(weight.own);
            sum.total = sum.total.saturating_add(weight.total);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Index;
    use crate::selection::Selection;
    use crate::test_profile::TestProfile;

    /// Checks the lines of functions, ordered by name.
    fn check(samples: &[(&str, u64)], expected: &[(&str, u32)]) {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        for &(stack, weight) in samples {
            test.sample(stack, weight);
        }
        let profile = test.finish();
        let index = Index::new(&profile);
        let lines = View::new(&index, &Selection::default()).hottest_lines();
        let mut lines: Vec<_> = lines.iter().map(|(func, line)| (profile.func_name(*func), *line)).collect();
        lines.sort_unstable();
        assert_eq!(lines, expected);
    }

    #[test]
    fn self_weight_decides_before_total_weight() {
        check(&[("main#1 f#7", 9), ("main#2", 1)], &[("f", 7), ("main", 2)]);
        check(&[("main#1 f#7", 2), ("main#2 f#8", 3), ("main#2 f#8", 1)], &[("f", 8), ("main", 2)]);
    }

    #[test]
    fn of_equal_lines_the_first_is_taken() {
        check(&[("f#9", 1), ("f#8", 1)], &[("f", 8)]);
    }

    #[test]
    fn a_function_without_lines_has_none() {
        check(&[("main f", 1), ("g#3 f", 1)], &[("g", 3)]);
    }
}
