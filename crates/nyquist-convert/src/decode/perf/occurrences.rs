//! Samples of events that are recorded beside the clock: which events these are, and what their samples say.

use std::sync::Arc;

use nyquist_perf::ByteOrder;
use nyquist_perf::file::{self, Field, FieldKind, TracepointFormat};
use nyquist_profile::MarkerFormat;

use crate::event::{FieldValue, Occurrence, OccurrenceKind, Sample};

/// An event that is recorded beside the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OccurrenceEvent {
    kind: Arc<OccurrenceKind>,
    details: Details,
}

/// What its samples say besides their stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Details {
    /// Nothing.
    None,
    /// The address of the memory that was accessed.
    Address,
    /// The fields of a tracepoint.
    Fields(TracepointFormat),
}

impl OccurrenceEvent {
    /// An event of this name, of which so many markers are made at most.
    pub fn new(name: &str, details: Details, most: u64) -> Self {
        let fields: Vec<_> = match &details {
            Details::None => Vec::new(),
            Details::Address => vec![("addr".to_owned(), MarkerFormat::Hexadecimal)],
            Details::Fields(format) => {
                shown(format).map(|field| (field.name.clone(), marker_format(field))).collect()
            }
        };
        Self { kind: Arc::new(OccurrenceKind::new(name, &fields, most)), details }
    }

    /// What a sample of the event says.
    pub(super) fn occurrence(&self, sample: Sample, record: &nyquist_perf::Sample<'_>) -> Occurrence {
        let values = match &self.details {
            Details::None => Vec::new(),
            Details::Address => {
                let address = record.data_address.and_then(|address| i64::try_from(address).ok());
                vec![address.map_or(FieldValue::Missing, FieldValue::Integer)]
            }
            Details::Fields(format) => {
                let raw = record.raw.unwrap_or_default();
                shown(format).map(|field| value(field.value(raw, ByteOrder::Little))).collect()
            }
        };
        let count = record.period.unwrap_or(1).max(1);
        Occurrence { kind: Arc::clone(&self.kind), sample, count, values }
    }
}

/// The fields of a tracepoint that are numbers or texts.
pub(crate) fn shown(format: &TracepointFormat) -> impl Iterator<Item = &Field> {
    format.fields.iter().filter(|field| field.kind != FieldKind::Other)
}

/// How a tracepoint's field is shown.
pub(crate) fn marker_format(field: &Field) -> MarkerFormat {
    match field.kind {
        FieldKind::Unsigned | FieldKind::Signed if field.name.ends_with("pid") => MarkerFormat::Pid,
        FieldKind::Unsigned if field.size == 8 => MarkerFormat::Hexadecimal,
        FieldKind::Unsigned | FieldKind::Signed => MarkerFormat::Integer,
        _ => MarkerFormat::String,
    }
}

/// The value of a tracepoint's field.
pub(crate) fn value(value: Option<file::FieldValue>) -> FieldValue {
    match value {
        Some(file::FieldValue::Integer(number)) => {
            i64::try_from(number).map_or(FieldValue::Missing, FieldValue::Integer)
        }
        Some(file::FieldValue::Text(text)) => FieldValue::String(text.into()),
        None => FieldValue::Missing,
    }
}

/// The opened events that are recorded beside the clock, by the kernel's numbers of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occurrences {
    /// Ascending by number.
    by_id: Arc<[(u64, Arc<OccurrenceEvent>)]>,
}

impl FromIterator<(u64, Arc<OccurrenceEvent>)> for Occurrences {
    fn from_iter<I: IntoIterator<Item = (u64, Arc<OccurrenceEvent>)>>(events: I) -> Self {
        let mut by_id: Vec<_> = events.into_iter().collect();
        by_id.sort_unstable_by_key(|(id, _)| *id);
        Self { by_id: by_id.into() }
    }
}

impl Occurrences {
    /// The event of that number. Takes time logarithmic in the number of events, and none where there are none.
    pub(super) fn get(&self, id: Option<u64>) -> Option<&OccurrenceEvent> {
        let id = id.filter(|_| !self.by_id.is_empty())?;
        let at = self.by_id.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.by_id.get(at).map(|(_, event)| &**event)
    }
}
