//! A requested event that happened on a thread: a page fault, a tracepoint, the call of a function.

use std::sync::Arc;

use nyquist_profile::{MarkerDisplay, MarkerField, MarkerFormat, MarkerSchema, well_known};

use super::ids::Tid;
use super::marker::FieldValue;
use super::sample::Sample;

/// Something that happened on a thread at the event's time.
#[derive(Clone, Debug, PartialEq)]
pub struct Occurrence {
    /// Its kind.
    pub kind: Arc<OccurrenceKind>,
    /// The thread, and its stack. The sample's period and CPU time are not used.
    pub sample: Sample,
    /// How many times it has happened since the last occurrence, including this one. Not used if a counter
    /// exists.
    pub count: u64,
    /// The counter of the event, for sources that have one. The count is then the counter's increase since
    /// the last occurrence.
    pub counter: Option<OccurrenceCounter>,
    /// The values of the kind's own fields, in their order.
    pub values: Vec<FieldValue>,
}

/// A counter of an event, at the time of an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OccurrenceCounter {
    /// The source's number of the counter.
    pub id: u64,
    /// The thread whose events it counts, if each thread counts from 0.
    pub tid: Option<Tid>,
    /// Its value.
    pub value: CounterValue,
}

/// The value of a counter of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterValue {
    /// How many times the event has happened in all.
    Total(u64),
    /// After how many more times the next occurrence is recorded.
    UntilNext(u64),
}

/// A kind of event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OccurrenceKind {
    /// Its name, as the user gave it.
    pub name: Arc<str>,
    /// The kind of marker that it becomes, whose first field is the count.
    pub schema: Arc<MarkerSchema>,
    /// The most markers that are made of it. Later occurrences are counted, but get no marker.
    pub most: u64,
}

impl OccurrenceKind {
    /// A kind of this name, with its own fields.
    pub fn new(name: &str, fields: &[(String, MarkerFormat)], most: u64) -> Self {
        let field = |key: &str, label: Option<&str>, format| MarkerField {
            key: key.to_owned(),
            label: label.map(str::to_owned),
            format,
        };
        let count = field(well_known::EVENT_COUNT, Some("Count"), MarkerFormat::Integer);
        let own = fields.iter().map(|(key, format)| field(key, None, *format));
        let key_and_value = |(key, _): &(String, MarkerFormat)| format!("{key}={{marker.data.{key}}}");
        let label = match fields {
            [] => "{marker.name}".to_owned(),
            fields => fields.iter().map(key_and_value).collect::<Vec<_>>().join(" "),
        };
        let schema = MarkerSchema {
            name: well_known::event_schema(name),
            display: vec![MarkerDisplay::Chart, MarkerDisplay::Table],
            fields: [count].into_iter().chain(own).collect(),
            tooltip_label: Some("{marker.name}".to_owned()),
            table_label: Some(label),
            chart_label: Some("{marker.name}".to_owned()),
            description: Some("An event that was recorded, with its stack.".to_owned()),
            is_stack_based: false,
        };
        Self { name: name.into(), schema: Arc::new(schema), most }
    }
}
