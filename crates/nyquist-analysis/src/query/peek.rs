//! The callers of a function and the functions that it calls: pprof's `peek`.

use crate::amount::Amount;
use crate::index::forest::NONE;
use crate::index::self_and_total;
use crate::query::functions::Function;
use crate::view::View;
use nyquist_profile::FuncId;

/// A function with its callers and callees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peek<'a> {
    /// The function.
    pub function: Function<'a>,
    /// The total of calls of the function by caller, the greatest first. A stack with several such calls
    /// counts once.
    pub callers: Vec<Neighbour<'a>>,
    /// The total of the function's calls of others by callee, the greatest first.
    pub callees: Vec<Neighbour<'a>>,
}

/// A caller or a callee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour<'a> {
    /// The function; `None` if the function in question is the root of its stack.
    pub func: Option<FuncId>,
    /// Its name.
    pub name: Option<&'a str>,
    /// The name of its lib.
    pub lib: Option<&'a str>,
    /// The sum of the samples with the call.
    pub total: Amount,
}

impl<'a> View<'a> {
    /// The callers and callees of a function. O(nodes).
    pub fn peek(&self, func: FuncId) -> Peek<'a> {
        let forest = self.forest();
        let number = func.index() as u32;
        let is_it = |node: usize| forest.func[node] == number;
        let own = self_and_total::by_key(self.node_sums(), 1, |node| is_it(node).then_some(0));
        // The number after all functions stands for no caller.
        let count = self.index.function_count();
        let caller = |node: usize| match forest.parent[node] {
            NONE => count,
            parent => forest.func[parent as usize] as usize,
        };
        let callers =
            self_and_total::by_key(self.node_sums(), count + 1, |node| is_it(node).then(|| caller(node)));
        let callees = self_and_total::by_key(self.node_sums(), count, |node| {
            let parent = forest.parent[node];
            (parent != NONE && is_it(parent as usize)).then(|| forest.func[node] as usize)
        });
        Peek {
            function: self.function_row(func, own[0].own, own[0].total),
            callers: self.neighbours(&callers),
            callees: self.neighbours(&callees),
        }
    }

    fn neighbours(&self, amounts: &[self_and_total::SelfAndTotal]) -> Vec<Neighbour<'a>> {
        let called = amounts.iter().enumerate().filter(|(_, amounts)| !amounts.total.is_zero());
        let mut neighbours: Vec<_> = called
            .map(|(index, amounts)| {
                let func = Some(index).filter(|&index| index < self.index.function_count());
                let info = func.map(|index| self.function(FuncId::from_index(index)));
                Neighbour {
                    func: info.map(|info| info.func),
                    name: info.map(|info| info.name),
                    lib: info.and_then(|info| info.lib),
                    total: amounts.total,
                }
            })
            .collect();
        neighbours.sort_by(|a, b| b.total.cmp(&a.total).then_with(|| a.name.cmp(&b.name)));
        neighbours
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::Selection;
    use crate::test_profile::{TestProfile, func, with_view};

    fn check(samples: &[(&str, u64)], name: &str, callers: &[(&str, u64)], callees: &[(&str, u64)]) {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        for &(stack, weight) in samples {
            test.sample(stack, weight);
        }
        let profile = test.finish();
        with_view(&profile, &Selection::default(), |view| {
            let peek = view.peek(func(&profile, name));
            let rows = |rows: &[Neighbour<'_>]| {
                let rows = rows.iter().map(|row| (row.name.unwrap_or("").to_owned(), row.total.weight));
                rows.collect::<Vec<_>>()
            };
            let expected = |rows: &[(&str, u64)]| {
                rows.iter().map(|&(name, weight)| (name.to_owned(), weight)).collect::<Vec<_>>()
            };
            assert_eq!(rows(&peek.callers), expected(callers), "{samples:?}");
            assert_eq!(rows(&peek.callees), expected(callees), "{samples:?}");
        });
    }

    #[test]
    fn calls_are_summed_over_all_paths() {
        check(
            &[("A F X", 1), ("A F", 2), ("B F X", 4), ("F Y", 1)],
            "F",
            &[("B", 4), ("A", 3), ("", 1)],
            &[("X", 5), ("Y", 1)],
        );
    }

    #[test]
    fn a_call_that_a_stack_has_twice_counts_once() {
        check(&[("A F G A F G", 3)], "F", &[("A", 3)], &[("G", 3)]);
        check(&[("F F F X", 2)], "F", &[("", 2), ("F", 2)], &[("F", 2), ("X", 2)]);
    }
}
