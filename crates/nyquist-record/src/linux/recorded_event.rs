//! Additional events: those that are recorded besides the sampling event. The user requests them, or the
//! recording of waits does.

use nyquist_convert::perf::{AdditionalEvent, AdditionalEventKind, Details, OccurrenceEvent, SampleFields};
use nyquist_perf::file::TracepointFormat;
use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_ALIGNMENT_FAULTS, PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_PAGE_FAULTS,
    PERF_COUNT_SW_PAGE_FAULTS_MAJ, PERF_COUNT_SW_PAGE_FAULTS_MIN, PERF_COUNT_SW_TASK_CLOCK,
    PERF_TYPE_SOFTWARE,
};

use super::event_names::{EventSources, RequestedEvent, SampleInterval, parse};
use super::{limits, namespaces};

/// The most markers of one event, and of all together: some 200 MB of memory, and some 800 MB.
const MAX_MARKERS: u64 = 1_000_000;
const MAX_TOTAL_MARKERS: u64 = 4_000_000;

/// Only the switches of threads that wait, and not of those that could continue to run (then `prev_state` is
/// a state of `TASK_REPORT`, in Linux's `include/linux/sched.h`).
const WAITS: &str = "prev_state & 255";

/// How many switches and wake-ups with a stack are recorded per second on each CPU: at some 5 µs each, they
/// use 1 % of it.
const STACKS_HZ: u64 = 2000;

/// How the recorded occurrences of an event are selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pacing {
    /// One of every N.
    Fixed(u64),
    /// By the kernel, for a number of samples per second.
    ByKernel(u64),
    /// By the reader, which changes the period. After a burst, the kernel's own periods are far too long.
    ByReader(u64),
}

/// The purpose of a recorded event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// The user requested it: its samples become markers.
    Markers,
    /// The stacks of threads that begin to wait.
    SwitchStacks,
    /// The threads that end the waits of others.
    Wakeups,
}

/// An event that is recorded in addition to the sampling event.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedEvent {
    /// The event.
    pub event: RequestedEvent,
    /// When a sample is recorded.
    pub interval: SampleInterval,
    /// The kernel's filter expression for the occurrences of a tracepoint; `None` records all.
    pub filter: Option<String>,
    /// The fields of a tracepoint, if they are readable.
    format: Option<TracepointFormat>,
    purpose: Purpose,
}

impl RecordedEvent {
    /// An event with the interval in its name, or else `interval`, or else the default: every occurrence of
    /// calls and tracepoints, and `rate_hz` samples per second of other events.
    pub fn new(
        event: RequestedEvent,
        interval: Option<SampleInterval>,
        rate_hz: u32,
        sources: &EventSources,
    ) -> Self {
        let is_rare = event.is_tracepoint() || event.is_probe();
        let most_hz =
            limits::kernel_setting("perf_event_max_sample_rate").and_then(|most| u32::try_from(most).ok());
        let rate_hz = rate_hz.min(most_hz.filter(|most| *most > 0).unwrap_or(u32::MAX));
        let usual =
            if is_rare { SampleInterval::Period(1) } else { SampleInterval::Frequency(rate_hz.into()) };
        let interval = event.interval.or(interval).unwrap_or(usual);
        let format = event.is_tracepoint().then(|| tracepoint_format(&event, sources)).flatten();
        Self { event, interval, filter: None, format, purpose: Purpose::Markers }
    }

    /// The tracepoints that record where threads begin to wait and which threads end their waits, as far as
    /// the kernel has and shows them. They are recorded if permitted, and omitted otherwise. The threads that
    /// end waits are known only in the initial pid namespace, because a tracepoint contains the thread ids of
    /// that namespace.
    pub fn of_waits(sources: &EventSources) -> Vec<Self> {
        let named = [
            ("sched:sched_switch", Purpose::SwitchStacks, Some(WAITS)),
            ("sched:sched_waking", Purpose::Wakeups, None),
        ];
        let recorded = |(name, purpose, filter): (&str, Purpose, Option<&str>)| {
            let event = parse(name, sources).ok()?.into_iter().next()?;
            let format = tracepoint_format(&event, sources)?;
            let (interval, filter) = (SampleInterval::Period(1), filter.map(str::to_owned));
            Some(Self { event, interval, filter, format: Some(format), purpose })
        };
        let requested = |(_, purpose, _): &(&str, Purpose, _)| {
            *purpose != Purpose::Wakeups || namespaces::is_first_of_processes()
        };
        named.into_iter().filter(requested).filter_map(recorded).collect()
    }

    /// Whether the user did not request it, so that a recording can continue without it.
    pub fn is_optional(&self) -> bool {
        self.purpose != Purpose::Markers
    }

    /// The names of the fields of a tracepoint.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.format.iter().flat_map(|format| &format.fields).map(|field| &*field.name)
    }

    /// The description for the converter; `events` is the number of events.
    pub(crate) fn described(&self, events: usize, counts: bool) -> AdditionalEvent {
        let kind = match (self.purpose, &self.format) {
            (Purpose::SwitchStacks, _) => AdditionalEventKind::SwitchStacks,
            (Purpose::Wakeups, Some(format)) => AdditionalEventKind::Wakeups(format.clone()),
            _ => AdditionalEventKind::Occurrences(self.occurrences(events)),
        };
        AdditionalEvent { kind, fields: self.sample_fields(counts) }
    }

    /// How its recorded occurrences are selected. `counts` is whether its samples can contain its count.
    pub(crate) fn pacing(&self, counts: bool) -> Pacing {
        match self.interval {
            _ if self.is_optional() => Pacing::ByReader(STACKS_HZ),
            SampleInterval::Period(period) => Pacing::Fixed(period),
            SampleInterval::Frequency(hz) if counts && self.is_counted_by_kernel() => Pacing::ByReader(hz),
            SampleInterval::Frequency(hz) => Pacing::ByKernel(hz),
        }
    }

    /// The fields of its samples.
    pub(crate) fn sample_fields(&self, counts: bool) -> SampleFields {
        match self.pacing(counts) {
            // The number of switches per sample is not needed.
            Pacing::ByReader(_) if self.is_optional() => SampleFields::NoPeriod,
            Pacing::ByReader(_) => SampleFields::Count,
            Pacing::ByKernel(_) if counts => SampleFields::Count,
            Pacing::ByKernel(_) if self.is_counted_by_kernel() => SampleFields::NextPeriod,
            Pacing::ByKernel(_) | Pacing::Fixed(1) => SampleFields::Common,
            Pacing::Fixed(_) => SampleFields::NoPeriod,
        }
    }

    /// Whether the kernel counts each occurrence itself, as opposed to a timer or a hardware counter.
    fn is_counted_by_kernel(&self) -> bool {
        let clocks = [PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK].map(u64::from);
        self.event.is_tracepoint()
            || self
                .event
                .selectors
                .iter()
                .all(|selector| selector.kind == PERF_TYPE_SOFTWARE && !clocks.contains(&selector.config[0]))
    }

    /// How many occurrences each sample represents, if that number is fixed.
    fn fixed_period(&self) -> Option<u64> {
        match self.interval {
            SampleInterval::Period(period) => Some(period),
            SampleInterval::Frequency(_) => None,
        }
    }

    /// What the samples of a requested event become.
    fn occurrences(&self, events: usize) -> OccurrenceEvent {
        let details = match &self.format {
            Some(format) => Details::Fields(format.clone()),
            None if self.has_address() => Details::Address,
            None => Details::None,
        };
        let most = MAX_MARKERS.min(MAX_TOTAL_MARKERS / events.max(1) as u64);
        OccurrenceEvent::new(&self.event.name, details, self.fixed_period(), most)
    }

    /// Whether it is a memory access with a known address.
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

/// The fields of a tracepoint, from tracefs. `None` if it is not readable: then its occurrences have no
/// fields.
fn tracepoint_format(event: &RequestedEvent, sources: &EventSources) -> Option<TracepointFormat> {
    let id = event.selectors.first()?.config[0];
    let (group, name) = sources.tracepoint_of_id(&event.name, id)?;
    let text = sources.tracepoint_file(&group, &name, "format").ok()?;
    TracepointFormat::parse(&group, &text).filter(|format| format.id == id)
}
