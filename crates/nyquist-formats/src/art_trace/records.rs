//! The records of a trace: threads enter and leave methods. Streamed traces also name methods and threads.

use super::header::{BinaryHeader, Sections, TraceClock};
use crate::le_cursor::LeCursor;

/// A method is entered, left, or left by an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TraceRecord {
    pub(super) thread: u16,
    pub(super) method: u32,
    pub(super) enters: bool,
    /// In µs since the trace began, by the thread's CPU clock and by the wall clock. One may be missing.
    pub(super) cpu: Option<u64>,
    pub(super) wall: Option<u64>,
}

/// What a streamed trace has besides.
const NEW_METHOD: u8 = 1;
const NEW_THREAD: u8 = 2;
const SUMMARY: u8 = 3;

/// Reads all records, and adds what is named between them to the sections. Returns whether nothing was cut off.
pub(super) fn read(
    header: BinaryHeader,
    bytes: &[u8],
    sections: &mut Sections,
    records: &mut Vec<TraceRecord>,
) -> bool {
    let mut cursor = LeCursor::new(bytes);
    while cursor.remaining() > 0 {
        let mut ahead = cursor;
        let is_named = header.is_streamed && ahead.u16() == Some(0);
        let taken = if is_named {
            cursor = ahead;
            named(&mut cursor, sections)
        } else {
            record(header, &mut cursor, sections.clock).map(|record| records.push(record))
        };
        if taken.is_none() {
            return false;
        }
    }
    true
}

/// A method, a thread, or the sections of lines at the end of a streamed trace.
fn named(cursor: &mut LeCursor<'_>, sections: &mut Sections) -> Option<()> {
    match cursor.u8()? {
        NEW_METHOD => {
            let length = usize::from(cursor.u16()?);
            sections.add_method(&String::from_utf8_lossy(cursor.take(length)?));
        }
        NEW_THREAD => {
            let (id, length) = (cursor.u16()?, usize::from(cursor.u16()?));
            let name = String::from_utf8_lossy(cursor.take(length)?).into_owned();
            sections.threads.insert(id, name);
        }
        SUMMARY => {
            let length = cursor.length()?;
            let text = cursor.take(length)?;
            sections.add(text);
        }
        _ => return None,
    }
    Some(())
}

fn record(header: BinaryHeader, cursor: &mut LeCursor<'_>, clock: Option<TraceClock>) -> Option<TraceRecord> {
    /// The lowest bits of a method's number are what happens: 0 for entering it.
    const ACTION: u32 = 3;
    let mut fields = LeCursor::new(cursor.take(header.record_size)?);
    let thread = if header.version == 1 { u16::from(fields.u8()?) } else { fields.u16()? };
    let method = fields.u32()?;
    let first = u64::from(fields.u32()?);
    let second = fields.u32().map(u64::from);
    let (cpu, wall) = match (second, clock) {
        (Some(wall), _) => (Some(first), Some(wall)),
        (None, Some(TraceClock::ThreadCpu)) => (Some(first), None),
        (None, _) => (None, Some(first)),
    };
    Some(TraceRecord { thread, method: method & !ACTION, enters: method & ACTION == 0, cpu, wall })
}
