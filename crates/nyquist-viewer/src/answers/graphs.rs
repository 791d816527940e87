//! `flamegraph` and `chart`: boxes, without those that are too narrow to be visible.

use nyquist_analysis::{FlameChart, FlameChartOptions, FlameOptions};
use nyquist_server::ViewerError;
use serde::Serialize;

use super::context::QueryContext;
use crate::function_table::FunctionTable;
use crate::selection::thread;

/// The maximum width of a picture, in pixels. In a wider one, visible boxes would be left out.
const MAX_WIDTH: usize = 16_384;

/// The maximum number of boxes of a response; those of the outer levels come first.
const MAX_BOXES: usize = 200_000;

/// The maximum number of levels that a page asks for.
const MAX_LEVELS: usize = 1 << 20;

#[derive(Debug, Serialize)]
pub(super) struct FlameGraph<'a, Box> {
    weight: u64,
    interval_ns: u64,
    depth: usize,
    /// The whole of the other run, in intervals of this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    before_weight: Option<f64>,
    boxes: Vec<Box>,
    functions: FunctionTable<'a>,
}

/// Depth, start, width, function, self weight.
type FlameBox = (usize, u64, u64, usize, u64);

/// The same, with the box's share of the whole in the other run.
type ComparedBox = (usize, u64, u64, usize, u64, f64);

pub(super) fn flame_graph<'a>(
    context: &QueryContext<'_, 'a>,
) -> Result<FlameGraph<'a, FlameBox>, ViewerError> {
    let graph = context.view.flame_graph(&options(context)?);
    let mut functions = FunctionTable::new();
    let boxes: Vec<_> = outermost(&graph)
        .into_iter()
        .map(|(_, one)| {
            (
                one.depth,
                one.start,
                one.width,
                context.number(&mut functions, one.func),
                one.self_amount.weight,
            )
        })
        .collect();
    let depth = boxes.iter().map(|one| one.0 + 1).max().unwrap_or(0);
    let (weight, interval_ns) = (graph.width, context.interval_ns());
    Ok(FlameGraph { weight, interval_ns, depth, before_weight: None, boxes, functions })
}

pub(super) fn compared<'a>(
    context: &QueryContext<'_, 'a>,
) -> Result<FlameGraph<'a, ComparedBox>, ViewerError> {
    let options = options(context)?;
    let graph = context.view.flame_graph(&options);
    let before = context.before()?.flame_graph(&FlameOptions { min_share: 0.0, ..options });
    let shares = graph.shares_in(&before);
    let before_weight = Some(before_weight(context, before.width)?);
    let mut functions = FunctionTable::new();
    let boxes: Vec<_> = outermost(&graph)
        .into_iter()
        .map(|(index, one)| {
            let function = context.number(&mut functions, one.func);
            (one.depth, one.start, one.width, function, one.self_amount.weight, shares[index])
        })
        .collect();
    let depth = boxes.iter().map(|one| one.0 + 1).max().unwrap_or(0);
    let (weight, interval_ns) = (graph.width, context.interval_ns());
    Ok(FlameGraph { weight, interval_ns, depth, before_weight, boxes, functions })
}

/// A weight of the other run, in sampling intervals of the shown one.
pub(super) fn before_weight(context: &QueryContext<'_, '_>, weight: u64) -> Result<f64, ViewerError> {
    let interval = context.before()?.profile().meta().interval;
    Ok(weight as f64 * interval as f64 / context.interval_ns().max(1) as f64)
}

fn options(context: &QueryContext<'_, '_>) -> Result<FlameOptions, ViewerError> {
    let width = context.parameters.at_most("width", 1000, MAX_WIDTH)?.max(1);
    let inverted = context.parameters.is_set("inverted");
    Ok(FlameOptions { inverted, min_share: 0.5 / width as f64, ..FlameOptions::default() })
}

/// The boxes with their indexes. If there are too many, only those of the outer levels.
fn outermost<'g, 'v>(
    graph: &'g nyquist_analysis::FlameGraph<'v>,
) -> Vec<(usize, &'g nyquist_analysis::FlameBox<'v>)> {
    let mut boxes: Vec<_> = graph.boxes.iter().enumerate().collect();
    if boxes.len() > MAX_BOXES {
        boxes.sort_by_key(|(_, one)| one.depth);
        boxes.truncate(MAX_BOXES);
    }
    boxes
}

#[derive(Debug, Serialize)]
pub(super) struct StackChart<'a> {
    start_ns: u64,
    end_ns: u64,
    depth: usize,
    /// Depth, start and end in ns, and function.
    boxes: Vec<(usize, u64, u64, usize)>,
    /// What shorter boxes show together: the same, and the eighths of the time that they cover.
    joined: Vec<(usize, u64, u64, usize, u8)>,
    functions: FunctionTable<'a>,
}

pub(super) fn stack_chart<'a>(context: &QueryContext<'_, 'a>) -> Result<StackChart<'a>, ViewerError> {
    let width = context.parameters.at_most("width", 1000, MAX_WIDTH)?.max(1);
    let thread = thread(context.parameters.required("thread")?, context.view.profile())?;
    let times = context.view.times();
    let min_ns = (times.end - times.start) / width as u64;
    // The narrow boxes of deep stacks are hundreds of thousands, of which few levels are in sight.
    let first = context.parameters.at_most("first_level", 0, MAX_LEVELS)?;
    let joined_levels = first..first + context.parameters.at_most("levels", MAX_LEVELS, MAX_LEVELS)?;
    let options = FlameChartOptions { min_ns, joined_levels, ..FlameChartOptions::default() };
    let mut functions = FunctionTable::new();
    let FlameChart { depth, boxes: mut found } = context.view.flame_chart(thread, &options);
    if found.len() > MAX_BOXES {
        found.sort_by_key(|one| one.depth);
        found.truncate(MAX_BOXES);
    }
    let (mut boxes, mut joined) = (Vec::new(), Vec::new());
    for one in found {
        let function = context.number(&mut functions, one.func);
        match one.joined_eighths {
            Some(eighths) => joined.push((one.depth, one.start_ns, one.end_ns, function, eighths)),
            None => boxes.push((one.depth, one.start_ns, one.end_ns, function)),
        }
    }
    Ok(StackChart { start_ns: times.start, end_ns: times.end, depth, boxes, joined, functions })
}
