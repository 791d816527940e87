//! What a trace says of itself: the class `EventTraceEvent` (MOF `EventTrace_Header`; `TRACE_LOGFILE_HEADER` in
//! evntrace.h).

use crate::{Clock, Event, PayloadError, PointerSize, fields::EventFields};

const HEADER: u8 = 0;

/// `EVENT_TRACE_COMPRESSED_MODE`: the file's buffers are compressed (evntrace.h).
const COMPRESSED: u32 = 0x0400_0000;

/// `TIME_ZONE_INFORMATION` (timezoneapi.h), padded to the 8 bytes that follow it.
const TIME_ZONE: usize = 176;

/// What a trace says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceHeader {
    /// The size of the session's buffers, in bytes.
    pub buffer_size: u32,
    /// The system's major and minor version, such as 10 and 0.
    pub system_version: (u8, u8),
    /// The number of the system's build, such as 19045.
    pub build: u32,
    /// The number of CPUs.
    pub cpus: u32,
    /// When the trace ended, in units of 100 nanoseconds since 1601, or 0.
    pub end_time: u64,
    /// How the file was written (`EVENT_TRACE_FILE_MODE_…`).
    pub file_mode: u32,
    /// How many buffers were written.
    pub buffers: u32,
    /// The size of pointers in its events.
    pub pointer_size: PointerSize,
    /// How many events were lost, because no buffer was free.
    pub events_lost: u32,
    /// When the trace began, in units of 100 nanoseconds since 1601.
    pub start_time: u64,
    /// The clock that stamps the events.
    pub clock: Clock,
    /// How many buffers were lost, because they could not be written.
    pub buffers_lost: u32,
}

impl TraceHeader {
    /// Whether the file's buffers may be compressed.
    pub fn is_compressed(&self) -> bool {
        self.file_mode & COMPRESSED != 0
    }
}

pub(super) fn decode(event: &Event<'_>) -> Result<Option<TraceHeader>, PayloadError> {
    if event.opcode != HEADER {
        return Ok(None);
    }
    let mut fields = EventFields::of(event, "EventTrace Header");
    let buffer_size = fields.u32("buffer size")?;
    let system_version = (fields.u8("version")?, fields.u8("version")?);
    fields.skip(2, "version")?;
    let build = fields.u32("build")?;
    let cpus = fields.u32("number of CPUs")?;
    let end_time = fields.u64("end time")?;
    fields.skip(8, "timer resolution")?;
    let file_mode = fields.u32("file mode")?;
    let buffers = fields.u32("number of buffers")?;
    fields.skip(4, "start buffers")?;
    let pointer_size = if fields.u32("pointer size")? == 4 { PointerSize::Four } else { PointerSize::Eight };
    let events_lost = fields.u32("lost events")?;
    let cpu_mhz = fields.u32("CPU speed")?;
    // The two names are pointers of the size that the payload states, whatever the event's header says.
    fields.skip(2 * pointer_size.bytes(), "names")?;
    fields.skip(TIME_ZONE, "time zone")?;
    fields.skip(8, "boot time")?;
    let frequency = fields.u64("frequency")?;
    let start_time = fields.u64("start time")?;
    let clock = match fields.u32("clock")? {
        2 => Clock::system_time(),
        3 => Clock::cpu_cycles(cpu_mhz),
        _ => Clock::performance_counter(frequency),
    };
    let buffers_lost = fields.u32("lost buffers")?;
    Ok(Some(TraceHeader {
        buffer_size,
        system_version,
        build,
        cpus,
        end_time,
        file_mode,
        buffers,
        pointer_size,
        events_lost,
        start_time,
        clock,
        buffers_lost,
    }))
}
