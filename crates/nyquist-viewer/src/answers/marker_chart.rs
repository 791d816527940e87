//! `markers/chart`: the markers as bars over time, a row for each kind of each thread.

use std::collections::BTreeMap;

use nyquist_profile::StackId;
use nyquist_server::ViewerError;
use serde::Serialize;

use super::context::QueryContext;
use super::markers::{MarkerMatch, fields, matching_markers};

/// The maximum width of a chart, in pixels.
const MAX_WIDTH: usize = 16_384;

/// The maximum number of rows and bars of a response.
const MAX_ROWS: usize = 300;
const MAX_BARS: usize = 100_000;

/// Overlapping bars of a row are placed in lanes, one below the other; this is the maximum number of lanes.
const LANES: usize = 8;

/// The maximum number of characters of a marker's text.
const TEXT: usize = 200;

#[derive(Debug, Serialize)]
pub(super) struct MarkerChartAnswer<'a> {
    start_ns: u64,
    end_ns: u64,
    count: usize,
    rows: Vec<ThreadBars<'a>>,
    left_out: usize,
}

#[derive(Debug, Serialize)]
struct ThreadBars<'a> {
    thread: usize,
    name: &'a str,
    lanes: usize,
    bars: Vec<MarkerBar>,
}

/// Lane, start and end in ns, the number of markers that it stands for, and the text and the number of the stack
/// of the first of them.
type MarkerBar = (usize, u64, u64, usize, String, Option<usize>);

/// The chart. O(markers × log).
pub(super) fn answer<'a>(context: &QueryContext<'_, 'a>) -> Result<MarkerChartAnswer<'a>, ViewerError> {
    let width = context.parameters.at_most("width", 1000, MAX_WIDTH)?.max(1) as u64;
    let times = context.view.times();
    let pixel = (times.end - times.start) / width;
    let profile = context.view.profile();
    let found = matching_markers(context)?;
    let places = places_of(context);
    let mut by_row: BTreeMap<(usize, usize, &str), Vec<MarkerBar>> = BTreeMap::new();
    for (start, duration, thread, marker) in &found {
        let bars =
            by_row.entry((places[thread.index()], thread.index(), profile.string(marker.name))).or_default();
        let end = start.saturating_add(duration.unwrap_or(0));
        if !joins(bars, (*start, end), pixel) {
            let lane = free_lane(bars, *start);
            let text = text(context, (*start, *duration, *thread, marker));
            bars.push((lane, *start, end, 1, text, marker.stack.map(StackId::index)));
        }
    }
    let (all, mut bars_left) = (by_row.len(), MAX_BARS);
    let rows = by_row.into_iter().take(MAX_ROWS).map(|((_, thread, name), mut bars)| {
        bars.truncate(bars_left);
        bars_left -= bars.len();
        ThreadBars { thread, name, lanes: bars.iter().map(|bar| bar.0 + 1).max().unwrap_or(1), bars }
    });
    let rows: Vec<_> = rows.collect();
    let left_out = all - rows.len();
    Ok(MarkerChartAnswer { start_ns: times.start, end_ns: times.end, count: found.len(), rows, left_out })
}

/// The places of the threads in the timeline, the busiest first, by the number of the thread.
fn places_of(context: &QueryContext<'_, '_>) -> Vec<usize> {
    let mut rows = context.view.by_thread();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.amount.weight), row.thread));
    let mut places = vec![usize::MAX; context.view.profile().threads().len()];
    for (place, row) in rows.iter().enumerate() {
        places[row.thread.index()] = place;
    }
    places
}

fn text(context: &QueryContext<'_, '_>, (_, _, _, marker): MarkerMatch<'_>) -> String {
    fields(context.view.profile(), marker).chars().take(TEXT).collect()
}

/// Whether a marker narrower than a pixel is merged into the previous bar, which then stands for both.
fn joins(bars: &mut [MarkerBar], (start, end): (u64, u64), pixel: u64) -> bool {
    let Some(last) = bars.last_mut() else { return false };
    let is_small = end - start < pixel && last.2 - last.1 < pixel.saturating_mul(4).max(1);
    let is_joined = is_small && start.saturating_sub(last.2) < pixel;
    if is_joined {
        last.2 = last.2.max(end);
        last.3 += 1;
    }
    is_joined
}

/// The first lane that is free at a time. Only the last bar of each lane can occupy it.
fn free_lane(bars: &[MarkerBar], start: u64) -> usize {
    let mut is_taken = [false; LANES];
    let mut is_known = [false; LANES];
    for bar in bars.iter().rev().take(4 * LANES) {
        if !is_known[bar.0] {
            (is_known[bar.0], is_taken[bar.0]) = (true, bar.2 > start);
        }
    }
    is_taken.iter().position(|taken| !taken).unwrap_or(LANES - 1)
}
