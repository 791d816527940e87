//! The events of a trace, one at a time: a trace that was cut off gives those before the cut.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::RESERVED;
use crate::json::nanoseconds;

/// The ids of a process and of a thread.
pub(super) type ThreadId = (String, String);

/// An event, as far as it is used.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    pub ph: String,
    pub name: Value,
    pub cat: Value,
    pub pid: Value,
    pub tid: Value,
    pub id: Value,
    /// An id that holds within a process, or for all of them.
    pub id2: Value,
    /// In µs.
    pub ts: Value,
    /// In µs.
    pub dur: Value,
    pub args: Value,
}

/// Reads the events, and gives each to `take`. The document is an array of them or an object with `traceEvents`; the
/// closing bracket may be missing. The error is that at the place up to which events were read.
pub(super) fn read_events(bytes: &[u8], take: &mut impl FnMut(Event)) -> Result<(), serde_json::Error> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    Document { take }.deserialize(&mut json)?;
    json.end()
}

/// A time in µs as ns, a number or one in a string.
pub(super) fn microseconds(value: &Value) -> u64 {
    let number = value.as_f64().or_else(|| value.as_str().and_then(|text| text.parse().ok()));
    nanoseconds(number.unwrap_or(0.0), 1000.0)
}

/// The name of an event, as it was before it was [written](super::written_name).
pub(super) fn name_of(value: &Value) -> String {
    let name = value.as_str().unwrap_or_default();
    name.strip_suffix(' ').filter(|name| RESERVED.contains(name)).unwrap_or(name).to_owned()
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

struct Document<'a, Take> {
    take: &'a mut Take,
}

impl<'de, Take: FnMut(Event)> DeserializeSeed<'de> for Document<'_, Take> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, Take: FnMut(Event)> Visitor<'de> for Document<'_, Take> {
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
        while let Some(key) = members.next_key::<String>()? {
            if key == "traceEvents" {
                members.next_value_seed(Document { take: &mut *self.take })?;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}
