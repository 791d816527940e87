//! Reads traces of Perfetto and of programs that use its library.

use std::rc::Rc;

use nyquist_profile::{MarkerTiming, Measure, StackId, Unit};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::clocks::{BOOTTIME, Clocks};
use super::message::{Annotation, AnnotationContent, Packet, StreamingProfile, Timebase, TrackEvent};
use super::packets;
use super::sequence::Sequence;
use super::stack_sample_message::StackSample;
use super::stack_samples::{self, CounterWeights};
use super::texts::text;
use super::tracks::Tracks;
use crate::chrome::{Args, Slice, SliceKind, TraceMarker, TraceMarkers, add_samples};
use crate::error::{ImportedProfile, Note, ReadError};
use crate::import::{Importer, MILLISECOND};
use crate::pprof::factor_of;

/// The most bytes of paths of libs for each byte of the file.
const PATH_BYTES_PER_BYTE: usize = 16;

/// The flag of a sequence that has cleared its state.
const STATE_CLEARED: u32 = 1;

/// Reads a trace.
///
/// # Errors
/// As for [`read_value`].
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    read_value(bytes, None)
}

/// Reads a trace: the stacks of `PerfSample` if there are any, or else those of `StreamingProfilePacket`, or
/// else the slices of threads. Each interval of time counts for the innermost slice. `samples`, `streaming`
/// and `slices` select one of these. Slices and instants that are no samples become markers. Times in ns.
/// O(bytes).
///
/// # Errors
/// The trace has none of these.
pub fn read_value(bytes: &[u8], requested: Option<&str>) -> Result<ImportedProfile, ReadError> {
    let mut reader = PerfettoReader::new(bytes.len());
    let (cut, damaged) = packets::for_each(bytes, &mut |packet| reader.read_packet(packet));
    let kind = reader.choose(requested)?;
    if let Some(at) = cut {
        reader.importer.note(Note::Cut { place: format!("byte {at}") });
    }
    reader.importer.note_left_out(damaged, "packets that cannot be read");
    Ok(reader.finish(kind))
}

/// The data that becomes samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SampleSource {
    Samples,
    /// `StackSample`, by the counter with this index.
    Counter(usize),
    Streaming,
    Slices,
}

/// A sample of a thread, whose names may come later.
struct RawSample {
    /// The process and the thread.
    thread: (i64, i64),
    time: u64,
    stack: Option<StackId>,
}

/// An event of a track.
struct RawEvent {
    time: u64,
    kind: u32,
    name: Rc<str>,
    category: Rc<str>,
    args: Value,
}

/// The place of an event: a track, or the track of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum EventTrack {
    Track(u64),
    Thread((i64, i64)),
}

struct PerfettoReader {
    importer: Importer,
    sequences: FxHashMap<u32, Sequence>,
    clocks: Clocks,
    tracks: Tracks,
    timebase: Option<Timebase>,
    samples: Vec<RawSample>,
    streaming: Vec<RawSample>,
    counted: Vec<RawSample>,
    counters: CounterWeights,
    places: FxHashMap<EventTrack, usize>,
    events: Vec<(EventTrack, Vec<RawEvent>)>,
    path_bytes_left: usize,
    lost: u64,
    /// The number of begins without an end and ends without a begin.
    unpaired: u64,
}

impl PerfettoReader {
    fn new(length: usize) -> Self {
        Self {
            importer: Importer::new("Trace", "Perfetto"),
            sequences: FxHashMap::default(),
            clocks: Clocks::default(),
            tracks: Tracks::default(),
            timebase: None,
            samples: Vec::new(),
            streaming: Vec::new(),
            counted: Vec::new(),
            counters: CounterWeights::default(),
            places: FxHashMap::default(),
            events: Vec::new(),
            path_bytes_left: length.saturating_mul(PATH_BYTES_PER_BYTE),
            lost: 0,
            unpaired: 0,
        }
    }

    fn read_packet(&mut self, packet: Packet) {
        let number = packet.sequence;
        let sequence = self.sequences.entry(number).or_default();
        if packet.sequence_flags & STATE_CLEARED != 0 || packet.state_cleared {
            *sequence = Sequence::default();
        }
        packet.interned.into_iter().for_each(|interned| sequence.intern(interned));
        packet.defaults.into_iter().for_each(|defaults| sequence.set_defaults(defaults));
        packet.clocks.iter().for_each(|clocks| self.clocks.add(number, clocks));
        packet.process_tree.iter().for_each(|tree| self.tracks.add_tree(tree));
        packet.process.iter().for_each(|process| self.tracks.add_process(process));
        packet.track.iter().for_each(|track| self.tracks.add(track));
        if let Some(thread) = &packet.thread {
            sequence.thread = Some((thread.pid.into(), thread.tid));
            sequence.time = thread.reference_us.saturating_mul(1000);
            self.tracks.add_thread(thread);
        }
        let clock = [packet.clock, sequence.clock].into_iter().find(|&clock| clock > 0).unwrap_or(BOOTTIME);
        let time = packet.timestamp.map(|time| self.clocks.time(number, clock, time));
        if let Some(sample) = packet.sample {
            self.lost += sample.lost;
            if sample.callstack > 0 && sample.skipped == 0 {
                if self.timebase.is_none() {
                    self.timebase.clone_from(&sequence.timebase);
                }
                let stack = sequence.stack(&mut self.importer, sample.callstack, &mut self.path_bytes_left);
                let thread = (sample.pid.into(), sample.tid.into());
                self.samples.push(RawSample { thread, time: time.unwrap_or(0), stack });
            }
        }
        packet.stack_sample.iter().for_each(|sample| self.read_stack_sample(number, time, sample));
        packet.streaming.iter().for_each(|streaming| self.read_streaming(number, streaming));
        packet.event.iter().for_each(|event| self.read_event(number, time, event));
    }

    fn read_stack_sample(&mut self, number: u32, time: Option<u64>, sample: &StackSample) {
        let Some(sequence) = self.sequences.get_mut(&number) else { return };
        let stack = sequence.sample_stack(&mut self.importer, sample, &mut self.path_bytes_left);
        self.counters.add(self.counted.len(), &sequence.stack_samples, sample);
        let thread = sequence.stack_samples.thread(sample);
        self.counted.push(RawSample { thread, time: time.unwrap_or(0), stack });
    }

    fn read_streaming(&mut self, number: u32, streaming: &StreamingProfile) {
        let Some(sequence) = self.sequences.get_mut(&number) else { return };
        for (place, &callstack) in streaming.callstacks.iter().enumerate() {
            let delta = streaming.deltas_us.get(place).copied().unwrap_or(0);
            sequence.time = sequence.time.saturating_add(delta.saturating_mul(1000));
            let stack = sequence.stack(&mut self.importer, callstack, &mut self.path_bytes_left);
            let time = u64::try_from(sequence.time).unwrap_or(0);
            self.streaming.push(RawSample { thread: sequence.thread.unwrap_or((0, 0)), time, stack });
        }
    }

    fn read_event(&mut self, number: u32, time: Option<u64>, event: &TrackEvent) {
        let Some(sequence) = self.sequences.get_mut(&number) else { return };
        let time = match (event.absolute_us, event.delta_us, time) {
            (Some(absolute), _, _) => u64::try_from(absolute.saturating_mul(1000)).unwrap_or(0),
            (None, Some(delta), _) => {
                sequence.time = sequence.time.saturating_add(delta.saturating_mul(1000));
                u64::try_from(sequence.time).unwrap_or(0)
            }
            (None, None, time) => time.unwrap_or(0),
        };
        let place = match (event.track.unwrap_or(sequence.track), sequence.thread) {
            (0, Some(thread)) => EventTrack::Thread(thread),
            (track, _) => EventTrack::Track(track),
        };
        let known = |texts: &FxHashMap<u64, Rc<str>>, id| texts.get(&id).cloned().unwrap_or_default();
        let name = if event.name.is_empty() {
            known(&sequence.event_names, event.name_id)
        } else {
            text(&event.name)
        };
        let category = match (event.categories.first(), event.category_ids.first()) {
            (Some(category), _) => text(category),
            (None, Some(&id)) => known(&sequence.categories, id),
            (None, None) => Rc::default(),
        };
        let args = arguments(sequence, &event.annotations);
        let event = RawEvent { time, kind: event.kind, name, category, args };
        let index = *self.places.entry(place).or_insert_with(|| {
            self.events.push((place, Vec::new()));
            self.events.len() - 1
        });
        if let Some((_, events)) = self.events.get_mut(index) {
            events.push(event);
        }
    }

    fn choose(&self, requested: Option<&str>) -> Result<SampleSource, ReadError> {
        let has_slices = self.events.iter().any(|(_, events)| events.iter().any(|it| it.kind == BEGIN));
        let counters = self.counters.values.iter().enumerate();
        let mut there: Vec<(&str, SampleSource, bool)> =
            counters.map(|(place, value)| (&*value.name, SampleSource::Counter(place), true)).collect();
        let default = self.counters.default_value();
        if !there.is_empty() {
            there.swap(0, default);
        }
        there.extend([
            ("samples", SampleSource::Samples, !self.samples.is_empty()),
            ("streaming", SampleSource::Streaming, !self.streaming.is_empty()),
            ("slices", SampleSource::Slices, has_slices || !self.events.is_empty()),
        ]);
        let mut there = there.iter().filter(|(_, _, is_there)| *is_there);
        let names = there.clone().map(|&(name, ..)| name).collect::<Vec<_>>().join(", ");
        let found = there.find(|(name, ..)| requested.is_none_or(|requested| requested == *name));
        found.map(|&(_, kind, _)| kind).ok_or_else(|| {
            ReadError::Unsupported(match requested {
                Some(name) if !names.is_empty() => format!("the trace has no `{name}`, but {names}"),
                _ => "it is a trace of Perfetto without stacks of samples and without slices: record with \
                      the data source linux.perf or track_event"
                    .to_owned(),
            })
        })
    }

    fn finish(mut self, kind: SampleSource) -> ImportedProfile {
        let (raw, amounts, measure) = self.chosen(kind);
        self.importer.meta_mut().measure = measure;
        let mut first = u64::MAX;
        let factor = amounts.first().copied();
        for (sample, amount) in raw.iter().zip(amounts) {
            first = first.min(sample.time);
            let thread = self.tracks.thread(&mut self.importer, sample.thread);
            self.importer.sample(thread, sample.time, sample.stack, amount);
        }
        for (_, events) in &self.events {
            first = events.iter().fold(first, |first, event| first.min(event.time));
        }
        self.add_events(kind);
        if let (Some(since_1970), true) = (self.clocks.since_1970, first < u64::MAX) {
            let start = u64::try_from(i128::from(first).saturating_add(since_1970)).unwrap_or(0);
            self.importer.meta_mut().start_time = start / 1000;
        }
        self.importer.meta_mut().lost_samples = self.lost;
        self.importer.note_left_out(self.unpaired, "events without a begin or an end");
        let others = [("samples", self.samples.len()), ("streaming", self.streaming.len())];
        for (name, count) in others {
            self.importer.note_left_out(count as u64, format!("stacks: import --event {name} reads them"));
        }
        self.importer.finish(factor.filter(|_| kind == SampleSource::Samples))
    }

    /// The chosen samples, the amount of each, and what they measure.
    fn chosen(&mut self, kind: SampleSource) -> (Vec<RawSample>, Vec<u64>, Measure) {
        let alike = |raw: Vec<RawSample>, (measure, amount): (Measure, u64)| {
            let amounts = vec![amount; raw.len()];
            (raw, amounts, measure)
        };
        let counted = |name: &str| Measure { name: name.into(), unit: Unit::Count };
        match kind {
            SampleSource::Samples => {
                alike(std::mem::take(&mut self.samples), measure(self.timebase.as_ref()))
            }
            SampleSource::Streaming => alike(std::mem::take(&mut self.streaming), (counted("streaming"), 1)),
            SampleSource::Slices => {
                (Vec::new(), Vec::new(), Measure { name: "wall time".into(), unit: Unit::Time })
            }
            SampleSource::Counter(counter) => {
                let rows = self.counters.rows.iter().filter(|&&(_, place, _)| place == counter);
                let (raw, amounts) = rows
                    .filter_map(|&(index, _, amount)| {
                        let &RawSample { thread, time, stack } = self.counted.get(index)?;
                        Some((RawSample { thread, time, stack }, amount))
                    })
                    .unzip();
                (raw, amounts, stack_samples::measure(&self.counters.values[counter]))
            }
        }
    }

    fn add_events(&mut self, kind: SampleSource) {
        let mut markers = TraceMarkers::default();
        for (place, mut events) in std::mem::take(&mut self.events) {
            events.sort_by_key(|event| event.time);
            let (thread, is_own) = match place {
                EventTrack::Track(track) => self.tracks.owner(track),
                EventTrack::Thread(thread) => (thread, true),
            };
            let thread = self.tracks.thread(&mut self.importer, thread);
            let mut slices = Vec::new();
            for RawEvent { time, kind, name, category, args } in events {
                let args = Args::made(args);
                let kind = match kind {
                    BEGIN => SliceKind::Begin,
                    END => SliceKind::End,
                    INSTANT => {
                        let timing = MarkerTiming::Instant(time);
                        markers
                            .add(&mut self.importer, &TraceMarker { thread, name, category, timing, args });
                        continue;
                    }
                    _ => continue,
                };
                // An end belongs to the last begin of its track, independent of its name.
                let name = if kind == SliceKind::End { Rc::default() } else { name };
                slices.push(Slice { time, kind, name, category, args });
            }
            self.unpaired += if kind == SampleSource::Slices && is_own {
                add_samples(&mut self.importer, thread, slices)
            } else {
                markers.add_durations(&mut self.importer, thread, slices)
            };
        }
    }
}

/// `TrackEvent.Type`.
pub(super) const BEGIN: u32 = 1;
pub(super) const END: u32 = 2;
pub(super) const INSTANT: u32 = 3;

/// An event's annotations as an object.
fn arguments(sequence: &Sequence, annotations: &[Annotation]) -> Value {
    let known = |texts: &FxHashMap<u64, Rc<str>>, id| texts.get(&id).cloned().unwrap_or_default();
    let pair = |annotation: &Annotation| {
        let name = match annotation.name.as_slice() {
            [] => known(&sequence.annotation_names, annotation.name_id),
            name => text(name),
        };
        let value = match annotation.content.as_ref()? {
            &AnnotationContent::Boolean(value) => Value::from(value),
            &AnnotationContent::Unsigned(number) => Value::from(number),
            &AnnotationContent::Integer(number) => Value::from(number),
            &AnnotationContent::Number(number) => Value::from(number),
            AnnotationContent::Text(value) => Value::from(&*text(value)),
            &AnnotationContent::TextId(id) => Value::from(&*known(&sequence.annotation_values, id)),
        };
        Some((name.to_string(), value))
    };
    annotations.iter().filter_map(pair).collect::<Map<_, _>>().into()
}

/// The software counters of CPU time.
pub(super) const CPU_CLOCK: u32 = 1;
const TASK_CLOCK: u32 = 3;

/// Names of other counters, by their numbers.
const COUNTERS: [(u32, &str); 12] = [
    (2, "page-faults"),
    (4, "context-switches"),
    (5, "cpu-migrations"),
    (6, "minor-faults"),
    (7, "major-faults"),
    (10, "cpu-cycles"),
    (11, "instructions"),
    (12, "cache-references"),
    (13, "cache-misses"),
    (14, "branch-instructions"),
    (15, "branch-misses"),
    (16, "bus-cycles"),
];

/// The measure of samples, and the amount of one. A name may end with its unit, as in `inuse_space/bytes`.
fn measure(timebase: Option<&Timebase>) -> (Measure, u64) {
    let nothing = Timebase::default();
    let timebase = timebase.unwrap_or(&nothing);
    if matches!(timebase.counter, CPU_CLOCK | TASK_CLOCK) {
        let of_frequency = 1_000_000_000_u64.checked_div(timebase.frequency).filter(|&period| period > 0);
        let period = Some(timebase.period).filter(|&period| period > 0).or(of_frequency);
        return (Measure::default(), period.unwrap_or(MILLISECOND));
    }
    let name = text(&timebase.name);
    let named = COUNTERS.iter().find(|&&(number, _)| number == timebase.counter).map_or("samples", |it| it.1);
    let (name, unit) = match name.rsplit_once('/') {
        Some((name, unit)) => (name, unit),
        None if name.is_empty() => (named, ""),
        None => (&*name, ""),
    };
    let (factor, unit) = factor_of(unit);
    (Measure { name: name.to_owned(), unit }, factor.saturating_mul(timebase.period.max(1)))
}
