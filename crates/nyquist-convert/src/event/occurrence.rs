//! A requested event that happened on a thread: a page fault, a tracepoint, the call of a function.

use std::sync::Arc;

use nyquist_profile::{MarkerDisplay, MarkerField, MarkerFormat, MarkerSchema, well_known};

use super::{FieldValue, Sample, Tid};

/// Something that happened on a thread at the event's time.
#[derive(Clone, Debug, PartialEq)]
pub struct Occurrence {
    /// Its kind.
    pub kind: Arc<OccurrenceKind>,
    /// The thread, and its stack. Its period and CPU time are not looked at.
    pub sample: Sample,
    /// How many times it has happened since the last one, with this one. Not looked at if there is a counter.
    pub count: u64,
    /// The counter of the event, for sources that have one: then the count is what it has counted since the last occurrence.
    pub counter: Option<OccurrenceCounter>,
    /// The values of the fields that the kind has of its own, in their order.
    pub values: Vec<FieldValue>,
}

/// A counter of an event, at the time of an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OccurrenceCounter {
    /// The source's number of the counter.
    pub id: u64,
    /// The thread whose events it counts, if each thread counts from 0.
    pub tid: Option<Tid>,
    /// What it has counted.
    pub value: u64,
}

/// A kind of event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OccurrenceKind {
    /// Its name, as it was asked for.
    pub name: Arc<str>,
    /// The kind of marker that it becomes, whose first field is the count.
    pub schema: Arc<MarkerSchema>,
    /// How many markers are made of it at most. Later ones are counted, and left out.
    pub most: u64,
}

impl OccurrenceKind {
    /// One of this name, with fields of its own.
    pub fn new(name: &str, fields: &[(String, MarkerFormat)], most: u64) -> Self {
        let field = |key: &str, label: Option<&str>, format| MarkerField {
            key: key.to_owned(),
            label: label.map(str::to_owned),
            format,
        };
        let count = field(well_known::EVENT_COUNT, Some("Count"), MarkerFormat::Integer);
        let own = fields.iter().map(|(key, format)| field(key, None, *format));
        let said = |(key, _): &(String, MarkerFormat)| format!("{key}={{marker.data.{key}}}");
        let label = match fields {
            [] => "{marker.name}".to_owned(),
            fields => fields.iter().map(said).collect::<Vec<_>>().join(" "),
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
