//! The state of a conversion: what is done with each record of a recording.

use nyquist_perf::abi::record::{CALLCHAIN_DEFERRED, SAMPLE, TEXT_POKE};
use nyquist_perf::file::{FieldValue, FileEvent, FileReader, FileRecord, Place, Tracepoints};
use nyquist_perf::{AttrFlags, CpuMode, Record, RecordBody, RecordError, SampleType, parse_record};
use rustc_hash::FxHashSet;

use super::choose::{self, ImportedEvent, Meaning, Recorder};
use super::conversion::Conversion;
use super::deferred::DeferredSamples;
use super::describe;
use super::error::ImportError;
use super::live::LiveStackRecords;
use super::marks::Marks;
use super::options::{ImportOptions, ImportedProfile};
use super::{marker_files, simpleperf};
use crate::decode::perf::{
    AdditionalEvents, CounterMeaning, EventCpus, PerfDecoder, Successors, any_mapping, deferred_cookie,
    user_part,
};
use crate::event::{Event, EventKind, SampleState, Tid, Timestamp, UserStack};
use crate::jit::aux_files::AuxFiles;
use crate::options::Options;

/// The events of our own recording that have taken over from its first event.
fn successors(events: &[FileEvent]) -> Successors {
    let Some(first) = events.first() else { return Successors::default() };
    let later = events.iter().filter(|event| choose::takes_over(&first.attr, &event.attr));
    later.flat_map(|event| event.ids.iter().copied()).collect()
}

/// The place of a sample's stack copy in the file, if the record is in a file.
fn copy_place(event: &Event, found: &FileRecord<'_>) -> Option<Place> {
    let EventKind::Sample(sample) = &event.kind else { return None };
    let UserStack::Copied { stack, .. } = &sample.user else { return None };
    let at = stack.as_ptr().addr().checked_sub(found.bytes.as_ptr().addr())?;
    let is_inside = at.checked_add(stack.len()).is_some_and(|end| end <= found.bytes.len());
    found.place.filter(|_| is_inside).map(|place| place.plus(at as u64))
}

/// The state of a conversion.
pub(super) struct Import {
    options: ImportOptions,
    /// The use of each event's samples, by the index of the event.
    pub(super) events: Vec<ImportedEvent>,
    /// Events that came before the profile's zero was known, and the places of their stack copies.
    pub(super) before_start: Vec<(Event, Option<Place>)>,
    pub(super) conversion: Option<Conversion>,
    aux: AuxFiles,
    is_simpleperf: bool,
    /// The files whose functions the recording states.
    provided_paths: FxHashSet<String>,
    tracepoints: Tracepoints,
    marks: Marks,
    deferred: DeferredSamples,
    live_stacks: LiveStackRecords,
    /// The latest time of all records.
    latest: u64,
    not_understood: u64,
}

impl Import {
    pub(super) fn new(options: ImportOptions) -> Self {
        Self {
            options,
            events: Vec::new(),
            before_start: Vec::new(),
            conversion: None,
            aux: AuxFiles::default(),
            is_simpleperf: false,
            provided_paths: FxHashSet::default(),
            tracepoints: Tracepoints::default(),
            marks: Marks::default(),
            deferred: DeferredSamples::default(),
            live_stacks: LiveStackRecords::default(),
            latest: 0,
            not_understood: 0,
        }
    }

    /// Decides the use of each event that has been described so far.
    pub(super) fn prepare(&mut self, reader: &FileReader) -> Result<(), ImportError> {
        if self.events.len() == reader.events().len() && !self.events.is_empty() {
            return Ok(());
        }
        let cpus: EventCpus = reader.event_cpus().iter().copied().collect();
        let by_us = describe::is_by_nyquist(reader.features());
        self.aux = describe::aux_files(reader.features(), &self.options);
        self.is_simpleperf = reader.features().simpleperf.is_some();
        self.provided_paths = describe::provided_symbols(reader.features()).into_keys().collect();
        self.tracepoints = Tracepoints::parse(&reader.features().tracing);
        let recorder = Recorder { is_nyquist: by_us, is_of_threads: describe::is_of_threads(reader) };
        self.events = choose::choose(reader.events(), &self.options.events, recorder)?;
        let successors = if by_us { successors(reader.events()) } else { Successors::default() };
        for (imported, event) in self.events.iter_mut().zip(reader.events()) {
            imported.layout = Some(PerfDecoder {
                format: event.format,
                architecture: describe::architecture(reader.features(), &self.options),
                kernel: !imported.attr().flags.contains(AttrFlags::EXCLUDE_KERNEL),
                period: imported.period(),
                cpus: cpus.clone(),
                counters: if by_us { CounterMeaning::CpuTime } else { CounterMeaning::Other },
                successors: successors.clone(),
                additional_events: AdditionalEvents::default(),
            });
        }
        Ok(())
    }

    pub(super) fn record(&mut self, found: &FileRecord<'_>) {
        let Some(imported) = self.events.get(found.event) else { return };
        let is_sample = found.header.kind == SAMPLE;
        if is_sample && !imported.is_used() {
            return self.count(found.event);
        }
        let Some(layout) = &imported.layout else { return };
        if found.header.kind == CALLCHAIN_DEFERRED {
            return self.complete_deferred(found);
        }
        if found.header.kind == TEXT_POKE && found.header.cpu_mode() == CpuMode::User {
            return self.live_stack(found);
        }
        match self.understood(layout, found) {
            Ok(Some(event)) if is_sample && imported.meaning() == Some(Meaning::OffCpuIntervals) => {
                self.switch(event, found, imported.attr().config);
            }
            Ok(Some(event)) if is_sample && imported.meaning() == Some(Meaning::OffCpu) => {
                self.off_cpu(event, found.time);
            }
            Ok(Some(event)) if is_sample && imported.meaning() == Some(Meaning::Marks) => {
                self.mark(event, found, imported.attr().config);
            }
            Ok(Some(event)) if is_sample && imported.attr().flags.contains(AttrFlags::DEFER_CALLCHAIN) => {
                self.hold(event, found);
            }
            Ok(Some(event)) => self.event_of(event, found),
            Ok(None) => {}
            Err(_) => self.not_understood += 1,
        }
        if is_sample {
            self.count(found.event);
        }
    }

    /// The event of a record. Simpleperf needs two corrections: its callers' addresses are already within the
    /// calls, and it states functions of memory that is not mapped as code.
    fn understood(&self, layout: &PerfDecoder, found: &FileRecord<'_>) -> Result<Option<Event>, RecordError> {
        let event = layout.event(found.piece, found.bytes)?;
        if !self.is_simpleperf {
            return Ok(event);
        }
        let Some(mut event) = event else { return Ok(self.provided_mapping(layout, found)) };
        if let EventKind::Sample(sample) = &mut event.kind {
            simpleperf::restore_stack(sample);
        }
        Ok(Some(event))
    }

    /// The mapping of a file whose functions the recording states.
    fn provided_mapping(&self, layout: &PerfDecoder, found: &FileRecord<'_>) -> Option<Event> {
        let record = parse_record(found.bytes, &layout.format).ok()?;
        let RecordBody::Mmap(mmap) = record.body else { return None };
        let mapping = any_mapping(&mmap);
        let time = Timestamp(record.id.time.unwrap_or_default());
        let is_provided = self.provided_paths.contains(&mapping.path);
        is_provided.then_some(Event { time, cpu: None, kind: EventKind::Map(mapping) })
    }

    /// A sample of `sched:sched_switch`: one thread leaves the CPU, and another comes to it.
    fn switch(&mut self, event: Event, found: &FileRecord<'_>, tracepoint: u64) {
        /// The idle task of every CPU.
        const IDLE: Tid = Tid(0);
        let Event { time, cpu, kind: EventKind::Sample(sample) } = event else { return };
        let next = self.next_thread(found, tracepoint);
        if sample.tid != IDLE {
            self.event(Event { time, cpu, kind: EventKind::SwitchOut(sample) }, found.time);
        }
        if let Some(tid) = next.filter(|tid| *tid != IDLE) {
            self.event(Event { time, cpu, kind: EventKind::SwitchIn { tid } }, found.time);
        }
    }

    /// A sample of `offcpu-time`: a thread was off the CPU for its period.
    fn off_cpu(&mut self, event: Event, time: Option<u64>) {
        /// Perf writes sums at its end, at a time that no clock has (`OFF_CPU_TIMESTAMP` in
        /// `tools/perf/util/off_cpu.h`).
        const AT_THE_END: u64 = 0xffff_ffff << 32;
        let Event { time: at, cpu, kind: EventKind::Sample(mut sample) } = event else { return };
        sample.state = SampleState::Waiting { waited_ns: sample.period_ns, reason: None };
        sample.period_ns = 0;
        let time = time.filter(|time| *time < AT_THE_END);
        let kind = EventKind::Sample(sample);
        self.event(Event { time: at, cpu, kind }, time);
    }

    /// The thread that comes to the CPU, by the tracepoint's raw data.
    fn next_thread(&self, found: &FileRecord<'_>, tracepoint: u64) -> Option<Tid> {
        let raw = self.raw_data(found)?;
        let field = self.tracepoints.get(tracepoint)?.field("next_pid")?;
        match self.tracepoints.value(field, raw)? {
            FieldValue::Integer(tid) => Some(Tid(u32::try_from(tid).ok()?)),
            FieldValue::Text(_) => None,
        }
    }

    /// A sample of another tracepoint: a marker, or a counter's value.
    fn mark(&mut self, event: Event, found: &FileRecord<'_>, tracepoint: u64) {
        let Event { time, cpu, kind: EventKind::Sample(sample) } = event else { return };
        let Some(raw) = self.raw_data(found) else { return };
        let kind = self.marks.event(&self.tracepoints, tracepoint, raw, (sample.pid, sample.tid));
        if let Some(kind) = kind {
            self.event(Event { time, cpu, kind }, found.time);
        }
    }

    /// Holds back a sample whose user stack comes later.
    fn hold(&mut self, event: Event, found: &FileRecord<'_>) {
        let cookie = self.sample_of(found).and_then(|sample| deferred_cookie(sample.callchain?));
        let (Some(cookie), EventKind::Sample(sample)) = (cookie, &event.kind) else {
            return self.event(event, found.time);
        };
        self.latest = self.latest.max(event.time.0);
        for late in self.deferred.hold(sample.tid, cookie, event) {
            self.push(late);
        }
    }

    /// Completes samples that were held back with their user stack.
    fn complete_deferred(&mut self, found: &FileRecord<'_>) {
        let layout = self.events.get(found.event).and_then(|imported| imported.layout.as_ref());
        let record = layout.and_then(|layout| parse_record(found.bytes, &layout.format).ok());
        let Some(Record { id, body: RecordBody::DeferredCallchain(deferred), .. }) = record else { return };
        let Some((_, tid)) = id.task else { return };
        for event in self.deferred.complete(Tid(tid), deferred.cookie, &user_part(deferred.chain)) {
            self.push(event);
        }
    }

    /// Handles a part of a stack that was read while the program ran.
    fn live_stack(&mut self, found: &FileRecord<'_>) {
        let layout = self.events.get(found.event).and_then(|imported| imported.layout.as_ref());
        let record = layout.and_then(|layout| parse_record(found.bytes, &layout.format).ok());
        let Some(Record { id, body: RecordBody::TextPoke(poke), .. }) = record else { return };
        if let Some(event) = self.live_stacks.decode(&poke, &id) {
            self.push(event);
        }
    }

    fn sample_of<'a>(&self, found: &FileRecord<'a>) -> Option<Box<nyquist_perf::Sample<'a>>> {
        let layout = self.events.get(found.event)?.layout.as_ref()?;
        match parse_record(found.bytes, &layout.format).ok()?.body {
            RecordBody::Sample(sample) => Some(sample),
            _ => None,
        }
    }

    fn raw_data<'a>(&self, found: &FileRecord<'a>) -> Option<&'a [u8]> {
        self.sample_of(found)?.raw
    }

    fn count(&mut self, event: usize) {
        if let Some(imported) = self.events.get_mut(event) {
            imported.samples += 1;
        }
    }

    fn event(&mut self, mut event: Event, time: Option<u64>) {
        self.set_time(&mut event, time);
        self.push(event);
    }

    /// Handles the event of a record. Its stack copy is in the file, at the place of the record.
    fn event_of(&mut self, mut event: Event, found: &FileRecord<'_>) {
        self.set_time(&mut event, found.time);
        match copy_place(&event, found) {
            Some(place) => self.push_one(event, Some(place)),
            None => self.push(event),
        }
    }

    fn set_time(&mut self, event: &mut Event, time: Option<u64>) {
        match time {
            Some(time) => self.latest = self.latest.max(time),
            // Without times, records are in the order in which they came.
            None => event.time = Timestamp(self.latest),
        }
    }

    fn push(&mut self, event: Event) {
        if let EventKind::Map(mapping) = &event.kind {
            let markers = marker_files::markers(mapping, &self.aux);
            for marker in markers {
                self.push_one(marker, None);
            }
        }
        self.push_one(event, None);
    }

    fn push_one(&mut self, event: Event, copy_at: Option<Place>) {
        match &mut self.conversion {
            Some(conversion) => conversion.push(event, copy_at),
            None => self.before_start.push((event, copy_at)),
        }
    }

    pub(super) fn complete_before(&mut self, time: Timestamp, reader: &FileReader) {
        let mut conversion = self.started(reader);
        let time = self.deferred.oldest().map_or(time, |oldest| oldest.min(time));
        conversion.advance(time);
        self.conversion = Some(conversion);
    }

    /// Decides the profile's zero, if that has not been done, and begins to convert.
    pub(super) fn started(&mut self, reader: &FileReader) -> Conversion {
        let events = std::mem::take(&mut self.before_start);
        let mut conversion = match self.conversion.take() {
            Some(conversion) => conversion,
            None => self.start(reader, &events),
        };
        for (event, copy_at) in events {
            conversion.push(event, copy_at);
        }
        conversion
    }

    fn start(&mut self, reader: &FileReader, first: &[(Event, Option<Place>)]) -> Conversion {
        let sender = self.options.sender.take();
        let options = describe::converter_options(reader, &self.options, &self.events, first);
        let walks_early = self.walks_early(&options);
        Conversion::start(Options { address_sender: sender, ..options }, reader.files(), walks_early)
    }

    /// Whether stacks are walked ahead of the converter. They are not if the converter would drop most of
    /// them, or if threads first appear in events that only the converter follows.
    fn walks_early(&self, options: &Options) -> bool {
        let has_copies = |imported: &ImportedEvent| {
            imported.is_used() && imported.attr().sample_type.contains(SampleType::STACK_USER)
        };
        options.convert_most()
            && self.events.iter().any(has_copies)
            && self.events.iter().all(|imported| imported.meaning() != Some(Meaning::OffCpuIntervals))
    }

    pub(super) fn finish(mut self, reader: &FileReader) -> ImportedProfile {
        for event in self.deferred.give_up() {
            self.push(event);
        }
        let finished = self.started(reader).finish();
        let mut notes = describe::notes(reader, self.not_understood, finished.statistics.late);
        notes.extend(finished.notes.iter().cloned());
        ImportedProfile {
            finished,
            events: self.events.into_iter().map(ImportedEvent::into_use).collect(),
            notes,
            other_machine: describe::other_machine(reader.features()),
        }
    }
}
