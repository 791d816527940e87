//! The events of a recording, and which of them a record belongs to.

use std::ops::Range;

use super::features::EventDescription;
use crate::abi::record;
use crate::{ByteOrder, EventAttr, Header, RecordFormat, SampleType};

/// One event, opened for several threads and CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEvent {
    /// What was asked for.
    pub attr: EventAttr,
    /// The name under which it was asked for, where the recording says it; or perf's name for it.
    pub name: String,
    /// The kernel's numbers of the opened events.
    pub ids: Vec<u64>,
    /// The layout of its records.
    pub format: RecordFormat,
    places: Places,
}

/// All events of a recording.
#[derive(Clone, Debug, Default)]
pub struct EventTable {
    events: Vec<FileEvent>,
    /// The events' places by their numbers, ascending.
    by_id: Vec<(u64, usize)>,
}

/// Where records have their event's number and their time, in words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Places {
    /// From a sample's start.
    sample_id: Option<usize>,
    sample_time: Option<usize>,
    /// From another record's end, 1 being the last word.
    trailer_id: Option<usize>,
    trailer_time: Option<usize>,
}

impl Places {
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
    /// The latest time of whole records that follow each other. `None` if none has a time.
    pub fn latest_time(&self, mut records: &[u8]) -> Option<u64> {
        let places = Places::of(self);
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
    /// Adds an event that has these numbers.
    pub(crate) fn add(&mut self, attr: EventAttr, ids: Vec<u64>, byte_order: ByteOrder) {
        let format = attr.record_format(byte_order);
        let place = self.events.len();
        let name = match attr.generic_name() {
            Some(name) => name.to_owned(),
            None => format!("event {}:{:#x}", attr.kind, attr.config),
        };
        self.by_id.extend(ids.iter().map(|id| (*id, place)));
        self.by_id.sort_unstable();
        self.events.push(FileEvent { attr, name, ids, format, places: Places::of(&format) });
    }

    /// Gives the events the names that a recording has for them.
    pub(crate) fn name(&mut self, descriptions: &[EventDescription]) {
        for (place, description) in descriptions.iter().enumerate() {
            let by_id = description.ids.first().and_then(|id| self.place_of(*id));
            if let Some(event) = self.events.get_mut(by_id.unwrap_or(place)) {
                event.name.clone_from(&description.name);
            }
        }
    }

    /// Gives the events of these types and configurations their names.
    pub(crate) fn name_by_type<'a>(&mut self, names: impl Iterator<Item = (u32, u64, &'a str)>) {
        for (kind, config, name) in names {
            for event in &mut self.events {
                if (event.attr.kind, event.attr.config) == (kind, config) {
                    name.clone_into(&mut event.name);
                }
            }
        }
    }

    /// Adds numbers of events, by the events' places.
    pub(crate) fn add_ids(&mut self, ids: &[(usize, u64)]) {
        for &(place, id) in ids {
            if let Some(event) = self.events.get_mut(place) {
                event.ids.push(id);
                self.by_id.push((id, place));
            }
        }
        self.by_id.sort_unstable();
    }

    /// Gives the event of that number a name.
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

    /// The place of the event that wrote a record; the first one's where the record does not say.
    pub(crate) fn event_of(&self, header: Header, record: &[u8], order: ByteOrder) -> usize {
        // Perf sees to it that the number is at the same place in the records of all events, or there is one event.
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

/// The word of a record that is at one place in samples and at another, from the end, in other records.
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
