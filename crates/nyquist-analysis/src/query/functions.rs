//! The table of functions with their self and total amounts.

use std::cmp::Reverse;

use crate::amount::Amount;
use crate::index::self_and_total::{self, SelfAndTotal};
use crate::parallel;
use crate::view::View;
use nyquist_profile::FuncId;

/// The functions of a profile, the one with the greatest self weight first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionTable<'a> {
    /// The sum of all samples, including those without a stack. Shares are relative to this.
    pub total: Amount,
    /// The functions that have samples. Those of equal self weight are ordered by total weight, then by name.
    pub functions: Vec<Function<'a>>,
}

/// A function and its amounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function<'a> {
    /// The function in the profile. An id beyond the profile's functions stands for a collapsed lib.
    pub func: FuncId,
    /// Its name.
    pub name: &'a str,
    /// The name of its lib.
    pub lib: Option<&'a str>,
    /// The file that it is defined in.
    pub file: Option<&'a str>,
    /// The line in that file where it begins.
    pub line: Option<u32>,
    /// Its self amount.
    pub self_amount: Amount,
    /// Its total amount. A sample counts once, even with recursion.
    pub total: Amount,
}

impl<'a> View<'a> {
    /// The self and total amounts of each function. O(nodes + functions × log functions).
    pub fn functions(&self) -> FunctionTable<'a> {
        let order = self.index.functions();
        let amounts = if self.derived.is_original() {
            order.keys.sum_up(self.node_sums())
        } else {
            let funcs = &self.forest().func;
            self_and_total::by_key(self.node_sums(), self.index.function_count(), |node| {
                Some(funcs[node] as usize)
            })
        };
        let sampled = amounts.iter().enumerate().filter(|(_, amounts)| !amounts.total.is_zero());
        let mut places: Vec<_> = sampled
            .map(|(func, SelfAndTotal { own, total })| {
                (Reverse((own.weight, total.weight)), order.rank[func], func as u32)
            })
            .collect();
        parallel::sort(&mut places);
        let row = |&(_, _, func): &(_, u32, u32)| {
            let SelfAndTotal { own, total } = amounts[func as usize];
            self.function_row(FuncId::from_index(func as usize), own, total)
        };
        FunctionTable {
            total: self.total(),
            functions: parallel::map(&places, parallel::ROWS_WORTH_SHARING, row),
        }
    }

    pub(crate) fn function_row(&self, func: FuncId, self_amount: Amount, total: Amount) -> Function<'a> {
        let info = self.function(func);
        Function {
            func,
            name: info.name,
            lib: info.lib,
            file: info.file,
            line: info.line,
            self_amount,
            total,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Index;
    use crate::selection::Selection;
    use crate::test_profile::TestProfile;

    /// Checks name, self weight and total weight of all functions.
    fn check(samples: &[(&str, u64)], expected: &[(&str, u64, u64)]) {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        for &(stack, weight) in samples {
            test.sample(stack, weight);
        }
        let profile = test.finish();
        let index = Index::new(&profile);
        let table = View::new(&index, &Selection::default()).functions();
        let rows = table.functions.iter();
        let rows: Vec<_> = rows.map(|row| (row.name, row.self_amount.weight, row.total.weight)).collect();
        assert_eq!(rows, expected, "{samples:?}");
        assert_eq!(table.total.weight, samples.iter().map(|&(_, weight)| weight).sum::<u64>());
    }

    #[test]
    fn self_is_the_leafs_and_total_is_every_callers() {
        check(
            &[("main a b", 1), ("main a", 2), ("main c", 1)],
            &[("a", 2, 3), ("b", 1, 1), ("c", 1, 1), ("main", 0, 4)],
        );
    }

    #[test]
    fn recursion_counts_once_a_sample() {
        check(&[("f f f", 1), ("f g f", 1), ("g f", 1)], &[("f", 3, 3), ("g", 0, 2)]);
        check(&[("f g f g", 5), ("h f", 1)], &[("g", 5, 5), ("f", 1, 6), ("h", 0, 1)]);
    }

    #[test]
    fn a_weight_counts_as_that_many_samples() {
        check(
            &[("main", 1), ("[kernel: not permitted]", 41)],
            &[("[kernel: not permitted]", 41, 41), ("main", 1, 1)],
        );
    }

    #[test]
    fn samples_without_stack_count_in_the_total_only() {
        check(&[("main", 1), ("", 3)], &[("main", 1, 1)]);
    }

    #[test]
    fn nothing_sampled_is_an_empty_table() {
        check(&[], &[]);
    }

    #[test]
    fn a_threads_first_sample_takes_its_weights_time() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        for stack in ["main a", "main a", "main"] {
            test.sample(stack, 1);
        }
        test.thread("1", "other");
        test.sample("b", 3);
        test.change_last(|sample| sample.cpu_delta = 77);
        let profile = test.finish();
        let index = Index::new(&profile);
        let table = View::new(&index, &Selection::default()).functions();
        let cpu: Vec<_> =
            table.functions.iter().map(|row| (row.self_amount.cpu_ns, row.total.cpu_ns)).collect();
        assert_eq!(cpu, [(3_000_000, 3_000_000), (2_000_000, 2_000_000), (1_000_000, 3_000_000)]);
        assert_eq!(table.total.cpu_ns, 6_000_000);
    }

    #[test]
    fn a_million_frames_do_not_overflow_the_stack() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        test.deep_sample("f", 1_000_000);
        let profile = test.finish();
        let index = Index::new(&profile);
        let table = View::new(&index, &Selection::default()).functions();
        assert_eq!((table.functions[0].self_amount.weight, table.functions[0].total.weight), (1, 1));
    }
}
