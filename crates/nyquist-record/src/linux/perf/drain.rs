//! Draining rings: copies their records into buffers and sends these on. This does nothing else, and shares
//! no lock with later stages. It allocates only the buffers of the pool, each once, and the short lists in
//! which they are sent.

use std::sync::mpsc::SyncSender;

use nyquist_convert::event::Timestamp;
use nyquist_convert::perf::{AdditionalEvents, SampleFields};
use nyquist_perf::abi::record;
use nyquist_perf::{Header, RecordFormat, SampleLayout};

use super::active_outer_stacks::Observer;
use super::compact_record::{CompactRecord, compact};
use super::ended_threads::EndedThreads;
use super::inherited_events::{InheritedEventFilter, task};
use super::outer_stacks::StackCopyObserver as _;
use super::ring_source::RingSource;
use super::unreported_losses::UnreportedLosses;
use crate::linux::arch;
use crate::linux::sys::ring::Ring;
use crate::pool::{BUFFER_BYTES, BufferWriter, Need, Pool};

/// What is sent on: a filled buffer, and the time before which all records are complete.
#[derive(Debug)]
pub(crate) struct FilledBuffer {
    /// `None` if only that time has advanced.
    pub(crate) buffer: Option<BufferWriter>,
    pub(crate) complete_before: Timestamp,
}

/// How many buffers are filled before they are sent on, also within a round.
const HANDED_OVER_AT_ONCE: usize = 16;

/// The longest record: its size is a `u16`.
const MAX_RECORD_BYTES: usize = 1 << 16;

/// The parameters for draining that are the same for all rings.
#[derive(Debug)]
pub(crate) struct DrainParameters {
    pub(crate) format: RecordFormat,
    /// The additional events. Some of their samples have another layout.
    pub(crate) additional_events: AdditionalEvents,
    /// Whether the CPU time of each thread is counted.
    pub(crate) counts_threads: bool,
    /// The size of the pool that records are copied into.
    pub(crate) buffers: usize,
    pub(crate) out: SyncSender<Vec<FilledBuffer>>,
    /// Observes the stack copies.
    pub(super) observer: Observer,
}

/// Drains some rings.
#[derive(Debug)]
pub(crate) struct Drainer {
    /// The rings of each CPU, with the sideband rings first.
    pub(crate) rings: Vec<RingSource>,
    copier: RecordCopier,
}

/// Copies records out of rings.
#[derive(Debug)]
struct RecordCopier {
    draining: DrainParameters,
    layout: SampleLayout,
    /// The layouts of samples of additional events that contain fewer or more fields.
    other_layouts: [(SampleFields, SampleLayout); 2],
    pool: Pool,
    inherited_events: Option<InheritedEventFilter>,
    ended: EndedThreads,
    losses: UnreportedLosses,
    writer: Option<BufferWriter>,
    /// The filled buffers that were not sent yet. They wait because the receiver may preempt this thread at
    /// once.
    filled: Vec<FilledBuffer>,
    /// The time before which records are complete with what was sent and what is being filled.
    complete_before: Timestamp,
}

impl Drainer {
    /// Makes a drainer for these rings. `inherited_events` is set if threads have more events than their own.
    pub(crate) fn new(
        rings: Vec<RingSource>,
        draining: DrainParameters,
        inherited_events: Option<InheritedEventFilter>,
    ) -> Self {
        let format = draining.format;
        let pool = Pool::of(draining.buffers, BUFFER_BYTES);
        let copier = RecordCopier {
            draining,
            layout: SampleLayout::new(&format, arch::perf::STACK_POINTER),
            other_layouts: [SampleFields::NoPeriod, SampleFields::Count]
                .map(|fields| (fields, SampleLayout::new(&fields.format(format), arch::perf::STACK_POINTER))),
            pool,
            inherited_events,
            ended: EndedThreads::new(format),
            losses: UnreportedLosses::new(format),
            writer: None,
            filled: Vec::new(),
            complete_before: Timestamp(0),
        };
        Self { rings, copier }
    }

    /// Copies out what the rings hold. Returns the time of the oldest record that stays, if there was no
    /// memory to copy it.
    pub(crate) fn drain(&mut self) -> Option<u64> {
        let Self { rings, copier } = self;
        let mut has_room = true;
        for RingSource { ring, need, .. } in &mut *rings {
            has_room &= copier.copy_due_records(ring, *need, None).is_some();
        }
        if has_room { None } else { self.oldest_first() }
    }

    /// Continues when hardly any memory is left: copies the oldest records of all rings, in order of time.
    /// Returns the time of the oldest record that stays.
    ///
    /// A record copied out of one ring waits until no older record can come from another. If the last memory
    /// were filled with records newer than one that stays, no buffer would ever come back.
    fn oldest_first(&mut self) -> Option<u64> {
        let Self { rings, copier } = self;
        loop {
            let (mut oldest, mut next): (Option<(u64, &mut Ring)>, _) = (None, u64::MAX);
            // Records that are dropped when there is no memory do not wait for any.
            let waits = |source: &&mut RingSource| source.need != Need::Occurrences;
            for RingSource { ring, .. } in rings.iter_mut().filter(waits) {
                let Some(time) = first_time(ring, &copier.layout) else { continue };
                let is_oldest = oldest.as_ref().is_none_or(|(oldest, _)| time < *oldest);
                let other =
                    if is_oldest { oldest.replace((time, ring)).map(|(time, _)| time) } else { Some(time) };
                next = next.min(other.unwrap_or(u64::MAX));
            }
            let (_, ring) = oldest?;
            if copier.copy_due_records(ring, Need::Oldest, Some(next)).is_none() {
                return Some(first_time(ring, &copier.layout).unwrap_or(next).min(next));
            }
        }
    }

    /// Sends on all that was copied out. Its last buffer also states that records are complete up to that
    /// time. If nothing was copied out and `is_due` is set, sends the time alone.
    pub(crate) fn hand_over(&mut self, complete_before: Timestamp, is_due: bool) {
        let copier = &mut self.copier;
        copier.complete_before = complete_before;
        copier.end_buffer();
        match copier.filled.last_mut() {
            Some(last) => last.complete_before = complete_before,
            None if is_due => copier.filled.push(FilledBuffer { buffer: None, complete_before }),
            None => {}
        }
        copier.hand_over();
    }

    /// The ends of threads and the losses that records have reported.
    pub(crate) fn into_reports(self) -> (EndedThreads, UnreportedLosses) {
        (self.copier.ended, self.copier.losses)
    }
}

impl RecordCopier {
    /// Copies out of a ring its first record and all following ones older than `until`. Returns `None` if no
    /// memory is left.
    fn copy_due_records(&mut self, ring: &mut Ring, need: Need, until: Option<u64>) -> Option<()> {
        let head = ring.head();
        let start = ring.tail();
        let mut at = start;
        while at < head && (at == start || self.is_due(ring, until)) {
            let mut header = [0; Header::LEN];
            ring.copy(at, &mut header);
            let header = Header::parse(&header).ok().filter(|header| usize::from(header.size) >= Header::LEN);
            // The kernel writes whole records only. If that ever fails, the contents of the ring are dropped.
            let Some(header) = header else {
                ring.release(head);
                return Some(());
            };
            // The kernel reports tasks to each event that reports mappings of any kind.
            if need == Need::Samples && matches!(header.kind, record::FORK | record::EXIT) {
                at += u64::from(header.size);
                ring.release(at);
                continue;
            }
            self.make_room(need);
            self.record((ring, at), header, need == Need::Occurrences)?;
            at += u64::from(header.size);
            ring.release(at);
        }
        Some(())
    }

    /// Copies the record at a place in a ring into the current buffer. Without a buffer, a record of an
    /// additional event is dropped; for another one, returns `None`.
    #[inline]
    fn record(&mut self, (ring, at): (&Ring, u64), header: Header, is_additional: bool) -> Option<()> {
        let writer = match self.writer.as_mut() {
            Some(writer) => writer,
            None if is_additional => {
                self.count_dropped(header);
                return Some(());
            }
            None => return None,
        };
        let DrainParameters { format, additional_events, counts_threads, observer, .. } = &self.draining;
        let fields = match header.kind {
            record::SAMPLE if is_additional => fields_at(ring, at, additional_events),
            _ => SampleFields::Common,
        };
        let other = self.other_layouts.iter().find(|(of, _)| *of == fields);
        let layout = other.map_or(&self.layout, |(_, layout)| layout);
        let room = writer.room();
        let CompactRecord { len, may_go_on } =
            compact(|offset, out| ring.copy(at + offset as u64, out), header, (layout, observer), room);
        let copied = room.get(..len).unwrap_or_default();
        match header.kind {
            record::READ => self.ended.note(copied),
            record::FORK | record::EXIT if *counts_threads => {
                self.ended.note_task(task(copied, format), header.kind);
            }
            record::LOST if is_additional => self.losses.note_additional(copied),
            record::LOST => {
                self.losses.note(copied);
                self.ended.note_lost();
            }
            _ => {}
        }
        let task = || task(copied, format);
        let keeps = |inherited: &mut InheritedEventFilter| inherited.keeps(header, copied, task);
        if self.inherited_events.as_mut().is_none_or(keeps) {
            if may_go_on && !is_additional {
                observer.report(copied, &self.layout);
            }
            writer.advance(len);
        }
        Some(())
    }

    /// Counts a record of an additional event that is dropped because there is no memory for it.
    fn count_dropped(&mut self, header: Header) {
        // The losses in a record of losses are counted at the end, from the events themselves.
        if header.kind == record::SAMPLE {
            self.losses.drop_additional();
        }
    }

    /// Whether the first record of a ring is older than that time.
    fn is_due(&self, ring: &Ring, until: Option<u64>) -> bool {
        until.is_none_or(|until| first_time(ring, &self.layout).is_some_and(|time| time < until))
    }

    /// Makes sure that the current buffer has room for a record of any length, if memory is available.
    fn make_room(&mut self, need: Need) {
        let is_full =
            |writer: &mut BufferWriter| writer.is_kept_from(need) || writer.room().len() < MAX_RECORD_BYTES;
        if self.writer.as_mut().is_some_and(is_full) {
            self.end_buffer();
        }
        if self.filled.len() >= HANDED_OVER_AT_ONCE {
            self.hand_over();
        }
        if self.writer.is_none() {
            self.writer = self.pool.take(need);
        }
    }

    /// Ends the current buffer and queues it to be sent.
    fn end_buffer(&mut self) {
        let buffer = self.writer.take().filter(|buffer| !buffer.is_empty());
        let complete_before = self.complete_before;
        self.filled.extend(buffer.map(|buffer| FilledBuffer { buffer: Some(buffer), complete_before }));
    }

    /// Sends all filled buffers at once, so that the receiver is woken once and not for every buffer.
    fn hand_over(&mut self) {
        if !self.filled.is_empty() {
            let next = Vec::with_capacity(HANDED_OVER_AT_ONCE);
            // The channel has room for every buffer. If the receiver is gone, the buffers return to the pool.
            let _ = self.draining.out.try_send(std::mem::replace(&mut self.filled, next));
        }
    }
}

/// The layout of the sample at a place in a ring.
fn fields_at(ring: &Ring, at: u64, additional_events: &AdditionalEvents) -> SampleFields {
    additional_events.fields(SampleLayout::event(&|offset, out| ring.copy(at + offset as u64, out)))
}

/// The time of the first record in a ring.
fn first_time(ring: &Ring, layout: &SampleLayout) -> Option<u64> {
    let (at, head) = (ring.tail(), ring.head());
    let mut header = [0; Header::LEN];
    if at >= head {
        return None;
    }
    ring.copy(at, &mut header);
    let header = Header::parse(&header).ok()?;
    // A record without a time counts as the oldest.
    Some(layout.time(|offset, out| ring.copy(at + offset as u64, out), header).unwrap_or(0))
}
