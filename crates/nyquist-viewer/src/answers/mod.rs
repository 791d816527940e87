//! One file per request, or for a few similar ones.

mod counters;
mod diff;
mod functions;
mod graphs;
mod heat_map;
mod info;
mod marker_chart;
mod markers;
mod moment;
pub(crate) mod picture;
mod source;
mod timeline;
mod tree;

use nyquist_analysis::{Index, View};
use nyquist_profile::FuncId;
use nyquist_server::{Refusal, SymbolSource};
use serde::Serialize;

use crate::function_table::{FunctionCategories, FunctionTable};
use crate::parameters::Parameters;
use crate::refusal::{bad_request, internal, unknown_question};

/// A request and its selection.
#[derive(Clone, Copy)]
pub(crate) struct QueryContext<'q, 'a> {
    pub(crate) index: &'a Index<'a>,
    pub(crate) view: &'q View<'a>,
    /// The same selection of the other run.
    pub(crate) before: Option<&'q View<'a>>,
    pub(crate) parameters: &'q Parameters,
    pub(crate) categories: &'q FunctionCategories,
    pub(crate) symbols: &'q dyn SymbolSource,
    /// For a recording that is shown since it was running: its end so far, in ns since the profile's zero.
    pub(crate) live: Option<u64>,
}

impl<'a> QueryContext<'_, 'a> {
    /// The number of a function in a table, which then includes it.
    fn number(&self, table: &mut FunctionTable<'a>, func: FuncId) -> usize {
        table.number(self.view, self.categories, func)
    }

    /// The other run of a comparison.
    fn before(&self) -> Result<&View<'a>, Refusal> {
        let missing = "no other profile is here to compare with: nyquist load BEFORE AFTER";
        self.before.ok_or_else(|| bad_request(missing))
    }

    /// The time of a weight of 1, in ns.
    fn interval_ns(&self) -> u64 {
        self.view.profile().meta().interval
    }
}

/// Answers a request of the page.
pub(crate) fn json_answer(question: &str, asked: &QueryContext<'_, '_>) -> Result<Vec<u8>, Refusal> {
    match question {
        "info" => json(&info::answer(asked)),
        "timeline" => json(&timeline::answer(asked)?),
        "flamegraph" => json(&graphs::flame_graph(asked)?),
        "diff" => json(&diff::table(asked)?),
        "diff/flamegraph" => json(&graphs::compared(asked)?),
        "counters" => json(&counters::answer(asked)?),
        "heatmap" => json(&heat_map::answer(asked)?),
        "moment" => json(&moment::answer(asked)?),
        "chart" => json(&graphs::stack_chart(asked)?),
        "tree" => json(&tree::answer(asked)?),
        "functions" => json(&functions::list(asked)?),
        "callers" => json(&functions::callers(asked)?),
        "search" => json(&functions::search(asked)?),
        "source" => json(&source::answer(asked)?),
        "markers/chart" => json(&marker_chart::answer(asked)?),
        "markers" => json(&markers::answer(asked)?),
        _ => Err(unknown_question(&question.chars().take(40).collect::<String>())),
    }
}

fn json(answer: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(answer).map_err(|_| internal())
}
