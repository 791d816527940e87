//! The headers of events. The first four bytes of each have its kind, and its size or version.

use super::groups;
use crate::{Event, Guid, PointerSize};
use nyquist_object::Cursor;

/// `TRACE_HEADER_FLAG` and `TRACE_HEADER_EVENT_TRACE`, in the fourth byte: one of the headers below.
const EVENT: u8 = 0xc0;
/// `TRACE_MESSAGE`, in the fourth byte: a message of WPP, which begins with its size.
const MESSAGE: u8 = 0x10;

/// `TRACE_HEADER_TYPE_…` (ntwmi.h), in the third byte. Where there are two, the second one has pointers of
/// 8 bytes.
mod kind {
    pub(super) const SYSTEM: [u8; 2] = [1, 2];
    pub(super) const COMPACT: [u8; 2] = [3, 4];
    pub(super) const FULL: [u8; 2] = [10, 20];
    pub(super) const INSTANCE: [u8; 2] = [11, 21];
    pub(super) const PERF_INFO: [u8; 2] = [16, 17];
    pub(super) const EVENT: [u8; 2] = [18, 19];
}

/// An event that was found in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventInBuffer<'a> {
    /// The event; `None` if nothing but its size is understood, or if a profile does not need it.
    pub(super) event: Option<Event<'a>>,
    /// The number of bytes until the next event.
    pub(super) size: usize,
}

/// Reads the event at the beginning of bytes. `None` at the end of the events, and if the rest is not
/// understood.
pub(super) fn event(bytes: &[u8], cpu: u16) -> Option<EventInBuffer<'_>> {
    let &[.., kind, flags] = bytes.first_chunk::<4>()?;
    let has_size_in_front = flags & EVENT != EVENT || !has_packet(kind);
    let declared = u16_at(bytes, if has_size_in_front { 0 } else { 4 })?;
    let bytes = bytes.get(..usize::from(declared)).filter(|bytes| bytes.len() >= 4)?;
    let is_known = flags & EVENT == EVENT;
    if !is_known && flags & MESSAGE == 0 {
        return None;
    }
    let event = Some(cpu).filter(|_| is_known).and_then(|cpu| parse(bytes, kind, cpu));
    // Each event begins at a multiple of 8 bytes.
    Some(EventInBuffer { event, size: usize::from(declared).next_multiple_of(8) })
}

/// Whether the size is behind the first four bytes (`WMI_TRACE_PACKET`).
fn has_packet(header: u8) -> bool {
    [kind::SYSTEM, kind::COMPACT, kind::PERF_INFO].iter().any(|kinds| kinds.contains(&header))
}

fn parse(bytes: &[u8], header: u8, cpu: u16) -> Option<Event<'_>> {
    let is = |kinds: [u8; 2]| kinds.contains(&header);
    let event = if is(kind::PERF_INFO) {
        perf_info(bytes)
    } else if is(kind::SYSTEM) {
        packet(bytes, 32)
    } else if is(kind::COMPACT) {
        packet(bytes, 24)
    } else if is(kind::FULL) {
        full(bytes, 48)
    } else if is(kind::INSTANCE) {
        full(bytes, 72)
    } else if is(kind::EVENT) {
        described(bytes)
    } else {
        None
    }?;
    let is_wide = [kind::SYSTEM, kind::COMPACT, kind::FULL, kind::INSTANCE, kind::PERF_INFO, kind::EVENT]
        .iter()
        .any(|[_, wide]| *wide == header);
    Some(Event { pointer_size: if is_wide { PointerSize::Eight } else { PointerSize::Four }, cpu, ..event })
}

/// `PERFINFO_TRACE_HEADER`: no thread, and some numbers behind it that its version counts.
fn perf_info(bytes: &[u8]) -> Option<Event<'_>> {
    /// `TRACE_HEADER_PEBS_INDEX_FLAG` and `TRACE_HEADER_PMC_COUNTERS_MASK`.
    const PEBS: u16 = 0x8000;
    const COUNTERS: u16 = 0x0700;
    let version = u16_at(bytes, 0)?;
    let numbers = usize::from(version & PEBS != 0) + usize::from((version & COUNTERS) >> 8);
    let (opcode, group) = (*bytes.get(6)?, *bytes.get(7)?);
    Some(Event {
        provider: groups::class(group, opcode)?,
        opcode,
        version: version as u8,
        pointer_size: PointerSize::Eight,
        process: None,
        thread: None,
        time: u64_at(bytes, 8)?,
        cpu: 0,
        payload: bytes.get(16 + 8 * numbers..)?,
    })
}

/// `SYSTEM_TRACE_HEADER` and its compact form, which lacks the times at the end.
fn packet(bytes: &[u8], len: usize) -> Option<Event<'_>> {
    let (opcode, group) = (*bytes.get(6)?, *bytes.get(7)?);
    of_thread(bytes, groups::class(group, opcode)?, (opcode, u16_at(bytes, 0)? as u8), len)
}

/// `EVENT_TRACE_HEADER` and `EVENT_INSTANCE_GUID_HEADER` (evntrace.h).
fn full(bytes: &[u8], len: usize) -> Option<Event<'_>> {
    of_thread(bytes, guid_at(bytes, 24)?, (*bytes.get(4)?, u16_at(bytes, 6)? as u8), len)
}

/// An event whose header has the thread, the process and the time where most have them, and this length.
fn of_thread(bytes: &[u8], provider: Guid, (opcode, version): (u8, u8), len: usize) -> Option<Event<'_>> {
    Some(Event {
        provider,
        opcode,
        version,
        pointer_size: PointerSize::Eight,
        process: known_id(u32_at(bytes, 12)?),
        thread: known_id(u32_at(bytes, 8)?),
        time: u64_at(bytes, 16)?,
        cpu: 0,
        payload: bytes.get(len..)?,
    })
}

/// `EVENT_HEADER` (evntcons.h), with the extended data of the event behind it.
fn described(bytes: &[u8]) -> Option<Event<'_>> {
    /// `EVENT_HEADER_FLAG_EXTENDED_INFO`.
    const EXTENDED: u16 = 1;
    const SIZE: usize = 80;
    let has_more = u16_at(bytes, 4)? & EXTENDED != 0;
    let event = of_thread(bytes, guid_at(bytes, 24)?, (*bytes.get(45)?, *bytes.get(42)?), SIZE)?;
    let payload = if has_more { without_extended(event.payload)? } else { event.payload };
    Some(Event { payload, ..event })
}

/// What is behind extended data: items of 8 bytes (reserved, type, whether another one follows, size) and their
/// data, each padded to 8 bytes.
fn without_extended(mut bytes: &[u8]) -> Option<&[u8]> {
    loop {
        let another = u16_at(bytes, 4)? & 1 != 0;
        let size = 8 + usize::from(u16_at(bytes, 6)?);
        bytes = bytes.get(size.next_multiple_of(8)..)?;
        if !another {
            return Some(bytes);
        }
    }
}

/// A process or thread, if it is known.
fn known_id(number: u32) -> Option<u32> {
    Some(number).filter(|number| *number != u32::MAX)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Cursor::new(bytes, at, true).u16()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Cursor::new(bytes, at, true).u32()
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Cursor::new(bytes, at, true).u64()
}

fn guid_at(bytes: &[u8], at: usize) -> Option<Guid> {
    bytes.get(at..)?.first_chunk().map(|bytes| Guid::from_bytes(*bytes))
}
