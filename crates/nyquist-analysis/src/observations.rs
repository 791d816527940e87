//! What was observed in each function, with the squares of the weights, from which the statistical error follows.

use nyquist_profile::FuncId;

use crate::amount::Amount;
use crate::node_sums::NodeSums;
use crate::self_and_total;
use crate::sums::{self, Sums};
use crate::view::View;

/// What was observed of an event: its amount in sampling intervals, and the sum of the squares of the observations' weights.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Observed {
    pub(crate) weight: u64,
    pub(crate) squares: u64,
}

impl Observed {
    pub(crate) fn add(&mut self, other: Self) {
        self.weight = self.weight.saturating_add(other.weight);
        self.squares = self.squares.saturating_add(other.squares);
    }

    /// How many observations of equal weight are as uncertain as these (L. Kish, "Survey Sampling", 1965, 11.7).
    pub(crate) fn effective_number(self) -> f64 {
        if self.squares == 0 { 0.0 } else { (self.weight as f64).powi(2) / self.squares as f64 }
    }
}

/// What a view has of an event: in all, and by function.
pub(crate) struct Observations {
    pub(crate) all: Observed,
    /// The functions that have any: what they have in their own code, and with what they call.
    pub(crate) functions: Vec<(FuncId, Observed, Observed)>,
}

impl Observations {
    /// O(samples + nodes + functions).
    pub(crate) fn of(view: &View<'_>) -> Self {
        let squares = squares(view);
        let stackless = squares.stackless;
        let running = sums::running(squares.own);
        let in_stacks = running.last().copied().unwrap_or_default();
        let weights = by_function(view, view.node_sums());
        let squares = by_function(view, NodeSums::new(view.forest(), &running));
        let functions = weights.into_iter().zip(squares).enumerate();
        let functions =
            functions.filter(|(_, ((_, total), _))| *total > 0).map(|(func, (weight, squares))| {
                let observed = |weight, squares| Observed { weight, squares };
                (FuncId::from_index(func), observed(weight.0, squares.0), observed(weight.1, squares.1))
            });
        let all = Observed { weight: view.total().weight, squares: (in_stacks + stackless).weight };
        Self { all, functions: functions.collect() }
    }
}

/// The squares of the weights of all samples, summed up by node.
fn squares(view: &View<'_>) -> Sums {
    let mut squares = Sums::new(view.forest().len());
    for &thread in &*view.chosen.threads {
        for (chosen, node) in view.samples_of(thread) {
            let weight = chosen.amount.weight;
            squares.add(node, Amount { weight: weight.saturating_mul(weight), cpu_ns: 0 });
        }
    }
    squares
}

/// The weight of each function in its own code and with what it calls.
fn by_function(view: &View<'_>, sums: NodeSums<'_>) -> Vec<(u64, u64)> {
    let funcs = &view.forest().func;
    let amounts =
        self_and_total::by_key(sums, view.index.function_count(), |node| Some(funcs[node] as usize));
    amounts.into_iter().map(|amounts| (amounts.own.weight, amounts.total.weight)).collect()
}
