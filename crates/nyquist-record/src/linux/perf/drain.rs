//! Draining rings: what they hold is copied out into memory of their own, and handed over. Nothing else happens here:
//! it shares no lock with later stages, and nothing is allocated but the buffers of the pool, each once, and the short lists
//! that they are handed over in.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use nyquist_convert::event::Timestamp;
use nyquist_convert::perf::{EventsBeside, SampleFields};
use nyquist_convert::sys::CACHE_LINE;
use nyquist_perf::abi::record;
use nyquist_perf::{Header, RecordFormat, SampleLayout};

use super::compact_record::{Compacted, compact};
use super::deep_stacks::TruncatedStackSender;
use super::inherited_events::{InheritedEventFilter, task};
use super::losses::Losses;
use super::ring_source::RingSource;
use super::stack_bases::StackBases;
use super::totals::EndedThreads;
use crate::linux::arch;
use crate::linux::pool::{BUFFER_BYTES, BufferWriter, Need, Pool};
use crate::linux::sys::ring::Ring;

/// What is handed over: filled memory, and how far the past is complete.
#[derive(Debug)]
pub(crate) struct FilledBuffer {
    /// Nothing where only the past has become complete.
    pub(crate) buffer: Option<BufferWriter>,
    pub(crate) complete_before: Timestamp,
}

/// How many buffers are filled before they are handed over, also in the midst of a round.
const HANDED_OVER_AT_ONCE: usize = 16;

/// How much of a record is fetched while the one before is copied: its fixed fields, a call chain, registers, and the innermost part of
/// a stack. What comes after that, the processor foresees.
const FETCHED_AHEAD: u64 = 1536;

/// The longest record: its size is a `u16`.
const LONGEST_RECORD: usize = 1 << 16;

/// What it takes to drain rings, which is the same for all of them.
#[derive(Debug)]
pub(crate) struct Draining {
    pub(crate) format: RecordFormat,
    /// The events beside the clock, some of whose samples have another layout.
    pub(crate) beside: EventsBeside,
    /// The size of the pool that records are copied into.
    pub(crate) buffers: usize,
    pub(crate) out: SyncSender<Vec<FilledBuffer>>,
    /// Whom to tell of copies that do not hold the whole stack, where somebody wants to know.
    pub(crate) cuts: Option<TruncatedStackSender>,
    /// Where stacks have their roots, as far as that is known.
    pub(crate) roots: Arc<StackBases>,
}

/// Drains some rings.
#[derive(Debug)]
pub(crate) struct Drainer {
    /// The rings of each CPU, those for the sideband first.
    pub(crate) rings: Vec<RingSource>,
    copier: Copier,
}

/// Copies records out of rings.
#[derive(Debug)]
struct Copier {
    draining: Draining,
    layout: SampleLayout,
    /// Those of samples of events beside the clock that say less or more.
    other_layouts: [(SampleFields, SampleLayout); 2],
    pool: Pool,
    lineage: Option<InheritedEventFilter>,
    ended: EndedThreads,
    losses: Losses,
    filling: Option<BufferWriter>,
    /// What is filled and was not handed over yet: whoever takes it may get this thread's CPU at once.
    filled: Vec<FilledBuffer>,
    /// How far the past is complete with what was handed over, and what is filled now.
    complete_before: Timestamp,
}

impl Drainer {
    /// To drain these rings; given where samples come from, if threads have more events than their own.
    pub(crate) fn new(
        rings: Vec<RingSource>,
        draining: Draining,
        lineage: Option<InheritedEventFilter>,
    ) -> Self {
        let format = draining.format;
        let pool = Pool::of(draining.buffers, BUFFER_BYTES);
        let copier = Copier {
            draining,
            layout: SampleLayout::new(&format, arch::perf::STACK_POINTER),
            other_layouts: [SampleFields::NoPeriod, SampleFields::Count]
                .map(|fields| (fields, SampleLayout::new(&fields.format(format), arch::perf::STACK_POINTER))),
            pool,
            lineage,
            ended: EndedThreads::new(format),
            losses: Losses::new(format),
            filling: None,
            filled: Vec::new(),
            complete_before: Timestamp(0),
        };
        Self { rings, copier }
    }

    /// Copies out what the rings hold. Gives back the time of the oldest record that had to stay, if there was no memory to copy
    /// it into.
    pub(crate) fn drain(&mut self) -> Option<u64> {
        let Self { rings, copier } = self;
        let mut has_room = true;
        for RingSource { ring, need, .. } in &mut *rings {
            has_room &= copier.ring(ring, *need, None).is_some();
        }
        if has_room { None } else { self.oldest_first() }
    }

    /// Goes on where there is hardly any memory left: with what is oldest in all rings, in the order of time. Gives back the
    /// time of the oldest record that stays.
    ///
    /// What was copied out of one ring waits until nothing older can come from another. Were the last of the memory filled with
    /// anything newer than what stays, nothing would ever come back.
    fn oldest_first(&mut self) -> Option<u64> {
        let Self { rings, copier } = self;
        loop {
            let (mut oldest, mut next): (Option<(u64, &mut Ring)>, _) = (None, u64::MAX);
            // What is dropped where there is no memory does not wait for any.
            let waits = |source: &&mut RingSource| source.need != Need::Occurrences;
            for RingSource { ring, .. } in rings.iter_mut().filter(waits) {
                let Some(time) = first_time(ring, &copier.layout) else { continue };
                let is_oldest = oldest.as_ref().is_none_or(|(oldest, _)| time < *oldest);
                let other =
                    if is_oldest { oldest.replace((time, ring)).map(|(time, _)| time) } else { Some(time) };
                next = next.min(other.unwrap_or(u64::MAX));
            }
            let (_, ring) = oldest?;
            if copier.ring(ring, Need::Oldest, Some(next)).is_none() {
                return Some(first_time(ring, &copier.layout).unwrap_or(next).min(next));
            }
        }
    }

    /// Hands over all that was copied out. With the last of it the past is complete up to that time. If nothing was copied out,
    /// and `is_due`, the time is handed over alone.
    pub(crate) fn hand_over(&mut self, complete_before: Timestamp, is_due: bool) {
        let copier = &mut self.copier;
        copier.complete_before = complete_before;
        copier.end_filling();
        match copier.filled.last_mut() {
            Some(last) => last.complete_before = complete_before,
            None if is_due => copier.filled.push(FilledBuffer { buffer: None, complete_before }),
            None => {}
        }
        copier.hand_over();
    }

    /// The ends of threads, and the losses, that records have reported.
    pub(crate) fn into_reports(self) -> (EndedThreads, Losses) {
        (self.copier.ended, self.copier.losses)
    }
}

impl Copier {
    /// Copies out what is in a ring: its first record, and all that follow and are older than `until`. `None` where there is no
    /// memory for more.
    fn ring(&mut self, ring: &mut Ring, need: Need, until: Option<u64>) -> Option<()> {
        let head = ring.head();
        let start = ring.tail();
        let mut at = start;
        while at < head && (at == start || self.is_due(ring, until)) {
            let mut header = [0; Header::LEN];
            ring.copy(at, &mut header);
            let header = Header::parse(&header).ok().filter(|header| usize::from(header.size) >= Header::LEN);
            // The kernel writes whole records only; should that ever fail, what it wrote is given up.
            let Some(header) = header else {
                ring.release(head);
                return Some(());
            };
            self.make_room(need);
            let is_beside = need == Need::Occurrences;
            let filling = match self.filling.as_mut() {
                Some(filling) => filling,
                None if is_beside => {
                    self.drop_beside(ring, at, header);
                    at += u64::from(header.size);
                    continue;
                }
                None => return None,
            };
            fetch_next(ring, at, header, head);
            let Draining { format, beside, cuts, roots, .. } = &self.draining;
            let fields = match header.kind {
                record::SAMPLE if is_beside => fields_at(ring, at, beside),
                _ => SampleFields::Common,
            };
            let other = self.other_layouts.iter().find(|(of, _)| *of == fields);
            let layout = other.map_or(&self.layout, |(_, layout)| layout);
            let room = filling.room();
            let Compacted { len, may_go_on } =
                compact(|offset, out| ring.copy(at + offset as u64, out), header, (layout, roots), room);
            let copied = room.get(..len).unwrap_or_default();
            match header.kind {
                record::READ => self.ended.note(copied),
                record::LOST if is_beside => self.losses.note_beside(copied),
                record::LOST => self.losses.note(copied),
                _ => {}
            }
            let task = || task(copied, format);
            if self.lineage.as_mut().is_none_or(|lineage| lineage.keeps(header, copied, task)) {
                if let Some(cuts) = cuts.as_ref().filter(|_| may_go_on && !is_beside) {
                    cuts.notice(copied, &self.layout);
                }
                filling.advance(len);
            }
            at += u64::from(header.size);
            ring.release(at);
        }
        Some(())
    }

    /// Leaves out a record of an event beside the clock, as there is no memory for it, and counts it.
    fn drop_beside(&mut self, ring: &mut Ring, at: u64, header: Header) {
        // What a record of losses tells of is counted in the end, by the events themselves.
        if header.kind == record::SAMPLE {
            self.losses.drop_beside();
        }
        ring.release(at + u64::from(header.size));
    }

    /// Whether the first record of a ring is older than that time.
    fn is_due(&self, ring: &Ring, until: Option<u64>) -> bool {
        until.is_none_or(|until| first_time(ring, &self.layout).is_some_and(|time| time < until))
    }

    /// Takes memory with room for a record of any length, if there is some.
    fn make_room(&mut self, need: Need) {
        let is_full =
            |filling: &mut BufferWriter| filling.is_kept_from(need) || filling.room().len() < LONGEST_RECORD;
        if self.filling.as_mut().is_some_and(is_full) {
            self.end_filling();
        }
        if self.filled.len() >= HANDED_OVER_AT_ONCE {
            self.hand_over();
        }
        if self.filling.is_none() {
            self.filling = self.pool.take(need);
        }
    }

    /// Takes what is being filled for filled.
    fn end_filling(&mut self) {
        let buffer = self.filling.take().filter(|buffer| !buffer.is_empty());
        let complete_before = self.complete_before;
        self.filled.extend(buffer.map(|buffer| FilledBuffer { buffer: Some(buffer), complete_before }));
    }

    /// Hands over what is filled, all at once: who takes it is woken once and not for every buffer.
    fn hand_over(&mut self) {
        if !self.filled.is_empty() {
            let next = Vec::with_capacity(HANDED_OVER_AT_ONCE);
            // The channel has room for every buffer that there is. Where nobody listens any more, the buffers go
            // back to the pool.
            let _ = self.draining.out.try_send(std::mem::replace(&mut self.filled, next));
        }
    }
}

/// Has the processor fetch of the record after the one at `at` what will be looked at first: its beginning, and the last word, if it is
/// as long as this one. Another CPU has written it, and it would be waited for several times.
fn fetch_next(ring: &Ring, at: u64, header: Header, head: u64) {
    let len = u64::from(header.size);
    let next = at + len;
    if header.kind == record::SAMPLE && next < head {
        (next..next + FETCHED_AHEAD).step_by(CACHE_LINE).for_each(|position| ring.fetch(position));
        ring.fetch(next + len - 8);
    }
}

/// What the sample at a place in a ring says.
fn fields_at(ring: &Ring, at: u64, beside: &EventsBeside) -> SampleFields {
    let mut id = [0; 8];
    ring.copy(at + SampleLayout::EVENT_AT as u64, &mut id);
    beside.fields(u64::from_le_bytes(id))
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
    // A record without a time is as old as can be.
    Some(layout.time(|offset, out| ring.copy(at + offset as u64, out), header).unwrap_or(0))
}
