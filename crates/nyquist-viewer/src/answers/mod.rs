//! One file per request, or for a few similar ones.

mod code_places;
mod context;
mod counters;
mod diff;
mod functions;
mod graphs;
mod groups;
mod heat_map;
mod info;
mod marker_chart;
mod markers;
mod moment;
mod names;
pub(crate) mod picture;
mod source;
mod timeline;
mod tree;

use nyquist_server::ViewerError;
use serde::Serialize;

use crate::errors::{internal, unknown_question};

pub(crate) use context::QueryContext;
pub(crate) use info::has_inlined;

/// Answers a request of the page.
pub(crate) fn json_answer(question: &str, context: &QueryContext<'_, '_>) -> Result<Vec<u8>, ViewerError> {
    match question {
        "info" => json(&info::answer(context)),
        "timeline" => json(&timeline::answer(context)?),
        "flamegraph" => json(&graphs::flame_graph(context)?),
        "diff" => json(&diff::table(context)?),
        "diff/flamegraph" => json(&graphs::compared(context)?),
        "counters" => json(&counters::answer(context)?),
        "heatmap" => json(&heat_map::answer(context)?),
        "moment" => json(&moment::answer(context)?),
        "stack" => json(&moment::stack(context)?),
        "chart" => json(&graphs::stack_chart(context)?),
        "tree" => json(&tree::answer(context)?),
        "functions" => json(&functions::list(context)?),
        "groups" => json(&groups::answer(context)?),
        "callers" => json(&functions::callers(context)?),
        "names" => json(&names::answer(context)?),
        "search" => json(&functions::search(context)?),
        "source" => json(&source::answer(context)?),
        "markers/chart" => json(&marker_chart::answer(context)?),
        "markers" => json(&markers::answer(context)?),
        _ => Err(unknown_question(&question.chars().take(40).collect::<String>())),
    }
}

fn json(answer: &impl Serialize) -> Result<Vec<u8>, ViewerError> {
    serde_json::to_vec(answer).map_err(|_| internal())
}
