//! The objects of a file: what it says of the whole trace, and its blocks.

use crate::le_cursor::LeCursor;

/// The text after the magic.
const SERIALIZATION: &[u8] = b"!FastSerialization.1";

/// Tags before and after objects.
const NULL: u8 = 1;
const BEGIN: u8 = 5;
const END: u8 = 6;

/// What a file says of the whole trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TraceObject {
    /// When it began: milliseconds since 1970.
    pub(super) start_ms: u64,
    /// When it began, in the ticks of events.
    pub(super) start_ticks: u64,
    pub(super) ticks_per_second: u64,
    /// The size of an address: 4 or 8.
    pub(super) pointer_size: usize,
    pub(super) pid: u32,
    pub(super) processors: u32,
}

/// A part of a file.
#[derive(Clone, Copy, Debug)]
pub(super) enum TracePart<'a> {
    Trace(TraceObject),
    Events(&'a [u8]),
    Metadata(&'a [u8]),
    Stacks(&'a [u8]),
    /// Stacks before it are not referred to after it.
    SequencePoint,
    /// A kind that is not used.
    Other,
}

/// The parts of a file, one after the other.
pub(super) struct TraceParts<'a> {
    cursor: LeCursor<'a>,
    /// Whether the last part was there.
    pub(super) is_whole: bool,
}

impl<'a> TraceParts<'a> {
    /// The parts after the header. `None` if the file does not begin as one of version 4 or 5.
    pub(super) fn of(bytes: &'a [u8]) -> Option<Self> {
        let mut cursor = LeCursor::new(bytes);
        let has_magic = cursor.take(super::MAGIC.len())? == super::MAGIC;
        let length = cursor.length()?;
        let is_known = cursor.take(length)? == SERIALIZATION;
        (has_magic && is_known).then_some(Self { cursor, is_whole: false })
    }

    /// The next part. `None` at the end, or where the file is damaged.
    fn part(&mut self) -> Option<TracePart<'a>> {
        let cursor = &mut self.cursor;
        match cursor.u8()? {
            NULL => {
                self.is_whole = true;
                return None;
            }
            BEGIN => {}
            _ => return None,
        }
        let is_type = cursor.take(2)? == [BEGIN, NULL];
        let (_version, _reader) = (cursor.u32()?, cursor.u32()?);
        let length = cursor.length()?;
        let name = cursor.take(length)?;
        if !is_type || cursor.u8()? != END {
            return None;
        }
        let part = if name == b"Trace" { TracePart::Trace(trace(cursor)?) } else { block(name, cursor)? };
        (cursor.u8()? == END).then_some(part)
    }
}

impl<'a> Iterator for TraceParts<'a> {
    type Item = TracePart<'a>;

    fn next(&mut self) -> Option<TracePart<'a>> {
        self.part()
    }
}

fn block<'a>(name: &[u8], cursor: &mut LeCursor<'a>) -> Option<TracePart<'a>> {
    let length = cursor.length()?;
    cursor.align(4)?;
    let body = cursor.take(length)?;
    Some(match name {
        b"EventBlock" => TracePart::Events(body),
        b"MetadataBlock" => TracePart::Metadata(body),
        b"StackBlock" => TracePart::Stacks(body),
        b"SPBlock" => TracePart::SequencePoint,
        _ => TracePart::Other,
    })
}

fn trace(cursor: &mut LeCursor<'_>) -> Option<TraceObject> {
    let mut date = [0_u16; 8];
    for part in &mut date {
        *part = cursor.u16()?;
    }
    let (start_ticks, ticks_per_second) = (cursor.u64()?, cursor.u64()?);
    let (pointer_size, pid, processors) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
    let _rate = cursor.u32()?;
    let pointer_size = match pointer_size {
        4 => 4,
        _ => 8,
    };
    Some(TraceObject {
        start_ms: unix_ms(date),
        start_ticks,
        ticks_per_second,
        pointer_size,
        pid,
        processors,
    })
}

/// Milliseconds since 1970 of year, month, day of the week, day, hour, minute, second and millisecond.
fn unix_ms([year, month, _, day, hour, minute, second, milli]: [u16; 8]) -> u64 {
    // Years that begin with March, so that the day of a leap year is the last one.
    let (year, month) = (u64::from(year), u64::from(month));
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.saturating_sub(1), month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + u64::from(day);
    let days = days.saturating_sub(719_469);
    let seconds = days * 86_400 + u64::from(hour) * 3600 + u64::from(minute) * 60 + u64::from(second);
    seconds * 1000 + u64::from(milli)
}

/// The stacks of a block, each with its number: addresses, the innermost first.
pub(super) fn stacks(body: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let mut cursor = LeCursor::new(body);
    let first = cursor.u32().unwrap_or(0);
    let count = cursor.u32().unwrap_or(0);
    (0..count).map_while(move |place| {
        let length = cursor.length()?;
        Some((first.wrapping_add(place), cursor.take(length)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_counted_from_1970() {
        assert_eq!(unix_ms([1970, 1, 4, 1, 0, 0, 0, 0]), 0);
        assert_eq!(unix_ms([2024, 2, 4, 29, 1, 2, 3, 4]), 1_709_168_523_004);
        assert_eq!(unix_ms([0; 8]), 0);
    }
}
