//! Writes markers as slices and instants of tracks.

use std::collections::BTreeSet;
use std::io::{self, Write};

use nyquist_profile::{Marker, MarkerTiming, MarkerValue, Thread};

use super::message::{Annotation, AnnotationContent, Packet, Track, TrackEvent};
use super::read::{BEGIN, END, INSTANT};
use super::write::PerfettoWriter;

impl<Out: Write> PerfettoWriter<'_, Out> {
    /// Writes the markers of a thread with this track number. Overlapping intervals are on separate tracks
    /// with the same name, which the viewer merges. O(markers × log tracks).
    pub(super) fn write_markers(&mut self, thread: &Thread, track: u64) -> io::Result<()> {
        // When each track's last interval ends.
        let mut ends: BTreeSet<(u64, u64)> = BTreeSet::new();
        let mut instants = None;
        for marker in &thread.markers {
            let (start, end) = match marker.timing {
                MarkerTiming::Interval(start, end) => (start, end.max(start)),
                MarkerTiming::Instant(time)
                | MarkerTiming::IntervalStart(time)
                | MarkerTiming::IntervalEnd(time) => {
                    let own = match instants {
                        Some(own) => own,
                        None => *instants.insert(self.marker_track(track)?),
                    };
                    self.write_event(own, time, INSTANT, Some(marker))?;
                    continue;
                }
            };
            let free = ends.range(..=(start, u64::MAX)).next_back().copied();
            let own = match free {
                Some((end, own)) => {
                    ends.remove(&(end, own));
                    own
                }
                None => self.marker_track(track)?,
            };
            ends.insert((end, own));
            self.write_event(own, start, BEGIN, Some(marker))?;
            self.write_event(own, end, END, None)?;
        }
        Ok(())
    }

    fn marker_track(&mut self, parent: u64) -> io::Result<u64> {
        self.add_track(Track { parent, name: b"Markers".to_vec(), ..Track::default() })
    }

    fn write_event(&mut self, track: u64, time: u64, kind: u32, marker: Option<&Marker>) -> io::Result<()> {
        let name = marker.map_or("", |marker| self.profile.string(marker.name));
        let event = TrackEvent {
            name: name.as_bytes().to_vec(),
            categories: marker.map(|_| b"marker".to_vec()).into_iter().collect(),
            kind,
            track: Some(track),
            annotations: marker.map(|marker| self.annotations(marker)).unwrap_or_default(),
            ..TrackEvent::default()
        };
        self.packet(Packet { timestamp: Some(time), event: Some(event), ..Packet::default() })
    }

    fn annotations(&self, marker: &Marker) -> Vec<Annotation> {
        let schema = marker.schema.map(|schema| self.profile.marker_schema(schema));
        let fields = schema.into_iter().flat_map(|schema| &schema.fields).zip(&marker.values);
        let content = |value: &MarkerValue| match *value {
            MarkerValue::Missing => None,
            MarkerValue::String(text) => {
                Some(AnnotationContent::Text(self.profile.string(text).as_bytes().to_vec()))
            }
            MarkerValue::Integer(number) => Some(AnnotationContent::Integer(number)),
            MarkerValue::Number(number) => Some(AnnotationContent::Number(number)),
        };
        let annotation = |(field, value): (&nyquist_profile::MarkerField, &MarkerValue)| {
            let content = content(value)?;
            Some(Annotation { name_id: 0, name: field.key.as_bytes().to_vec(), content: Some(content) })
        };
        fields.filter_map(annotation).collect()
    }
}
