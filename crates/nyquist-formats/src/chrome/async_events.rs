//! Makes markers from asynchronous events, which begin and end in any order.

use nyquist_profile::{MarkerTiming, ThreadIndex};
use rustc_hash::FxHashMap;

use super::event::Event;
use super::markers::TraceMarker;
use super::slices::Args;

/// An end belongs to the begin with the same process, category, id and name.
type EventKey = (String, String, String, String);

/// The events that have begun.
#[derive(Default)]
pub(super) struct AsyncEvents<'a> {
    open: FxHashMap<EventKey, Vec<TraceMarker<'a>>>,
}

impl<'a> AsyncEvents<'a> {
    /// Whether this phase is handled here. `S` and `F` occur in old traces.
    pub(super) fn takes(phase: &str) -> bool {
        matches!(phase, "b" | "e" | "n" | "S" | "F")
    }

    /// Adds an event, and returns the marker that it completes, if there is one.
    pub(super) fn add(&mut self, thread: ThreadIndex, event: &Event<'a>) -> Option<TraceMarker<'a>> {
        let time = event.ts.microseconds();
        let (name, category) = (event.name(), event.cat.text());
        let id = if event.id.json().is_empty() { event.id2.value().to_string() } else { event.id.id() };
        let key = (event.pid.id(), category.clone().into_owned(), id, name.clone().into_owned());
        let timing = MarkerTiming::Instant(time);
        let args = Args::Document(event.args);
        let marker = TraceMarker { thread, name: name.into(), category: category.into(), timing, args };
        match &*event.ph {
            "b" | "S" => {
                self.open.entry(key).or_default().push(marker);
                None
            }
            "e" | "F" => Some(match self.open.get_mut(&key).and_then(Vec::pop) {
                Some(begin) => ended(begin, time),
                None => TraceMarker { timing: MarkerTiming::IntervalEnd(time), ..marker },
            }),
            _ => Some(marker),
        }
    }

    /// The events that have not ended, by their begins.
    pub(super) fn unfinished(self) -> Vec<TraceMarker<'a>> {
        let begun = |marker: TraceMarker<'a>| {
            let timing = MarkerTiming::IntervalStart(begin_of(marker.timing));
            TraceMarker { timing, ..marker }
        };
        let mut markers: Vec<_> = self.open.into_values().flatten().map(begun).collect();
        markers.sort_by(|a, b| (begin_of(a.timing), &a.name).cmp(&(begin_of(b.timing), &b.name)));
        markers
    }
}

fn ended(begin: TraceMarker<'_>, end: u64) -> TraceMarker<'_> {
    let start = begin_of(begin.timing);
    TraceMarker { timing: MarkerTiming::Interval(start, end.max(start)), ..begin }
}

fn begin_of(timing: MarkerTiming) -> u64 {
    match timing {
        MarkerTiming::Instant(time)
        | MarkerTiming::Interval(time, _)
        | MarkerTiming::IntervalStart(time)
        | MarkerTiming::IntervalEnd(time) => time,
    }
}
