//! Additional events: those that are recorded besides the sampling event, such as tracepoints, page faults and
//! context switches. Their samples become markers, or facts about waits.

use std::sync::Arc;

use nyquist_perf::file::{self, FieldKind, TracepointField, TracepointFormat};
use nyquist_perf::{ByteOrder, RecordFormat, SampleType};
use nyquist_profile::MarkerFormat;

use crate::event::{
    EventKind, FieldValue, Occurrence, OccurrenceCounter, OccurrenceKind, Sample, Tid, Wakeup,
};

/// The offset of the context flags in every tracepoint's raw data (`common_flags`), and the flags of hard and
/// soft interrupts (`TRACE_FLAG_HARDIRQ` and `TRACE_FLAG_SOFTIRQ` in Linux's `include/linux/trace_events.h`).
const CONTEXT_AT: usize = 2;
const INTERRUPTS: u8 = 0x18;

/// An event that is recorded in addition to the sampling event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdditionalEvent {
    /// How its samples are used.
    pub kind: AdditionalEventKind,
    /// The fields of its samples.
    pub fields: SampleFields,
}

/// The fields of the samples of an additional event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampleFields {
    /// The same fields as the clock's.
    #[default]
    Common,
    /// The same fields, but the period is that of the next sample: so the kernel states it for events that it counts
    /// itself and whose period it adapts to a rate (`perf_swevent_set_period`).
    NextPeriod,
    /// The same fields without a period (`PERF_SAMPLE_PERIOD`). If the kernel has to write a period that does
    /// not change, it records each occurrence of software events and tracepoints.
    NoPeriod,
    /// The event's counter in place of a period (`PERF_SAMPLE_READ`). If the period changes with the rate, it
    /// is an estimate of the kernel, but the counter is exact.
    Count,
}

impl SampleFields {
    /// The layout of the samples, given the layout of the clock's samples.
    pub fn format(self, clocks: RecordFormat) -> RecordFormat {
        let without = clocks.without_period();
        match self {
            Self::Common | Self::NextPeriod => clocks,
            Self::NoPeriod => without,
            Self::Count => {
                RecordFormat { sample_type: without.sample_type.with(SampleType::READ), ..without }
            }
        }
    }
}

/// How the samples of an additional event are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdditionalEventKind {
    /// They become markers.
    Occurrences(OccurrenceEvent),
    /// They are the stacks of threads that leave their CPU (`sched:sched_switch`).
    SwitchStacks,
    /// They name threads that others make ready to run (`sched:sched_waking`), with the fields of its raw data.
    Wakeups(TracepointFormat),
}

impl AdditionalEvent {
    /// Converts a sample of the event. `None` if its raw data does not match its format.
    pub(super) fn event_kind(
        &self,
        sample: Sample,
        record: &nyquist_perf::Sample<'_>,
        counter: Option<OccurrenceCounter>,
    ) -> Option<EventKind> {
        Some(match &self.kind {
            AdditionalEventKind::Occurrences(event) => {
                EventKind::Occurrence(Box::new(event.occurrence(sample, record, counter)))
            }
            AdditionalEventKind::SwitchStacks => EventKind::SwitchStack(sample),
            AdditionalEventKind::Wakeups(format) => {
                let raw = record.raw?;
                let woken = format.fields.iter().find(|field| field.name == "pid")?;
                let file::FieldValue::Integer(woken) = woken.value(raw, ByteOrder::Little)? else {
                    return None;
                };
                let woken = Tid(u32::try_from(woken).ok()?);
                let in_interrupt = raw.get(CONTEXT_AT)? & INTERRUPTS != 0;
                EventKind::Wakeup(Box::new(Wakeup { sample, woken, in_interrupt }))
            }
        })
    }

    /// Whether the user has requested its samples.
    pub(super) fn is_requested(&self) -> bool {
        matches!(self.kind, AdditionalEventKind::Occurrences(_))
    }
}

/// An event whose samples become markers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OccurrenceEvent {
    kind: Arc<OccurrenceKind>,
    details: Details,
    /// How many occurrences each sample stands for, if the number is fixed. The period that some tracepoints
    /// state is an amount, such as the nanoseconds of `sched:sched_stat_runtime`.
    period: Option<u64>,
}

/// The contents of its samples besides their stack.
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
    /// An event of this name, of which at most `most` markers are made. `period` is how many occurrences each
    /// sample stands for. It is needed if the period in the samples is missing or means something else.
    pub fn new(name: &str, details: Details, period: Option<u64>, most: u64) -> Self {
        let fields: Vec<_> = match &details {
            Details::None => Vec::new(),
            Details::Address => vec![("addr".to_owned(), MarkerFormat::Hexadecimal)],
            Details::Fields(format) => {
                shown_fields(format).map(|field| (field.name.clone(), marker_format(field))).collect()
            }
        };
        Self { kind: Arc::new(OccurrenceKind::new(name, &fields, most)), details, period }
    }

    /// The contents of a sample of the event.
    fn occurrence(
        &self,
        sample: Sample,
        record: &nyquist_perf::Sample<'_>,
        counter: Option<OccurrenceCounter>,
    ) -> Occurrence {
        let values = match &self.details {
            Details::None => Vec::new(),
            Details::Address => {
                let address = record.data_address.and_then(|address| i64::try_from(address).ok());
                vec![address.map_or(FieldValue::Missing, FieldValue::Integer)]
            }
            Details::Fields(format) => {
                let raw = record.raw.unwrap_or_default();
                shown_fields(format).map(|field| field_value(field.value(raw, ByteOrder::Little))).collect()
            }
        };
        let count = self.period.or(record.period).unwrap_or(1).max(1);
        let counter = counter.filter(|_| self.period.is_none());
        Occurrence { kind: Arc::clone(&self.kind), sample, count, counter, values }
    }
}

/// The fields of a tracepoint that are numbers or texts.
pub(crate) fn shown_fields(format: &TracepointFormat) -> impl Iterator<Item = &TracepointField> {
    format.fields.iter().filter(|field| field.kind != FieldKind::Other)
}

/// How a tracepoint's field is shown.
pub(crate) fn marker_format(field: &TracepointField) -> MarkerFormat {
    match field.kind {
        FieldKind::Unsigned | FieldKind::Signed if field.name.ends_with("pid") => MarkerFormat::Pid,
        FieldKind::Unsigned if field.size == 8 => MarkerFormat::Hexadecimal,
        FieldKind::Unsigned | FieldKind::Signed => MarkerFormat::Integer,
        _ => MarkerFormat::String,
    }
}

/// The value of a tracepoint's field.
pub(crate) fn field_value(value: Option<file::FieldValue>) -> FieldValue {
    match value {
        Some(file::FieldValue::Integer(number)) => {
            i64::try_from(number).map_or(FieldValue::Missing, FieldValue::Integer)
        }
        Some(file::FieldValue::Text(text)) => FieldValue::String(text.into()),
        None => FieldValue::Missing,
    }
}

/// The open additional events, by the kernel's ids of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdditionalEvents {
    /// Ascending by id.
    by_id: Arc<[(u64, Arc<AdditionalEvent>)]>,
}

impl FromIterator<(u64, Arc<AdditionalEvent>)> for AdditionalEvents {
    fn from_iter<I: IntoIterator<Item = (u64, Arc<AdditionalEvent>)>>(events: I) -> Self {
        let mut by_id: Vec<_> = events.into_iter().collect();
        by_id.sort_unstable_by_key(|(id, _)| *id);
        Self { by_id: by_id.into() }
    }
}

impl AdditionalEvents {
    /// The fields of the samples of the event with this id. The samples of other events have those of the
    /// clock.
    pub fn fields(&self, id: u64) -> SampleFields {
        self.get(Some(id)).map(|event| event.fields).unwrap_or_default()
    }

    /// Whether there are no such events.
    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The event with this id. Logarithmic in the number of events, and free without events.
    pub(super) fn get(&self, id: Option<u64>) -> Option<&AdditionalEvent> {
        let id = id.filter(|_| !self.by_id.is_empty())?;
        let at = self.by_id.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.by_id.get(at).map(|(_, event)| &**event)
    }
}
