//! `heatmap`: the CPU use by second and by the offset within the second, which shows short activity.

use std::ops::Range;

use nyquist_analysis::{Selection, View};
use nyquist_server::ViewerError;
use serde::Serialize;

use super::context::QueryContext;

/// The maximum number of cells of a heat map.
const MAX_CELLS: usize = 50_000;

const SECOND: u64 = 1_000_000_000;

#[derive(Debug, Serialize)]
pub(super) struct HeatMap {
    start_ns: u64,
    end_ns: u64,
    /// The time of a column, which is a whole number of seconds, and the time of a row.
    column_ns: u64,
    row_ns: u64,
    rows: usize,
    /// The CPU time of each cell, in ns, by column, starting at the first offset.
    cells: Vec<u64>,
}

/// The map of the selection. O(samples + cells).
pub(super) fn answer(context: &QueryContext<'_, '_>) -> Result<HeatMap, ViewerError> {
    let rows = context.parameters.at_most("rows", 50, 200)?.max(1);
    let times = context.view.times();
    let length = (times.end - times.start).max(1);
    let seconds = length.div_ceil(SECOND * (MAX_CELLS / rows) as u64).max(1);
    let column_ns = seconds.saturating_mul(SECOND);
    let row_ns = (column_ns / rows as u64).max(1);
    let columns = length.div_ceil(column_ns) as usize;
    let mut cells = vec![0_u64; columns * rows];
    // The cells that are selected completely, and the rest of the last one.
    let whole = ((length / row_ns) as usize).min(cells.len());
    let middle = times.start + whole as u64 * row_ns;
    add(context, times.start..middle, &mut cells[..whole]);
    if middle < times.end && whole < cells.len() {
        add(context, middle..times.end, &mut cells[whole..=whole]);
    }
    Ok(HeatMap { start_ns: times.start, end_ns: times.end, column_ns, row_ns, rows, cells })
}

/// Adds the threads' CPU time in each of the equal parts of a time.
fn add(context: &QueryContext<'_, '_>, range: Range<u64>, cells: &mut [u64]) {
    if cells.is_empty() {
        return;
    }
    let selection = Selection { range: Some(range), ..context.view.selection().clone() };
    let parts_ns = View::new(context.index, &selection).total_timeline(cells.len());
    for (cell, ns) in cells.iter_mut().zip(parts_ns) {
        *cell = cell.saturating_add(ns);
    }
}
