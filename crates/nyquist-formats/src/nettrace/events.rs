//! The events of a block, with the headers that differ from the ones before them.

use crate::le_cursor::LeCursor;

/// Flags of a compressed header: which fields it has.
const METADATA_ID: u8 = 1;
const CAPTURE_THREAD: u8 = 2;
const THREAD_ID: u8 = 4;
const STACK_ID: u8 = 8;
const ACTIVITY_ID: u8 = 16;
const RELATED_ACTIVITY_ID: u8 = 32;
const PAYLOAD_SIZE: u8 = 128;

/// The size of a GUID.
const GUID: usize = 16;

/// An event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TraceEvent<'a> {
    /// The number of its description.
    pub(super) metadata: u32,
    pub(super) thread: u64,
    pub(super) stack: u32,
    /// In ticks.
    pub(super) time: u64,
    pub(super) payload: &'a [u8],
}

/// The events of a block of events or of descriptions.
pub(super) struct BlockEvents<'a> {
    cursor: LeCursor<'a>,
    is_compressed: bool,
    last: TraceEvent<'a>,
    payload_size: usize,
}

impl<'a> BlockEvents<'a> {
    pub(super) fn of(body: &'a [u8]) -> Self {
        let mut cursor = LeCursor::new(body);
        let header = (|| {
            let (size, flags) = (cursor.u16()?, cursor.u16()?);
            cursor.take(usize::from(size).checked_sub(4)?)?;
            Some(flags)
        })();
        // A block whose header is damaged has no events.
        let cursor = if header.is_some() { cursor } else { LeCursor::new(&[]) };
        let is_compressed = header.is_some_and(|flags| flags & 1 != 0);
        Self { cursor, is_compressed, last: TraceEvent::default(), payload_size: 0 }
    }

    fn compressed(&mut self) -> Option<TraceEvent<'a>> {
        let (cursor, mut event) = (&mut self.cursor, self.last);
        let flags = cursor.u8()?;
        if flags & METADATA_ID != 0 {
            event.metadata = number(cursor)?;
        }
        if flags & CAPTURE_THREAD != 0 {
            let (_sequence, _thread, _processor) = (cursor.varint()?, cursor.varint()?, cursor.varint()?);
        }
        if flags & THREAD_ID != 0 {
            event.thread = cursor.varint()?;
        }
        if flags & STACK_ID != 0 {
            event.stack = number(cursor)?;
        }
        event.time = event.time.wrapping_add(cursor.varint()?);
        for flag in [ACTIVITY_ID, RELATED_ACTIVITY_ID] {
            if flags & flag != 0 {
                cursor.take(GUID)?;
            }
        }
        if flags & PAYLOAD_SIZE != 0 {
            self.payload_size = usize::try_from(cursor.varint()?).ok()?;
        }
        event.payload = cursor.take(self.payload_size)?;
        self.last = event;
        Some(event)
    }

    fn uncompressed(&mut self) -> Option<TraceEvent<'a>> {
        /// The highest bit says whether events are sorted up to this one.
        const SORTED: u32 = 1 << 31;
        let cursor = &mut self.cursor;
        let _size = cursor.u32()?;
        let metadata = cursor.u32()? & !SORTED;
        let (_sequence, thread, _capture_thread) = (cursor.u32()?, cursor.u64()?, cursor.u64()?);
        let (_processor, stack, time) = (cursor.u32()?, cursor.u32()?, cursor.u64()?);
        cursor.take(2 * GUID)?;
        let length = cursor.length()?;
        let payload = cursor.take(length)?;
        // The last event of a block may lack its padding.
        let _ = cursor.align(4);
        Some(TraceEvent { metadata, thread, stack, time, payload })
    }
}

impl<'a> Iterator for BlockEvents<'a> {
    type Item = TraceEvent<'a>;

    fn next(&mut self) -> Option<TraceEvent<'a>> {
        if self.is_compressed { self.compressed() } else { self.uncompressed() }
    }
}

/// A number of 32 bits.
fn number(cursor: &mut LeCursor<'_>) -> Option<u32> {
    u32::try_from(cursor.varint()?).ok()
}

/// What an event is, by the provider and its own number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventMeaning {
    /// A sample of a thread.
    Sample,
    /// The code of a method.
    Method,
    /// The file of a module.
    Module,
    /// Memory was allocated; one event for each 100 kB or so.
    Allocation,
    /// The command line of the process.
    ProcessInfo,
}

impl EventMeaning {
    /// The number of an event's description, and its meaning if that is known.
    pub(super) fn of_metadata(payload: &[u8]) -> Option<(u32, Option<Self>)> {
        let mut cursor = LeCursor::new(payload);
        let id = cursor.u32()?;
        let provider = cursor.utf16();
        let event = cursor.u32()?;
        let meaning = match (&*provider, event) {
            ("Microsoft-DotNETCore-SampleProfiler", 0) => Self::Sample,
            // MethodLoadVerbose, and MethodDCStartVerbose and MethodDCEndVerbose of the rundown.
            ("Microsoft-Windows-DotNETRuntime", 143)
            | ("Microsoft-Windows-DotNETRuntimeRundown", 143 | 144) => Self::Method,
            // ModuleLoad, and ModuleDCStart and ModuleDCEnd of the rundown.
            ("Microsoft-Windows-DotNETRuntime", 152)
            | ("Microsoft-Windows-DotNETRuntimeRundown", 153 | 154) => Self::Module,
            ("Microsoft-Windows-DotNETRuntime", 10) => Self::Allocation,
            ("Microsoft-DotNETCore-EventPipe", 1) => Self::ProcessInfo,
            _ => return Some((id, None)),
        };
        Some((id, Some(meaning)))
    }
}
