//! One file per request, or for a few similar ones.

mod context;
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

use nyquist_server::Refusal;
use serde::Serialize;

use crate::refusal::{internal, unknown_question};

pub(crate) use context::QueryContext;

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
