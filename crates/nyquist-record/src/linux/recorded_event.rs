//! Events that a recording takes beside the clock.

use nyquist_convert::perf::{Details, OccurrenceEvent};
use nyquist_perf::file::TracepointFormat;
use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_ALIGNMENT_FAULTS, PERF_COUNT_SW_PAGE_FAULTS, PERF_COUNT_SW_PAGE_FAULTS_MAJ,
    PERF_COUNT_SW_PAGE_FAULTS_MIN, PERF_TYPE_SOFTWARE,
};

use super::event_names::{Event, EventSources, Interval};
use super::limits;

/// The most markers of one event, and of all together: some 200 MB of memory, and some 800 MB.
const MOST_MARKERS: u64 = 1_000_000;
const MOST_MARKERS_IN_ALL: u64 = 4_000_000;

/// An event that is recorded beside the clock.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedEvent {
    /// What.
    pub event: Event,
    /// When a sample is taken.
    pub interval: Interval,
    /// Which occurrences of a tracepoint are recorded, in the kernel's words; all where there is none.
    pub filter: Option<String>,
    /// The fields of a tracepoint, where they can be read.
    format: Option<TracepointFormat>,
}

impl RecordedEvent {
    /// An event, sampled as its name says, else as `interval` says, else as is usual: each of the calls and tracepoints, and of
    /// other events so many a second.
    pub fn new(event: Event, interval: Option<Interval>, rate_hz: u32, sources: &EventSources) -> Self {
        let is_rare = event.is_tracepoint() || event.is_probe();
        let most_hz =
            limits::kernel_setting("perf_event_max_sample_rate").and_then(|most| u32::try_from(most).ok());
        let rate_hz = rate_hz.min(most_hz.filter(|most| *most > 0).unwrap_or(u32::MAX));
        let usual = if is_rare { Interval::Period(1) } else { Interval::Frequency(rate_hz.into()) };
        let interval = event.interval.or(interval).unwrap_or(usual);
        let format = event.is_tracepoint().then(|| tracepoint_format(&event, sources)).flatten();
        Self { event, interval, filter: None, format }
    }

    /// The names of the fields of a tracepoint.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.format.iter().flat_map(|format| &format.fields).map(|field| &*field.name)
    }

    /// What the converter is to know of it; `events` says how many there are.
    pub(crate) fn described(&self, events: usize) -> OccurrenceEvent {
        let details = match &self.format {
            Some(format) => Details::Fields(format.clone()),
            None if self.has_address() => Details::Address,
            None => Details::None,
        };
        let most = MOST_MARKERS.min(MOST_MARKERS_IN_ALL / events.max(1) as u64);
        OccurrenceEvent::new(&self.event.name, details, most)
    }

    /// Whether it is an access to memory whose address is known.
    fn has_address(&self) -> bool {
        let faults = [
            PERF_COUNT_SW_PAGE_FAULTS,
            PERF_COUNT_SW_PAGE_FAULTS_MIN,
            PERF_COUNT_SW_PAGE_FAULTS_MAJ,
            PERF_COUNT_SW_ALIGNMENT_FAULTS,
        ];
        self.event.selectors.iter().all(|selector| {
            selector.kind == PERF_TYPE_SOFTWARE
                && faults.iter().any(|fault| u64::from(*fault) == selector.config[0])
        })
    }
}

/// The fields of a tracepoint, by tracefs. `None` where it cannot be read: then its occurrences have no fields.
fn tracepoint_format(event: &Event, sources: &EventSources) -> Option<TracepointFormat> {
    let id = event.selectors.first()?.config[0];
    let (group, name) = sources.tracepoint_of_id(&event.name, id)?;
    let text = sources.tracepoint_file(&group, &name, "format").ok()?;
    TracepointFormat::parse(&group, &text).filter(|format| format.id == id)
}
