//! `timeline`: the CPU use of threads over time, by category.

use std::collections::HashSet;

use nyquist_analysis::CategoryTimeline;
use nyquist_profile::{CategoryId, FuncId};
use nyquist_server::ViewerError;
use serde::Serialize;

use super::context::QueryContext;
use crate::errors::bad_request;
use crate::parameters::name_search;
use crate::selection::{function, thread};

/// The maximum number of parts of a time line; no screen has more columns.
const MAX_PARTS: usize = 4096;

/// The maximum number of tracks of a response: twice as many as fit on a screen.
const MAX_TRACKS: usize = 256;

#[derive(Debug, Serialize)]
pub(super) struct TimelineAnswer {
    start_ns: u64,
    end_ns: u64,
    part_ns: f64,
    tracks: Vec<TimelineTrack>,
}

#[derive(Debug, Serialize)]
struct TimelineTrack {
    thread: Option<usize>,
    categories: Vec<CategoryTime>,
}

#[derive(Debug, Serialize)]
struct CategoryTime {
    category: Option<usize>,
    ns: Vec<u64>,
}

pub(super) fn answer(context: &QueryContext<'_, '_>) -> Result<TimelineAnswer, ViewerError> {
    let parts = context.parameters.at_most("parts", 1000, MAX_PARTS)?.max(1);
    let times = context.view.times();
    let tracks = match context.parameters.numbers("tracks", ',')? {
        None => vec![TimelineTrack::new(None, whole(context, parts)?)],
        Some(indexes) if indexes.len() > MAX_TRACKS => {
            return Err(bad_request(format_args!("more than {MAX_TRACKS} tracks")));
        }
        Some(indexes) => tracks(context, indexes, parts)?,
    };
    let part_ns = (times.end - times.start) as f64 / parts as f64;
    Ok(TimelineAnswer { start_ns: times.start, end_ns: times.end, part_ns, tracks })
}

/// The functions whose time is requested, unless all time is: one, or those that a search matches.
fn requested_functions(context: &QueryContext<'_, '_>) -> Result<Option<HashSet<FuncId>>, ViewerError> {
    if let Some(number) = context.parameters.number("function")? {
        return Ok(Some(HashSet::from([function(number, context.view.profile())?])));
    }
    let Some(search) = context.parameters.get("search").map(name_search).transpose()? else {
        return Ok(None);
    };
    let functions = context.view.functions().functions.into_iter();
    Ok(Some(functions.filter(|one| search.matches(one.name)).map(|one| one.func).collect()))
}

/// All selected threads together.
fn whole<'a>(
    context: &QueryContext<'_, 'a>,
    parts: usize,
) -> Result<nyquist_analysis::Timeline<CategoryTimeline<'a>>, ViewerError> {
    Ok(match requested_functions(context)? {
        Some(requested) => context.view.category_timeline_with(|func| requested.contains(&func), parts),
        None => context.view.category_timeline(parts),
    })
}

/// The tracks of some threads.
fn tracks(
    context: &QueryContext<'_, '_>,
    indexes: Vec<usize>,
    parts: usize,
) -> Result<Vec<TimelineTrack>, ViewerError> {
    let profile = context.view.profile();
    let threads = indexes.into_iter().map(|index| thread(index, profile)).collect::<Result<Vec<_>, _>>()?;
    let timelines = match requested_functions(context)? {
        Some(requested) => {
            context.view.category_timelines_with(|func| requested.contains(&func), &threads, parts)
        }
        None => context.view.category_timelines(&threads, parts),
    };
    let tracks = threads.iter().zip(timelines);
    Ok(tracks.map(|(thread, timeline)| TimelineTrack::new(Some(thread.index()), timeline)).collect())
}

impl TimelineTrack {
    fn new(thread: Option<usize>, timeline: nyquist_analysis::Timeline<CategoryTimeline<'_>>) -> Self {
        let categories = timeline.rows.into_iter();
        let categories = categories
            .map(|row| CategoryTime { category: row.category.map(CategoryId::index), ns: row.parts_ns });
        Self { thread, categories: categories.collect() }
    }
}
