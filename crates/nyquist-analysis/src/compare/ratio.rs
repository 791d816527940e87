//! How often one event happened per occurrence of another, by function: misses per instruction, for
//! example, or faults per CPU time.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::compare::observations::{EventObservations, Observations};
use crate::index::function_info::FunctionInfo;
use crate::view::View;

/// With fewer observations than this of either event, a ratio is not reliable.
const MIN_OBSERVATIONS: f64 = 10.0;

/// A ratio with a greater relative standard error than this is only a hint.
const MAX_RELATIVE_ERROR: f64 = 0.3;

/// The amounts of two events, and their ratio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Ratio {
    /// The amount of the first event, in its own unit (occurrences, ns or bytes).
    pub count: f64,
    /// The amount of the second event.
    pub of: f64,
    /// The first divided by the second; `None` if there was none of the second.
    pub ratio: Option<f64>,
    /// The relative standard error of the ratio, computed from the numbers of observations. `None` without
    /// a ratio, or without observations of the first event.
    pub error: Option<f64>,
    /// Whether there are too few observations for a reliable ratio.
    pub is_uncertain: bool,
}

/// The ratios of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionRatio<'a> {
    /// The function, in the first view that has it.
    pub function: FunctionInfo<'a>,
    /// The ratio of its self amounts.
    pub self_ratio: Ratio,
    /// The ratio of its total amounts.
    pub total: Ratio,
}

/// The ratios of all functions.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratios<'a> {
    /// The ratio of the totals of both views.
    pub whole: Ratio,
    /// The functions of both views, the one with the greatest self amount of the first event first.
    pub functions: Vec<FunctionRatio<'a>>,
}

impl Ratio {
    /// Computes the ratio of two observed amounts, of which a weight of 1 stands for `units` each.
    pub(crate) fn of_observed(observed: [EventObservations; 2], units: [u64; 2]) -> Self {
        let [count, of] = [0, 1].map(|side| observed[side].weight as f64 * units[side] as f64);
        let [count_number, of_number] = observed.map(EventObservations::effective_number);
        let ratio = (of > 0.0).then(|| count / of);
        // The numbers of observations are Poisson-distributed, and independent of each other.
        let error = (count_number > 0.0 && of_number > 0.0)
            .then(|| (count_number.recip() + of_number.recip()).sqrt());
        // Without observations of the first event, the number of the second decides whether the ratio is
        // certain.
        let is_uncertain =
            of_number < MIN_OBSERVATIONS || error.is_some_and(|error| error > MAX_RELATIVE_ERROR);
        Self { count, of, ratio, error, is_uncertain }
    }
}

/// The self and total observations of both events in a function.
#[derive(Default)]
struct Pair {
    own: [EventObservations; 2],
    total: [EventObservations; 2],
}

/// The ratios of the functions of two views. Functions are the same if they have the same name, lib and file,
/// because the views may be of separately read profiles. O(samples + nodes + functions × log functions).
pub fn ratios<'a>(counted: &View<'a>, of: &View<'a>) -> Ratios<'a> {
    let units = [counted, of].map(|view| view.profile().meta().interval.max(1));
    let mut places: FxHashMap<_, usize> = FxHashMap::default();
    let mut rows: Vec<(FunctionInfo<'a>, Pair)> = Vec::new();
    let mut whole = [EventObservations::default(); 2];
    for (side, view) in [counted, of].into_iter().enumerate() {
        let Observations { all, functions } = Observations::of(view);
        whole[side] = all;
        for (func, own, total) in functions {
            let function = view.function(func);
            let place = *places.entry((function.name, function.lib, function.file)).or_insert_with(|| {
                rows.push((function, Pair::default()));
                rows.len() - 1
            });
            let pair = &mut rows[place].1;
            pair.own[side].add(own);
            pair.total[side].add(total);
        }
    }
    let mut functions: Vec<_> = rows
        .into_iter()
        .map(|(function, Pair { own, total })| FunctionRatio {
            function,
            self_ratio: Ratio::of_observed(own, units),
            total: Ratio::of_observed(total, units),
        })
        .collect();
    functions.sort_by(|one, other| {
        let key = |row: &FunctionRatio<'_>| {
            [row.self_ratio.count, row.total.count, row.self_ratio.of, row.total.of]
        };
        let name = |row: &FunctionRatio<'a>| (row.function.name, row.function.lib, row.function.file);
        let by_name = || name(one).cmp(&name(other));
        key(other).partial_cmp(&key(one)).unwrap_or(std::cmp::Ordering::Equal).then_with(by_name)
    });
    Ratios { whole: Ratio::of_observed(whole, units), functions }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Index;
    use crate::selection::Selection;
    use crate::test_profile::TestProfile;

    fn profile(samples: &[(&str, u64)]) -> nyquist_profile::Profile {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        for &(stack, weight) in samples {
            test.sample(stack, weight);
        }
        test.finish()
    }

    /// For each function its name, its self counts of both events, and whether their ratio is uncertain.
    fn rows(counted: &[(&str, u64)], of: &[(&str, u64)]) -> Vec<(String, f64, f64, bool)> {
        let (counted, of) = (profile(counted), profile(of));
        let (counted, of) = (Index::new(&counted), Index::new(&of));
        let all = Selection::default();
        let found = ratios(&View::new(&counted, &all), &View::new(&of, &all));
        let row = |row: &FunctionRatio<'_>| {
            let Ratio { count, of, is_uncertain, .. } = row.self_ratio;
            (row.function.name.to_owned(), count / 1e6, of / 1e6, is_uncertain)
        };
        found.functions.iter().map(row).collect()
    }

    #[test]
    fn functions_of_both_events_are_one_row() {
        let often = vec![("main a", 1); 40];
        let counted = [&often[..], &[("main b", 2), ("main", 1)]].concat();
        let of = [&often[..], &often[..], &[("main c", 1)]].concat();
        let expected = [
            ("a".to_owned(), 40.0, 80.0, false),
            ("b".to_owned(), 2.0, 0.0, true),
            ("main".to_owned(), 1.0, 0.0, true),
            ("c".to_owned(), 0.0, 1.0, true),
        ];
        assert_eq!(rows(&counted, &of), expected);
    }

    #[test]
    fn the_whole_and_the_totals_have_ratios() {
        let (counted, of) = (profile(&[("main a", 3), ("main", 1), ("", 4)]), profile(&[("main a", 8)]));
        let (counted, of) = (Index::new(&counted), Index::new(&of));
        let all = Selection::default();
        let found = ratios(&View::new(&counted, &all), &View::new(&of, &all));
        assert_eq!((found.whole.count, found.whole.of, found.whole.ratio), (8e6, 8e6, Some(1.0)));
        let main = found.functions.iter().find(|row| row.function.name == "main").unwrap();
        assert_eq!((main.self_ratio.ratio, main.total.ratio), (None, Some(0.5)));
    }

    #[test]
    fn errors_follow_from_the_observations() {
        let observed = |number: u64, each: u64| EventObservations {
            weight: number * each,
            squares: number * each * each,
        };
        // 100 observations on either side have a standard error of 10 % each, whatever their weight.
        let ratio = Ratio::of_observed([observed(100, 7), observed(100, 1)], [1, 1000]);
        assert_eq!((ratio.count, ratio.of), (700.0, 100_000.0));
        assert!((ratio.error.unwrap() - 0.02_f64.sqrt()).abs() < 1e-12);
        assert!(!ratio.is_uncertain);
        // One observation with a large weight is still one observation.
        assert!(Ratio::of_observed([observed(1, 1000), observed(100, 1)], [1, 1]).is_uncertain);
        assert!(Ratio::of_observed([observed(1000, 1), observed(9, 100)], [1, 1]).is_uncertain);
        // No observation of the first event among many of the second is a certain zero.
        let none = Ratio::of_observed([EventObservations::default(), observed(100, 1)], [1, 1]);
        assert_eq!((none.ratio, none.error, none.is_uncertain), (Some(0.0), None, false));
        let neither = Ratio::of_observed([EventObservations::default(); 2], [1, 1]);
        assert_eq!((neither.ratio, neither.error, neither.is_uncertain), (None, None, true));
    }
}
