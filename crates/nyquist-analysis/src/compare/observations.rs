//! The observations in each function, with the squares of their weights, which give the statistical error.

use nyquist_profile::FuncId;

use crate::amount::Amount;
use crate::index::node_sums::NodeSums;
use crate::index::self_and_total;
use crate::index::sums::{self, SampleSums};
use crate::view::View;

/// The observations of an event: their amount in sampling intervals, and the sum of the squares of their
/// weights.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EventObservations {
    pub(crate) weight: u64,
    pub(crate) squares: u64,
}

impl EventObservations {
    pub(crate) fn add(&mut self, other: Self) {
        self.weight = self.weight.saturating_add(other.weight);
        self.squares = self.squares.saturating_add(other.squares);
    }

    /// The number of observations of equal weight with the same uncertainty (L. Kish, "Survey Sampling",
    /// 1965, 11.7).
    pub(crate) fn effective_number(self) -> f64 {
        if self.squares == 0 { 0.0 } else { (self.weight as f64).powi(2) / self.squares as f64 }
    }
}

/// The observations of an event in a view: in total, and by function.
pub(crate) struct Observations {
    pub(crate) all: EventObservations,
    /// The functions that have any, with their self and total observations.
    pub(crate) functions: Vec<(FuncId, EventObservations, EventObservations)>,
}

impl Observations {
    /// O(samples + nodes + functions).
    pub(crate) fn of(view: &View<'_>) -> Self {
        let squares = squares(view);
        let stackless = squares.stackless;
        let running = sums::running(squares.own);
        let in_stacks = running.last().copied().unwrap_or_default();
        let weights = by_function(view, view.node_sums());
        let squares = by_function(view, view.node_sums().with_running(&running));
        let functions = weights.into_iter().zip(squares).enumerate();
        let functions =
            functions.filter(|(_, ((_, total), _))| *total > 0).map(|(func, (weight, squares))| {
                let observed = |weight, squares| EventObservations { weight, squares };
                (FuncId::from_index(func), observed(weight.0, squares.0), observed(weight.1, squares.1))
            });
        let all = EventObservations { weight: view.total().weight, squares: (in_stacks + stackless).weight };
        Self { all, functions: functions.collect() }
    }
}

/// The squares of the weights of all samples, summed up by slot. Samples of nothing may have no slot, but no square
/// either.
fn squares(view: &View<'_>) -> SampleSums {
    let sums = view.node_sums();
    let mut squares = SampleSums::new(sums.slots());
    for &thread in &*view.chosen.threads {
        for (chosen, node) in view.samples_of(thread) {
            let weight = chosen.amount.weight;
            let slot = node.map(|node| sums.slot(node));
            squares.add(slot, Amount { weight: weight.saturating_mul(weight), cpu_ns: 0 });
        }
    }
    squares
}

/// The self and total weights of each function.
fn by_function(view: &View<'_>, sums: NodeSums<'_>) -> Vec<(u64, u64)> {
    let funcs = &view.forest().func;
    let amounts =
        self_and_total::by_key(sums, view.index.function_count(), |node| Some(funcs[node] as usize));
    amounts.into_iter().map(|amounts| (amounts.own.weight, amounts.total.weight)).collect()
}
