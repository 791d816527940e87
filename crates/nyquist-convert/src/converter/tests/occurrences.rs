//! Tests of additional events: their markers, their counts, and the limits.

use super::*;
use crate::OccurrenceCount;
use crate::event::{FieldValue, Occurrence, OccurrenceKind};
use nyquist_profile::{MarkerFormat, MarkerValue};
use std::sync::Arc;

pub(crate) fn event(most: u64) -> Arc<OccurrenceKind> {
    Arc::new(OccurrenceKind::new("a:b", &[("size".to_owned(), MarkerFormat::Integer)], most))
}

/// An occurrence in a thread, at an address.
fn occurs(kind: &Arc<OccurrenceKind>, (pid, tid): (u32, u32), address: u64, count: u64) -> EventKind {
    let EventKind::Sample(sample) = sample(pid, tid, None, &[address]) else { unreachable!() };
    let values = vec![FieldValue::Integer(7)];
    EventKind::Occurrence(Box::new(Occurrence {
        kind: Arc::clone(kind),
        sample,
        count,
        counter: None,
        values,
    }))
}

/// Each marker as "thread: name at stack values".
fn markers(profile: &Profile) -> Vec<String> {
    let mut lines = Vec::new();
    for thread in profile.threads() {
        for marker in &thread.markers {
            let frame = marker.stack.and_then(|stack| profile.stack_frames(stack).next());
            let place = frame.map_or("nowhere", |frame| profile.func_name(frame.func));
            let number = |value: &MarkerValue| match value {
                MarkerValue::Integer(number) => number.to_string(),
                other => format!("{other:?}"),
            };
            let values: Vec<_> = marker.values.iter().map(number).collect();
            let name = profile.string(marker.name);
            lines.push(format!("{}: {name} at {place} {}", thread.tid, values.join(" ")));
        }
    }
    lines
}

fn finished(filter: ProcessFilter, events: impl IntoIterator<Item = EventKind>) -> ConversionResult {
    let mut converter = Converter::new(Options { filter, ..options() });
    converter.push(at(0, name(1, 1, "app", true)));
    for (time, event) in (1..).zip(events) {
        converter.push(at(time, event));
    }
    converter.finish()
}

#[test]
fn occurrences_are_markers_and_not_samples() {
    let kind = event(10);
    let finished = finished(
        ProcessFilter::All,
        [
            sample(1, 1, None, &[0x10]),
            occurs(&kind, (1, 1), 0x20, 1),
            occurs(&kind, (1, 2), 0x30, 5),
            EventKind::OccurrencesLost { records: 4 },
        ],
    );
    let profile = &finished.profile;
    assert_eq!(folded(profile), ["0x10 1"]);
    assert_eq!(markers(profile), ["1: a:b at 0x20 1 7", "2: a:b at 0x30 5 7"]);
    let schema = &profile.marker_schemas()[0];
    assert_eq!((&*schema.name, schema.fields.len()), ("Event: a:b", 2));
    assert_eq!(schema.table_label.as_deref(), Some("size={marker.data.size}"));
    assert_eq!(finished.occurrences.of("a:b"), OccurrenceCount { count: 6, records: 2, left_out: 0 });
    assert_eq!((finished.occurrences.lost, finished.statistics.lost, finished.statistics.samples), (4, 0, 1));
    let seen = finished.profile.with_event_as_samples("a:b").unwrap();
    assert_eq!(folded(&seen), ["0x20 1", "0x30 5"]);
}

#[test]
fn too_many_are_counted_and_left_out() {
    let kind = event(2);
    let finished = finished(ProcessFilter::All, (0..5).map(|_| occurs(&kind, (1, 1), 0x20, 3)));
    assert_eq!(markers(&finished.profile).len(), 2);
    assert_eq!(finished.occurrences.of("a:b"), OccurrenceCount { count: 15, records: 5, left_out: 3 });
}

/// A recording that goes on for ever keeps its events.
#[test]
fn events_that_leave_the_profile_make_room() {
    let kind = event(2);
    for condenses in [false, true] {
        let mut converter = Converter::new(options());
        converter.push(at(0, name(1, 1, "app", true)));
        let mut seen = Vec::new();
        for round in 0..3 {
            for number in 1..=3 {
                converter.push(at(round * 10 + number, occurs(&kind, (1, 1), 0x20, 1)));
            }
            let end = at(round * 10 + 9, name(1, 1, "app", false)).time;
            converter.advance(end);
            seen.push(markers(&converter.snapshot()).len());
            if condenses { converter.condense(end) } else { converter.evict(end) }
        }
        assert_eq!(seen, [2, 2, 2], "condenses: {condenses}");
        let counts = converter.occurrences();
        assert_eq!((counts.of("a:b").count, counts.left_out()), (9, 3));
    }
}

#[test]
fn occurrences_of_others_are_left_out() {
    let kind = event(10);
    let family = ProcessFilter::Family([Pid(1)].into());
    let events = [
        occurs(&kind, (1, 1), 0x20, 1),
        fork(2, 2, 1),
        occurs(&kind, (2, 2), 0x30, 1),
        occurs(&kind, (9, 9), 0x40, 1),
        occurs(&kind, (0, 0), 0x50, 1),
    ];
    let finished = finished(family, events);
    assert_eq!(markers(&finished.profile), ["1: a:b at 0x20 1 7", "2: a:b at 0x30 1 7"]);
    assert_eq!(finished.occurrences.of("a:b").count, 2);
}
