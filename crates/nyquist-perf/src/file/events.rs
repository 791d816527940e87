//! The events of a recording, and the assignment of records to them.

use std::ops::Range;

use super::features::EventDescription;
use crate::abi::record;
use crate::{ByteOrder, EventAttr, Header, RecordFormat, SampleType};

/// One event, opened for several threads and CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEvent {
    /// Its configuration.
    pub attr: EventAttr,
    /// The requested name, if the recording contains it; otherwise perf's name for it.
    pub name: String,
    /// The kernel's ids of the opened events.
    pub ids: Vec<u64>,
    /// The layout of its records.
    pub format: RecordFormat,
    places: FieldPlaces,
}

/// All events of a recording.
#[derive(Clone, Debug, Default)]
pub struct EventTable {
    events: Vec<FileEvent>,
    /// The events' indexes by id, ascending.
    by_id: Vec<(u64, usize)>,
}

/// The positions of the event's id and the time in records, in words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FieldPlaces {
    /// From a sample's start.
    sample_id: Option<usize>,
    sample_time: Option<usize>,
    /// From another record's end, 1 being the last word.
    trailer_id: Option<usize>,
    trailer_time: Option<usize>,
}

impl FieldPlaces {
    fn of(format: &RecordFormat) -> Self {
        let has = |bit| format.sample_type.contains(bit);
        let count = |bits: &[SampleType]| bits.iter().filter(|bit| has(**bit)).count();
        let (identifier, ip, tid) = (SampleType::IDENTIFIER, SampleType::IP, SampleType::TID);
        let (time, addr, id) = (SampleType::TIME, SampleType::ADDR, SampleType::ID);
        let (stream, cpu) = (SampleType::STREAM_ID, SampleType::CPU);
        let by_identifier = has(identifier).then_some(0);
        let trailer =
            |bit, after: &[SampleType]| (format.sample_id_all && has(bit)).then(|| 1 + count(after));
        Self {
            sample_id: by_identifier.or_else(|| has(id).then(|| count(&[ip, tid, time, addr]))),
            sample_time: has(time).then(|| count(&[identifier, ip, tid])),
            trailer_id: trailer(identifier, &[]).or_else(|| trailer(id, &[stream, cpu])),
            trailer_time: trailer(time, &[id, stream, cpu, identifier]),
        }
    }
}

impl RecordFormat {
    /// The latest time of consecutive whole records. `None` if none has a time.
    pub fn latest_time(&self, mut records: &[u8]) -> Option<u64> {
        let places = FieldPlaces::of(self);
        let mut latest = None;
        while let Ok(header) = Header::parse_in(records, self.byte_order) {
            let len = usize::from(header.size).max(Header::LEN);
            let Some((record, rest)) = records.split_at_checked(len) else { break };
            records = rest;
            let time = word(header, record, self.byte_order, places.sample_time, places.trailer_time);
            latest = latest.max(time);
        }
        latest
    }
}

impl EventTable {
    /// Adds an event with these ids.
    pub(crate) fn add(&mut self, attr: EventAttr, ids: Vec<u64>, byte_order: ByteOrder) {
        let format = attr.record_format(byte_order);
        let place = self.events.len();
        let name = match attr.generic_name() {
            Some(name) => name.to_owned(),
            None => format!("event {}:{:#x}", attr.kind, attr.config),
        };
        self.by_id.extend(ids.iter().map(|id| (*id, place)));
        self.by_id.sort_unstable();
        self.events.push(FileEvent { attr, name, ids, format, places: FieldPlaces::of(&format) });
    }

    /// Sets the events' names from a recording.
    pub(crate) fn name(&mut self, descriptions: &[EventDescription]) {
        for (place, description) in descriptions.iter().enumerate() {
            let by_id = description.ids.first().and_then(|id| self.place_of(*id));
            if let Some(event) = self.events.get_mut(by_id.unwrap_or(place)) {
                event.name.clone_from(&description.name);
            }
        }
    }

    /// Sets the names of the events with these types and configurations.
    pub(crate) fn name_by_type<'a>(&mut self, names: impl Iterator<Item = (u32, u64, &'a str)>) {
        for (kind, config, name) in names {
            for event in &mut self.events {
                if (event.attr.kind, event.attr.config) == (kind, config) {
                    name.clone_into(&mut event.name);
                }
            }
        }
    }

    /// Adds ids of events, by the events' indexes.
    pub(crate) fn add_ids(&mut self, ids: &[(usize, u64)]) {
        for &(place, id) in ids {
            if let Some(event) = self.events.get_mut(place) {
                event.ids.push(id);
                self.by_id.push((id, place));
            }
        }
        self.by_id.sort_unstable();
    }

    /// Sets the name of the event with that id.
    pub(crate) fn rename(&mut self, id: u64, name: &str) {
        let place = self.place_of(id);
        if let Some(event) = place.and_then(|place| self.events.get_mut(place)) {
            name.clone_into(&mut event.name);
        }
    }

    /// The events, in the recording's order.
    pub fn events(&self) -> &[FileEvent] {
        &self.events
    }

    /// The index of the event that wrote a record; 0 if the record does not contain an id.
    pub(crate) fn event_of(&self, header: Header, record: &[u8], order: ByteOrder) -> usize {
        // Perf ensures that the id is at the same position in the records of all events, or there is only
        // one event.
        let [first, _, ..] = self.events.as_slice() else { return 0 };
        let id = word(header, record, order, first.places.sample_id, first.places.trailer_id);
        id.and_then(|id| self.place_of(id)).unwrap_or(0)
    }

    /// The time of a record of an event; `None` where it has none.
    pub(crate) fn time_of(
        &self,
        event: usize,
        header: Header,
        record: &[u8],
        order: ByteOrder,
    ) -> Option<u64> {
        let places = self.events.get(event)?.places;
        word(header, record, order, places.sample_time, places.trailer_time)
    }

    fn place_of(&self, id: u64) -> Option<usize> {
        let at = self.by_id.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.by_id.get(at).map(|(_, place)| *place)
    }
}

/// A word of a record, at a fixed position in samples, and at a fixed distance from the end of other records.
fn word(
    header: Header,
    record: &[u8],
    order: ByteOrder,
    in_sample: Option<usize>,
    in_trailer: Option<usize>,
) -> Option<u64> {
    let range: Range<usize> = if header.kind == record::SAMPLE {
        let start = Header::LEN + 8 * in_sample?;
        start..start + 8
    } else {
        let start = record.len().checked_sub(8 * in_trailer?).filter(|start| *start >= Header::LEN)?;
        start..start + 8
    };
    Some(order.u64(*record.get(range)?.first_chunk()?))
}
