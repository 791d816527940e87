//! Asynchronous events, which begin and end in any order, made markers.

use nyquist_profile::{MarkerTiming, ThreadIndex};
use rustc_hash::FxHashMap;

use super::event::{Event, microseconds, name_of, text};
use super::markers::TraceMarker;
use crate::json::id_text;

/// An end belongs to the begin of the same process, category, id and name.
type Key = (String, String, String, String);

/// The events that have begun.
#[derive(Default)]
pub(super) struct Asynchronous {
    open: FxHashMap<Key, Vec<TraceMarker>>,
}

impl Asynchronous {
    /// Whether it is of a phase that is taken here. `S` and `F` are those of old traces.
    pub(super) fn takes(phase: &str) -> bool {
        matches!(phase, "b" | "e" | "n" | "S" | "F")
    }

    /// Takes an event; gives the marker that is complete with it, if one is.
    pub(super) fn add(&mut self, thread: ThreadIndex, event: Event) -> Option<TraceMarker> {
        let time = microseconds(&event.ts);
        let (name, category) = (name_of(&event.name), text(&event.cat));
        let id = if event.id.is_null() { event.id2.to_string() } else { id_text(&event.id) };
        let key = (id_text(&event.pid), category.clone(), id, name.clone());
        let timing = MarkerTiming::Instant(time);
        let marker = TraceMarker { thread, name, category, timing, args: event.args };
        match event.ph.as_str() {
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
    pub(super) fn unfinished(self) -> Vec<TraceMarker> {
        let begun = |marker: TraceMarker| {
            let timing = MarkerTiming::IntervalStart(begin_of(marker.timing));
            TraceMarker { timing, ..marker }
        };
        let mut markers: Vec<_> = self.open.into_values().flatten().map(begun).collect();
        markers.sort_by(|a, b| (begin_of(a.timing), &a.name).cmp(&(begin_of(b.timing), &b.name)));
        markers
    }
}

fn ended(begin: TraceMarker, end: u64) -> TraceMarker {
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
