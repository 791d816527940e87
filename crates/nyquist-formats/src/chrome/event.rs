//! Reads the events of a trace, one at a time. A truncated trace gives the events before the end.

use std::borrow::Cow;
use std::fmt;

use nyquist_profile::{Measure, Unit};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::RESERVED;
use super::samples::TraceSamples;
use super::unparsed_value::{ThreadId, UnparsedValue};

/// An event, as far as it is used. Its values stay in the document.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(borrow)]
    pub ph: Cow<'a, str>,
    #[serde(borrow)]
    pub name: UnparsedValue<'a>,
    #[serde(borrow)]
    pub cat: UnparsedValue<'a>,
    #[serde(borrow)]
    pub pid: UnparsedValue<'a>,
    #[serde(borrow)]
    pub tid: UnparsedValue<'a>,
    #[serde(borrow)]
    pub id: UnparsedValue<'a>,
    /// An id that is valid within a process, or for all processes.
    #[serde(borrow)]
    pub id2: UnparsedValue<'a>,
    /// In µs.
    #[serde(borrow)]
    pub ts: UnparsedValue<'a>,
    /// In µs.
    #[serde(borrow)]
    pub dur: UnparsedValue<'a>,
    /// In µs of the thread's CPU time. Some events have no other duration.
    #[serde(borrow)]
    pub tdur: UnparsedValue<'a>,
    #[serde(borrow)]
    pub args: UnparsedValue<'a>,
}

impl Event<'_> {
    /// Its name, before [`written_name`](super::written_name) changed it.
    pub(super) fn name(&self) -> Cow<'_, str> {
        match self.name.text() {
            Cow::Borrowed(name) => plain_name(name).into(),
            Cow::Owned(name) => plain_name(&name).to_owned().into(),
        }
    }

    /// How long a complete event lasts, in ns.
    pub(super) fn duration(&self) -> u64 {
        let declared = if self.dur.json().is_empty() { self.tdur } else { self.dur };
        declared.microseconds()
    }

    /// The ids of its process and thread.
    pub(super) fn thread(&self) -> ThreadId {
        (self.pid.id(), self.tid.id())
    }
}

fn plain_name(name: &str) -> &str {
    name.strip_suffix(' ').filter(|name| RESERVED.contains(name)).unwrap_or(name)
}

/// The data of a trace besides its events.
#[derive(Default)]
pub(super) struct OtherData {
    /// Samples that refer to a table of frames.
    pub samples: TraceSamples,
    /// The measure of durations, if the file states it as our own files do.
    pub measure: Option<Measure>,
}

/// Reads the events, passes each to `take`, and returns the other data. The document is an array of events,
/// or an object with `traceEvents`. The closing bracket may be missing. The error is that at the place up to
/// which the document was read.
pub(super) fn read_events<'a>(
    bytes: &'a [u8],
    take: &mut impl FnMut(Event<'a>),
) -> (OtherData, Result<(), serde_json::Error>) {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let mut other_data = OtherData::default();
    let read = TraceDocument { take, other_data: &mut other_data }.deserialize(&mut json);
    (other_data, read.and_then(|()| json.end()))
}

/// The measure in `otherData`.
fn measure(other: UnparsedValue<'_>) -> Option<Measure> {
    let other = other.value();
    let measure = &other["measure"];
    let unit = Unit::of_name(measure["unit"].as_str()?)?;
    Some(Measure { name: measure["name"].as_str()?.to_owned(), unit })
}

struct TraceDocument<'s, Take> {
    take: &'s mut Take,
    other_data: &'s mut OtherData,
}

impl<'de, Take: FnMut(Event<'de>)> DeserializeSeed<'de> for TraceDocument<'_, Take> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, Take: FnMut(Event<'de>)> Visitor<'de> for TraceDocument<'_, Take> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of events, or an object with traceEvents")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> Result<(), A::Error> {
        while let Some(event) = events.next_element()? {
            (self.take)(event);
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(key) = members.next_key::<Cow<'de, str>>()? {
            match &*key {
                "traceEvents" => {
                    members.next_value_seed(TraceDocument {
                        take: &mut *self.take,
                        other_data: &mut *self.other_data,
                    })?;
                }
                "samples" => self.other_data.samples.read_samples(members.next_value()?),
                "stackFrames" => self.other_data.samples.read_frames(members.next_value()?),
                "otherData" => self.other_data.measure = measure(members.next_value()?),
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}
