//! The table of functions: what each takes itself and with its callees.

use nyquist_profile::{FuncId, Profile};
use serde::Serialize;

use crate::filter::Filter;
use crate::stack_sums::{Amount, StackSums, add_descendants};

/// The functions of a profile, the one with the greatest self weight first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FunctionTable {
    /// What all samples sum to, those without a stack too. Shares are shares of this.
    pub total: Amount,
    /// The functions that have samples. Those of equal self weight are ordered by total weight, then by name.
    pub functions: Vec<Function>,
}

/// A function and what it takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Function {
    /// The function in the profile.
    pub func: FuncId,
    /// Its name.
    pub name: String,
    /// The name of its lib.
    pub lib: Option<String>,
    /// The file that it is defined in.
    pub file: Option<String>,
    /// The line in that file where it begins.
    pub line: Option<u32>,
    /// What it takes itself.
    #[serde(rename = "self")]
    pub self_amount: Amount,
    /// What it takes with its callees. A recursive function counts once a sample.
    pub total: Amount,
}

/// What each function takes, itself and with its callees. O(samples + stacks + functions × log functions).
pub fn functions(profile: &Profile, filter: &Filter) -> FunctionTable {
    let sums = StackSums::new(profile, filter.select(profile));
    let total = sums.total();
    let own = self_amounts(profile, &sums.by_stack);
    let totals = total_amounts(profile, sums.by_stack);
    let rows = totals.iter().zip(&own).enumerate().filter(|(_, (total, _))| **total != Amount::default());
    let mut functions: Vec<_> = rows
        .map(|(index, (&total, &own))| describe(profile, FuncId::from_index(index), own, total))
        .collect();
    functions.sort_by(|a, b| {
        let weights = (b.self_amount.weight, b.total.weight).cmp(&(a.self_amount.weight, a.total.weight));
        weights.then_with(|| a.name.cmp(&b.name)).then_with(|| a.func.cmp(&b.func))
    });
    FunctionTable { total, functions }
}

/// What the innermost frames of the stacks take, by function.
fn self_amounts(profile: &Profile, by_stack: &[Amount]) -> Vec<Amount> {
    let mut amounts = vec![Amount::default(); profile.funcs().len()];
    for (stack, &amount) in profile.stacks().iter().zip(by_stack) {
        amounts[profile.frame(stack.frame).func.index()] += amount;
    }
    amounts
}

/// What all frames of the stacks take, by function. A function's total is the sum over its outermost stacks:
/// below those it is recursion, and counted already.
fn total_amounts(profile: &Profile, mut by_stack: Vec<Amount>) -> Vec<Amount> {
    add_descendants(profile, &mut by_stack);
    let is_recursive = recursive_stacks(profile);
    let mut amounts = vec![Amount::default(); profile.funcs().len()];
    for ((stack, amount), is_recursive) in profile.stacks().iter().zip(by_stack).zip(is_recursive) {
        if !is_recursive {
            amounts[profile.frame(stack.frame).func.index()] += amount;
        }
    }
    amounts
}

/// Which stacks have their function once more among their ancestors. The tree is walked in depth-first order
/// with, for each function, how many of its frames are on the path. O(stacks + functions), whatever the
/// depth.
fn recursive_stacks(profile: &Profile) -> Vec<bool> {
    let mut is_recursive = vec![false; profile.stacks().len()];
    let mut on_path = vec![0_u32; profile.funcs().len()];
    let func = |stack: usize| profile.frame(profile.stacks()[stack].frame).func.index();
    let children = Children::new(profile);
    let mut path: Vec<(usize, Option<u32>)> = Vec::new();
    let mut next = children.first_root;
    loop {
        // Down as far as there are children, then back to the nearest stack with a sibling.
        if let Some(stack) = next {
            let stack = stack as usize;
            is_recursive[stack] = on_path[func(stack)] > 0;
            on_path[func(stack)] += 1;
            path.push((stack, children.next_sibling[stack]));
            next = children.first_child[stack];
        } else if let Some((stack, sibling)) = path.pop() {
            on_path[func(stack)] -= 1;
            next = sibling;
        } else {
            return is_recursive;
        }
    }
}

/// The tree of stacks, downwards.
struct Children {
    first_root: Option<u32>,
    first_child: Vec<Option<u32>>,
    next_sibling: Vec<Option<u32>>,
}

impl Children {
    fn new(profile: &Profile) -> Self {
        let count = profile.stacks().len();
        let mut tree =
            Self { first_root: None, first_child: vec![None; count], next_sibling: vec![None; count] };
        for (index, stack) in profile.stacks().iter().enumerate().rev() {
            let first = match stack.prefix {
                Some(prefix) => &mut tree.first_child[prefix.index()],
                None => &mut tree.first_root,
            };
            tree.next_sibling[index] = first.replace(index as u32);
        }
        tree
    }
}

fn describe(profile: &Profile, id: FuncId, self_amount: Amount, total: Amount) -> Function {
    let func = profile.func(id);
    Function {
        func: id,
        name: profile.string(func.name).to_owned(),
        lib: func.lib.map(|lib| profile.lib(lib).name.clone()),
        file: func.source.map(|source| profile.string(profile.source(source).filename).to_owned()),
        line: func.line,
        self_amount,
        total,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::TestProfile;

    /// Checks name, self weight and total weight of all functions.
    fn check(samples: &[(&str, u32)], expected: &[(&str, u64, u64)]) {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        for &(stack, weight) in samples {
            test.sample(stack, weight);
        }
        let table = functions(&test.finish(), &Filter::default());
        let rows = table.functions.iter();
        let rows: Vec<_> =
            rows.map(|row| (row.name.as_str(), row.self_amount.weight, row.total.weight)).collect();
        assert_eq!(rows, expected, "{samples:?}");
        assert_eq!(table.total.weight, samples.iter().map(|&(_, weight)| u64::from(weight)).sum::<u64>());
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
    fn samples_without_a_stack_count_in_the_total_alone() {
        check(&[("main", 1), ("", 3)], &[("main", 1, 1)]);
    }

    #[test]
    fn nothing_sampled_is_an_empty_table() {
        check(&[], &[]);
    }

    #[test]
    fn cpu_time_is_summed_without_the_first_delta_of_a_thread() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        for stack in ["main a", "main a", "main"] {
            test.sample(stack, 1);
        }
        let table = functions(&test.finish(), &Filter::default());
        let cpu: Vec<_> =
            table.functions.iter().map(|row| (row.self_amount.cpu_ns, row.total.cpu_ns)).collect();
        assert_eq!(cpu, [(1_000_000, 1_000_000), (1_000_000, 2_000_000)]);
        assert_eq!(table.total.cpu_ns, 2_000_000);
    }

    #[test]
    fn a_filter_leaves_other_threads_out() {
        let mut test = TestProfile::new();
        test.thread("1", "a");
        test.sample("x", 1);
        test.thread("2", "b");
        test.sample("y", 1);
        let filter =
            Filter { threads: vec![nyquist_profile::ThreadIndex::from_index(1)], ..Filter::default() };
        let table = functions(&test.finish(), &filter);
        assert_eq!(table.functions.len(), 1);
        assert_eq!(table.functions[0].name, "y");
        assert_eq!(table.total.weight, 1);
    }

    #[test]
    fn a_stack_a_million_frames_deep_is_no_danger() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        test.deep_sample("f", 1_000_000);
        let table = functions(&test.finish(), &Filter::default());
        assert_eq!((table.functions[0].self_amount.weight, table.functions[0].total.weight), (1, 1));
    }
}
