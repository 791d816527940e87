//! `timeline`: the CPU use of threads over time, by category.

use nyquist_analysis::{Selection, View};
use nyquist_server::Refusal;
use serde::Serialize;

use super::Asked;
use crate::refusal::bad_request;
use crate::selection::thread;

/// The most parts of a time line: more than any screen is wide.
const MOST_PARTS: usize = 4096;

/// The most tracks of one answer.
const MOST_TRACKS: usize = 64;

#[derive(Debug, Serialize)]
pub(super) struct Timeline {
    start_ns: u64,
    end_ns: u64,
    part_ns: f64,
    tracks: Vec<Track>,
}

#[derive(Debug, Serialize)]
struct Track {
    thread: Option<usize>,
    categories: Vec<Part>,
}

#[derive(Debug, Serialize)]
struct Part {
    category: Option<usize>,
    ns: Vec<u64>,
}

pub(super) fn answer(asked: &Asked<'_, '_>) -> Result<Timeline, Refusal> {
    let parts = asked.parameters.at_most("parts", 1000, MOST_PARTS)?.max(1);
    let times = asked.view.times();
    let tracks = match asked.parameters.numbers("tracks", ',')? {
        None => vec![Track { thread: None, categories: categories(asked.view, parts) }],
        Some(indexes) if indexes.len() > MOST_TRACKS => {
            return Err(bad_request(format_args!("more than {MOST_TRACKS} tracks")));
        }
        Some(indexes) => {
            indexes.into_iter().map(|index| track(asked, index, parts)).collect::<Result<_, _>>()?
        }
    };
    let part_ns = (times.end - times.start) as f64 / parts as f64;
    Ok(Timeline { start_ns: times.start, end_ns: times.end, part_ns, tracks })
}

fn track(asked: &Asked<'_, '_>, index: usize, parts: usize) -> Result<Track, Refusal> {
    let thread = thread(index, asked.view.profile())?;
    let selection = Selection {
        threads: Some(vec![thread]),
        range: Some(asked.view.times()),
        ..asked.view.selection().clone()
    };
    let view = View::new(asked.index, &selection);
    Ok(Track { thread: Some(index), categories: categories(&view, parts) })
}

fn categories(view: &View<'_>, parts: usize) -> Vec<Part> {
    let rows = view.category_timeline(parts).rows.into_iter();
    rows.map(|row| Part { category: row.category.map(nyquist_profile::CategoryId::index), ns: row.parts_ns })
        .collect()
}
