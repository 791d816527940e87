//! The records that perf itself writes between the kernel's.
//!
//! Source: `enum perf_user_event_type` and the structures above it in Linux's
//! `tools/lib/perf/include/perf/event.h`.

use std::ops::Range;

use crate::cursor::RecordCursor;
use crate::{ByteOrder, EventAttr, Header};

/// `enum perf_user_event_type`.
pub mod tool_record {
    #![allow(missing_docs, reason = "the names are perf's own, and its documentation explains them")]
    /// The lowest number that the kernel does not use.
    pub const FIRST: u32 = 64;
    pub const HEADER_ATTR: u32 = 64;
    pub const TRACING_DATA: u32 = 66;
    pub const HEADER_BUILD_ID: u32 = 67;
    pub const FINISHED_ROUND: u32 = 68;
    pub const ID_INDEX: u32 = 69;
    pub const AUXTRACE: u32 = 71;
    pub const EVENT_UPDATE: u32 = 78;
    pub const HEADER_FEATURE: u32 = 80;
    pub const COMPRESSED: u32 = 81;
    pub const COMPRESSED2: u32 = 83;
}

pub(crate) fn u32_at(body: &[u8], at: usize, order: ByteOrder) -> Option<u32> {
    Some(order.u32(*body.get(at..)?.first_chunk()?))
}

pub(crate) fn u64_at(body: &[u8], at: usize, order: ByteOrder) -> Option<u64> {
    Some(order.u64(*body.get(at..)?.first_chunk()?))
}

/// `HEADER_ATTR`: an event's attributes, which contain their own size, and its ids.
pub(crate) fn attr(body: &[u8], order: ByteOrder) -> Option<(EventAttr, Vec<u64>)> {
    let len = u32_at(body, 4, order)? as usize;
    let (attr, ids) = body.split_at_checked(len)?;
    let ids = ids.as_chunks::<8>().0.iter().map(|id| order.u64(*id)).collect();
    Some((EventAttr::parse(attr, order).ok()?, ids))
}

/// `EVENT_UPDATE`: the name of the event with that id, if the update is a name.
pub(crate) fn event_name(body: &[u8], order: ByteOrder) -> Option<(u64, String)> {
    /// `PERF_EVENT_UPDATE__NAME`.
    const NAME: u64 = 2;
    let (kind, id) = (u64_at(body, 0, order)?, u64_at(body, 8, order)?);
    let name = RecordCursor::new(body.get(16..)?, order).text();
    (kind == NAME).then(|| (id, String::from_utf8_lossy(name).into_owned()))
}

/// `HEADER_FEATURE`: a feature's number and section.
pub(crate) fn feature(body: &[u8], order: ByteOrder) -> Option<(u32, &[u8])> {
    let number = u32::try_from(u64_at(body, 0, order)?).ok()?;
    Some((number, body.get(8..)?))
}

/// `ID_INDEX`: the CPUs of events, by id.
pub(crate) fn event_cpus(body: &[u8], order: ByteOrder) -> Vec<(u64, u32)> {
    let Some((_count, entries)) = body.split_first_chunk::<8>() else { return Vec::new() };
    let entries = entries.as_chunks::<32>().0.iter();
    let entry =
        |entry: &[u8; 32]| Some((u64_at(entry, 0, order)?, u32::try_from(u64_at(entry, 16, order)?).ok()?));
    entries.filter_map(entry).collect()
}

/// `COMPRESSED` and `COMPRESSED2`: the range of the compressed bytes in the record. The second one
/// contains their number, because it is padded.
pub(crate) fn compressed_payload(header: Header, body: &[u8], order: ByteOrder) -> Range<usize> {
    let end = usize::from(header.size);
    if header.kind == tool_record::COMPRESSED {
        return Header::LEN..end;
    }
    let start = Header::LEN + 8;
    let len = u64_at(body, 0, order).and_then(|len| usize::try_from(len).ok()).unwrap_or_default();
    start.min(end)..start.saturating_add(len).min(end)
}
