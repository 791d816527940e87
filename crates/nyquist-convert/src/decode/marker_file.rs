//! Marker files of profiled programs: their records become events.
//!
//! `nyquist_tracing::protocol` and `docs/markers.md` describe the layout. Of any file, the records that parse
//! are kept, and the others are counted.

use crate::decode::marker_schema::{FieldTexts, KindTexts, MarkerKind};
use crate::event::{Event, EventKind, FieldValue, Marker, MarkerTiming, Pid, Tid, Timestamp, Track};
use nyquist_object::Cursor;
use nyquist_tracing::protocol::{self, header, record, value};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// How many kinds of markers one file can define.
const MAX_KINDS: usize = 1 << 14;

/// How many intervals that may end on another thread can be open at a time.
const MAX_OPEN: usize = 1 << 20;

/// The header of a marker file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// The number of bytes in the ring.
    pub capacity: u64,
    /// The process's number in its own pid namespace.
    pub pid: u32,
    /// The inode of the process's pid namespace. 0 if it is not known.
    pub pid_namespace: u64,
    /// The number of bytes that were ever written to the ring.
    pub written: u64,
    /// The number of records that were dropped because the ring was full.
    pub lost: u64,
    /// The number of bytes that a reader has read.
    pub read: u64,
}

impl FileHeader {
    /// Reads the first [`header::LEN`] bytes of a file. `None` if it is no marker file of this version, or is
    /// not ready yet.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let u64_at = |at| Cursor::new(bytes, at, true).u64();
        let u32_at = |at| Cursor::new(bytes, at, true).u32();
        let parsed = Self {
            capacity: u64_at(header::CAPACITY)?,
            pid: u32_at(header::PID)?,
            pid_namespace: u64_at(header::PID_NAMESPACE)?,
            written: u64_at(header::WRITTEN)?,
            lost: u64_at(header::LOST)?,
            read: u64_at(header::READ)?,
        };
        let sound = bytes.starts_with(&protocol::MAGIC)
            && (8..=protocol::MAX_CAPACITY).contains(&parsed.capacity)
            && parsed.capacity.is_multiple_of(8)
            && parsed.written >= parsed.read
            && parsed.written - parsed.read <= parsed.capacity;
        sound.then_some(parsed)
    }
}

/// The times that are plausible. Records of other times are dropped.
#[derive(Clone, Copy, Debug)]
pub struct Period {
    /// When the recording began. Markers that ended before are left out.
    pub since: Timestamp,
    /// The current time.
    pub until: Timestamp,
    /// How far the program's clock is ahead of the recorder's, in nanoseconds: time namespaces have clocks of
    /// their own.
    pub ahead_ns: i64,
}

impl Period {
    /// Converts a program's time to the recorder's time.
    pub(crate) fn time(&self, written: u64) -> Timestamp {
        Timestamp(written.saturating_add_signed(self.ahead_ns.saturating_neg()))
    }
}

/// Turns the records of one file into events.
#[derive(Debug)]
pub struct Decoder {
    pid: Pid,
    tid: Tid,
    kinds: FxHashMap<u32, MarkerKind>,
    unreadable: u64,
}

/// The intervals that have begun on one thread and may end on another, of all files.
#[derive(Debug, Default)]
pub struct OpenIntervals {
    open: FxHashMap<(Pid, u64), (Timestamp, Box<Marker>)>,
    /// Ends that were read before their begins. The begin is in a file that was read before the begin was
    /// written.
    ended: FxHashMap<(Pid, u64), (Timestamp, Box<Marker>)>,
}

impl OpenIntervals {
    /// Appends the intervals that have not ended, as markers of a begin, and those whose begin was lost, as
    /// markers of an end.
    pub fn finish(self, events: &mut Vec<Event>) {
        let open = self.open.into_values().zip(std::iter::repeat(MarkerTiming::IntervalStart));
        let ended = self.ended.into_values().zip(std::iter::repeat(MarkerTiming::IntervalEnd));
        for ((time, mut marker), timing) in open.chain(ended) {
            marker.timing = timing;
            events.push(Event { time, cpu: None, kind: EventKind::Marker(marker) });
        }
    }

    /// Adds a begin. Returns the whole interval and its end, if the end is known already.
    fn begin(
        &mut self,
        id: (Pid, u64),
        time: Timestamp,
        marker: Box<Marker>,
    ) -> Option<(Timestamp, Box<Marker>)> {
        match self.ended.remove(&id) {
            Some(end) => Some(whole((time, marker), end)),
            None => {
                if self.open.len() < MAX_OPEN {
                    self.open.insert(id, (time, marker));
                }
                None
            }
        }
    }

    /// Adds an end. Returns the whole interval and its end, if the begin is known.
    fn end(
        &mut self,
        id: (Pid, u64),
        time: Timestamp,
        marker: Box<Marker>,
    ) -> Option<(Timestamp, Box<Marker>)> {
        match self.open.remove(&id) {
            Some(begin) => Some(whole(begin, (time, marker))),
            None => {
                if self.ended.len() < MAX_OPEN {
                    self.ended.insert(id, (time, marker));
                }
                None
            }
        }
    }
}

/// The interval of a begin and an end. If the end lacks a value, it has the value of the begin.
fn whole(begin: (Timestamp, Box<Marker>), end: (Timestamp, Box<Marker>)) -> (Timestamp, Box<Marker>) {
    let ((start, begun), (time, mut marker)) = (begin, end);
    marker.timing = MarkerTiming::Interval { start: start.min(time) };
    for (value, begun) in marker.values.iter_mut().zip(begun.values) {
        if *value == FieldValue::Missing {
            *value = begun;
        }
    }
    (time, marker)
}

impl Decoder {
    /// A decoder for a file of this process, given its number in the recorder's namespace.
    pub fn new(pid: Pid) -> Self {
        Self { pid, tid: Tid(pid.0), kinds: FxHashMap::default(), unreadable: 0 }
    }

    /// How many records could not be understood so far.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Appends the events of whole records, which follow those of the last call. `thread` maps the program's
    /// thread numbers to threads. Returns whether more of the file can be read. Behind a record with an
    /// invalid length, no further record can be found.
    pub fn decode(
        &mut self,
        mut bytes: &[u8],
        thread: &dyn Fn(u32) -> Tid,
        period: Period,
        open: &mut OpenIntervals,
        events: &mut Vec<Event>,
    ) -> bool {
        while !bytes.is_empty() {
            let Some((record, rest)) = split_record(bytes) else {
                self.unreadable += 1;
                return false;
            };
            let mut out = Output { thread, period, open, events };
            if self.record(record, &mut out).is_none() {
                self.unreadable += 1;
            }
            bytes = rest;
        }
        true
    }

    /// Decodes a record; `None` if it is invalid.
    fn record(&mut self, bytes: &[u8], out: &mut Output<'_>) -> Option<()> {
        let mut input = Cursor::new(bytes, 4, true);
        let (kind, _) = (input.u8()?, input.u8()?);
        let count = input.u16()?;
        match kind {
            record::PAD => Some(()),
            record::THREAD => {
                self.tid = (out.thread)(input.u32()?);
                Some(())
            }
            record::KIND => self.define(input, count),
            record::INTERVAL | record::INSTANT | record::START | record::END => {
                self.marker(kind, input, count, out)
            }
            _ => None,
        }
    }

    fn define(&mut self, mut input: Cursor<'_>, count: u16) -> Option<()> {
        let number = input.u32()?;
        let input = &mut input;
        let texts = KindTexts {
            name: text(input)?,
            marker_name: text(input)?,
            track: text(input)?,
            category: text(input)?,
            description: text(input)?,
            table_label: text(input)?,
        };
        let mut fields = Vec::new();
        for _ in 0..count.min(u16::from(u8::MAX)) {
            fields.push(FieldTexts { key: text(input)?, label: text(input)?, format: text(input)? });
        }
        let known = self.kinds.contains_key(&number);
        (known || self.kinds.len() < MAX_KINDS).then(|| {
            self.kinds.insert(number, MarkerKind::new(texts, &fields));
        })
    }

    fn marker(&mut self, record: u8, mut input: Cursor<'_>, count: u16, out: &mut Output<'_>) -> Option<()> {
        let number = input.u32()?;
        let name_len = input.u32()?;
        let (first, second) = (input.u64()?, input.u64()?);
        let name = std::str::from_utf8(input.bytes(name_len as usize)?).ok()?;
        let kind = match number {
            protocol::PLAIN_KIND => None,
            number => Some(self.kinds.get_mut(&number)?),
        };
        let values = values(input, count, kind.as_ref().map_or(0, |kind| kind.fields()))?;
        let mut marker = Box::new(Marker {
            pid: self.pid,
            track: Track::Thread(self.tid),
            name: name.into(),
            timing: MarkerTiming::Instant,
            schema: None,
            values,
            category: None,
        });
        let time = if record == record::INTERVAL {
            marker.timing = MarkerTiming::Interval { start: out.period.time(first) };
            second
        } else {
            first
        };
        if let Some(kind) = kind {
            describe(&mut marker, kind);
        }
        out.put(record, out.period.time(time), second, marker)
    }
}

/// The destination of events, and the limits that they are checked against.
struct Output<'a> {
    thread: &'a dyn Fn(u32) -> Tid,
    period: Period,
    open: &'a mut OpenIntervals,
    events: &'a mut Vec<Event>,
}

impl Output<'_> {
    fn put(&mut self, record: u8, time: Timestamp, id: u64, marker: Box<Marker>) -> Option<()> {
        let starts_late = matches!(marker.timing, MarkerTiming::Interval { start } if start > time);
        if time > self.period.until || starts_late {
            return None;
        }
        let id = (marker.pid, id);
        let known = match record {
            record::START => self.open.begin(id, time, marker),
            record::END => self.open.end(id, time, marker),
            _ => Some((time, marker)),
        };
        let Some((time, marker)) = known else { return Some(()) };
        if time >= self.period.since {
            self.events.push(Event { time, cpu: None, kind: EventKind::Marker(marker) });
        }
        Some(())
    }
}

/// Gives a marker the properties of its kind.
fn describe(marker: &mut Marker, kind: &mut MarkerKind) {
    if marker.name.is_empty() {
        marker.name = Arc::clone(&kind.marker_name);
    }
    if let Some(track) = &kind.track {
        marker.track = Track::Named(Arc::clone(track));
    }
    marker.category.clone_from(&kind.category);
    kind.name_flows(marker.pid, &mut marker.values);
    marker.schema = Some(kind.schema(&marker.values));
}

fn values(mut input: Cursor<'_>, count: u16, fields: usize) -> Option<Vec<FieldValue>> {
    let mut values = vec![FieldValue::Missing; fields];
    for _ in 0..count {
        let (field, tag) = (input.u8()?, input.u8()?);
        let found = match tag {
            value::INTEGER => FieldValue::Integer(input.u64()?.cast_signed()),
            value::NUMBER => FieldValue::Number(f64::from_bits(input.u64()?)),
            value::TEXT => FieldValue::String(text(&mut input)?.into()),
            _ => return None,
        };
        *values.get_mut(usize::from(field))? = found;
    }
    Some(values)
}

/// The first record, and the bytes behind it. `None` if it is not complete.
fn split_record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = Cursor::new(bytes, 0, true).u32()? as usize;
    (len >= record::HEADER && len.is_multiple_of(8)).then_some(())?;
    bytes.split_at_checked(len)
}

/// A text with its length before it.
fn text<'a>(input: &mut Cursor<'a>) -> Option<&'a str> {
    let len = input.u16()?;
    std::str::from_utf8(input.bytes(usize::from(len))?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_tracing::protocol::{Field, Number, Values, put_kind, put_marker, put_thread};

    const PERIOD: Period = Period { since: Timestamp(100), until: Timestamp(1000), ahead_ns: 0 };

    /// Decodes records, and shows each marker as a line.
    fn decode(bytes: &[u8]) -> (Vec<String>, u64) {
        let (mut decoder, mut open, mut events) =
            (Decoder::new(Pid(7)), OpenIntervals::default(), Vec::new());
        decoder.decode(bytes, &|tid| Tid(tid + 1), PERIOD, &mut open, &mut events);
        open.finish(&mut events);
        (events.iter().map(line).collect(), decoder.unreadable())
    }

    fn line(event: &Event) -> String {
        let EventKind::Marker(marker) = &event.kind else { panic!("{event:?}") };
        let track = match &marker.track {
            Track::Thread(tid) => tid.0.to_string(),
            Track::Named(name) => name.to_string(),
        };
        let fields = marker.schema.iter().flat_map(|schema| &schema.fields).zip(&marker.values);
        let fields: Vec<_> = fields
            .map(|(field, value)| match value {
                FieldValue::String(text) => format!(" {}={text}", field.key),
                FieldValue::Integer(number) => format!(" {}={number}", field.key),
                FieldValue::Number(number) => format!(" {}={number:?}", field.key),
                FieldValue::Missing => String::new(),
            })
            .collect();
        let timing = match marker.timing {
            MarkerTiming::Interval { start } => format!("{}-", start.0),
            MarkerTiming::Instant => String::new(),
            other => format!("{other:?} "),
        };
        format!("{track}: {} {timing}{}{}", marker.name, event.time.0, fields.concat())
    }

    fn request() -> protocol::MarkerKind<'static> {
        let field = |key, format| Field { key, label: "", format };
        protocol::MarkerKind {
            name: "request".into(),
            marker_name: "GET",
            fields: vec![field("path", ""), field("flow", "flow-id")],
            ..protocol::MarkerKind::default()
        }
    }

    fn put(out: &mut Vec<u8>, record: u8, kind: u32, name: &str, times: (u64, u64)) {
        put_marker(out, (record, kind), name, times, &Values::new(), &[]);
    }

    #[test]
    fn markers_have_their_threads_names_and_fields() {
        let mut out = Vec::new();
        put_thread(&mut out, 20);
        put_kind(&mut out, 3, &request());
        let mut values = Values::new();
        values.text(0, "/");
        put_marker(&mut out, (record::INTERVAL, 3), "", (150, 200), &values, &[(1, Number::Integer(16))]);
        put(&mut out, record::INSTANT, 3, "POST", (210, 0));
        put_thread(&mut out, 30);
        put(&mut out, record::INTERVAL, protocol::PLAIN_KIND, "plain", (50, 220));
        let expected = ["21: GET 150-200 path=/ flow=7-10", "21: POST 210", "31: plain 50-220"];
        assert_eq!(decode(&out), (expected.map(str::to_owned).to_vec(), 0));
    }

    #[test]
    fn an_interval_may_end_elsewhere_with_new_values() {
        let mut kind = request();
        kind.track = "tasks";
        kind.fields.push(Field { key: "polls", ..Field::default() });
        let mut out = Vec::new();
        put_kind(&mut out, 1, &kind);
        let mut values = Values::new();
        values.text(0, "/");
        put_marker(&mut out, (record::START, 1), "", (150, 5), &values, &[(2, Number::Integer(1))]);
        put_marker(&mut out, (record::START, 1), "open", (160, 6), &values, &[]);
        put_marker(&mut out, (record::END, 1), "", (190, 5), &Values::new(), &[(2, Number::Integer(3))]);
        // Records of different threads are read in any order.
        put_marker(&mut out, (record::END, 1), "early", (190, 7), &Values::new(), &[]);
        put_marker(&mut out, (record::START, 1), "", (170, 7), &values, &[]);
        put_marker(&mut out, (record::END, 1), "lost", (195, 8), &Values::new(), &[]);
        let expected = [
            "tasks: GET 150-190 path=/ polls=3",
            "tasks: early 170-190 path=/",
            "tasks: open IntervalStart 160 path=/",
            "tasks: lost IntervalEnd 195",
        ];
        assert_eq!(decode(&out), (expected.map(str::to_owned).to_vec(), 0));
    }

    #[test]
    fn nonsense_is_counted_and_the_rest_kept() {
        let check = |name: &str, spoil: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            put(&mut out, record::INSTANT, 0, "before", (110, 0));
            spoil(&mut out);
            put(&mut out, record::INSTANT, 0, "after", (120, 0));
            let expected = ["7: before 110", "7: after 120"];
            assert_eq!(decode(&out), (expected.map(str::to_owned).to_vec(), 1), "{name}");
        };
        check("an unknown kind of marker", &|out| put(out, record::INSTANT, 9, "x", (110, 0)));
        check("a time to come", &|out| put(out, record::INSTANT, 0, "x", (1001, 0)));
        check("an end before its start", &|out| put(out, record::INTERVAL, 0, "x", (300, 200)));
        check("an unknown kind of record", &|out| put(out, 77, 0, "x", (110, 0)));
        check("a field that is not there", &|out| {
            put_marker(out, (record::INSTANT, 0), "x", (110, 0), &Values::new(), &[(0, Number::Integer(1))]);
        });
        check("a name beyond the record", &|out| {
            let at = out.len();
            put(out, record::INSTANT, 0, "x", (110, 0));
            out[at + 12] = 200;
        });
        check("a name that is not text", &|out| {
            put(out, record::INSTANT, 0, "x", (110, 0));
            let at = out.len() - 8;
            out[at] = 0xff;
        });
    }

    #[test]
    fn what_was_before_the_recording_is_left_out() {
        let mut out = Vec::new();
        put(&mut out, record::INTERVAL, 0, "x", (50, 99));
        assert_eq!(decode(&out), (vec![], 0));
    }

    #[test]
    fn nothing_is_read_behind_a_nonsensical_length() {
        for len in [0_u32, 4, 12, 4096, u32::MAX] {
            let mut out = Vec::new();
            put(&mut out, record::INSTANT, 0, "before", (110, 0));
            let at = out.len();
            put(&mut out, record::INSTANT, 0, "cut", (110, 0));
            out[at..at + 4].copy_from_slice(&len.to_le_bytes());
            assert_eq!(decode(&out), (vec!["7: before 110".to_owned()], 1), "{len}");
        }
    }

    #[test]
    fn a_header_that_cannot_be_is_none() {
        let good = {
            let mut bytes = vec![0; header::LEN];
            bytes[..8].copy_from_slice(&protocol::MAGIC);
            bytes[header::CAPACITY] = 64;
            bytes[header::WRITTEN] = 32;
            bytes[header::READ] = 16;
            bytes
        };
        assert_eq!(FileHeader::parse(&good).map(|header| header.written), Some(32));
        for (at, byte) in [
            (0, 0),
            (header::CAPACITY, 60),
            (header::CAPACITY, 0),
            (header::CAPACITY + 7, 1),
            (header::READ, 33),
            (header::WRITTEN, 200),
        ] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert_eq!(FileHeader::parse(&bad), None, "{at} {byte}");
        }
        assert_eq!(FileHeader::parse(&good[..header::READ]), None);
    }
}
