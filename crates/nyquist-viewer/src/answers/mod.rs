//! One file a question, or a few that are alike.

mod functions;
mod graphs;
mod info;
mod markers;
mod source;
mod timeline;
mod tree;

use nyquist_analysis::{Index, View};
use nyquist_profile::FuncId;
use nyquist_server::{Refusal, SymbolSource};
use serde::Serialize;

use crate::function_table::{FunctionCategories, FunctionTable};
use crate::parameters::Parameters;
use crate::refusal::{internal, unknown_question};

/// What is asked, about what.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'q, 'a> {
    pub(crate) index: &'a Index<'a>,
    pub(crate) view: &'q View<'a>,
    pub(crate) parameters: &'q Parameters,
    pub(crate) categories: &'q FunctionCategories,
    pub(crate) symbols: &'q dyn SymbolSource,
}

impl<'a> Asked<'_, 'a> {
    /// The number of a function in a table, which has it from now on.
    fn number(&self, table: &mut FunctionTable<'a>, func: FuncId) -> usize {
        table.number(self.view, self.categories, func)
    }

    /// What a weight of 1 stands for, in ns.
    fn interval_ns(&self) -> u64 {
        self.view.profile().meta().interval
    }
}

/// Answers a question.
pub(crate) fn answer(question: &str, asked: &Asked<'_, '_>) -> Result<Vec<u8>, Refusal> {
    match question {
        "info" => json(&info::answer(asked)),
        "timeline" => json(&timeline::answer(asked)?),
        "flamegraph" => json(&graphs::flame_graph(asked)?),
        "chart" => json(&graphs::stack_chart(asked)?),
        "tree" => json(&tree::answer(asked)?),
        "functions" => json(&functions::list(asked)?),
        "callers" => json(&functions::callers(asked)?),
        "search" => json(&functions::search(asked)?),
        "source" => json(&source::answer(asked)?),
        "markers" => json(&markers::answer(asked)?),
        _ => Err(unknown_question(&question.chars().take(40).collect::<String>())),
    }
}

fn json(answer: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(answer).map_err(|_| internal())
}
