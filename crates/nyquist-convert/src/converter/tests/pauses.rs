//! Tests of pauses that the user requested.

use super::*;
use crate::event::Timestamp;
use nyquist_profile::MarkerTiming;

fn markers(profile: &Profile) -> Vec<(String, MarkerTiming)> {
    let markers = profile.threads().iter().flat_map(|thread| &thread.markers);
    markers.map(|marker| (profile.string(marker.name).to_owned(), marker.timing)).collect()
}

/// A thread waits when the pause begins, and is found waiting after it: neither wait has time of the pause.
#[test]
fn a_pause_is_in_no_wait() {
    let mut converter = shaped(Shape { waits: true, ..Shape::default() });
    let events = [
        (1, sample(1, 1, None, &[0x10])),
        (5, descheduled(1, false)),
        (10, EventKind::Paused),
        (100, EventKind::Resumed),
        (120, sample(1, 1, None, &[0x10])),
        (130, descheduled(1, false)),
        (150, EventKind::SwitchIn { tid: Tid(1) }),
        (151, sample(1, 1, None, &[0x10])),
    ];
    for (time, kind) in events {
        converter.push(at(time, kind));
    }
    let profile = converter.finish().profile;
    let waited: u64 = profile.threads()[0].samples.iter().filter(|it| it.off_cpu).map(|it| it.weight).sum();
    assert_eq!(waited, 25, "five before the pause, twenty after it");
    let paused = MarkerTiming::Interval(10 * MS, 100 * MS);
    assert!(markers(&profile).contains(&("Recording paused".to_owned(), paused)), "{:?}", markers(&profile));
}

#[test]
fn a_recording_that_ends_in_a_pause_shows_it() {
    let mut converter = converter(true);
    for (time, kind) in [(1, sample(1, 1, None, &[0x10])), (10, EventKind::Paused)] {
        converter.push(at(time, kind));
    }
    converter.note_end(Timestamp(30 * MS));
    let profile = converter.finish().profile;
    let paused = MarkerTiming::Interval(10 * MS, 30 * MS);
    assert_eq!(markers(&profile), [("Recording paused".to_owned(), paused)]);
}
