//! Starting and stopping sessions, what they record, and how often CPUs are sampled.

use std::ops::RangeInclusive;
use std::{io, mem, ptr};

use nyquist_etw::Guid;
use windows_sys::Win32::Foundation::ERROR_MORE_DATA;
use windows_sys::Win32::System::Diagnostics::Etw::{
    CLASSIC_EVENT_ID, CONTROLTRACE_HANDLE, ControlTraceW, EVENT_TRACE_CONTROL_QUERY,
    EVENT_TRACE_CONTROL_STOP, EVENT_TRACE_PROPERTIES, EVENT_TRACE_REAL_TIME_MODE,
    EVENT_TRACE_SYSTEM_LOGGER_MODE, QueryAllTracesW, StartTraceW, TRACE_PROFILE_INTERVAL,
    TraceProfileSourceListInfo, TraceQueryInformation, TraceSampledProfileIntervalInfo, TraceSetInformation,
    TraceStackTracingInfo, WNODE_FLAG_TRACED_GUID,
};
use windows_sys::core::GUID;

use super::{check_code, wide};
use crate::etw::{BUFFER_KB, SessionLosses, buffer_counts};
use crate::windows::sys::{memory, text};

/// The longest name of a session, in UTF-16 units with the zero at its end (documentation of `StartTrace`).
const NAME: usize = 1024;
/// The most sessions that a machine has (documentation of `QueryAllTraces`).
const MAX_SESSIONS: usize = 64;
/// The clock of the events: the performance counter (documentation of `WNODE_HEADER::ClientContext`).
const PERFORMANCE_COUNTER: u32 = 1;
/// How often buffers are delivered that are not full, in seconds.
const FLUSH_SECONDS: u32 = 1;
/// The source of samples that is the CPU's timer.
const TIMER: u32 = 0;
/// The size of a source's record without its name (`PROFILE_SOURCE_INFO`), in bytes.
const SOURCE_SIZE: u32 = 24;
/// The unit of intervals between samples, in nanoseconds.
const INTERVAL_UNIT_NS: u64 = 100;

/// A session's properties, with room for the names behind them.
#[repr(C)]
struct Properties {
    session: EVENT_TRACE_PROPERTIES,
    name: [u16; NAME],
    file: [u16; NAME],
}

impl Properties {
    fn new() -> Box<Self> {
        let mut all =
            Box::new(Self { session: EVENT_TRACE_PROPERTIES::default(), name: [0; NAME], file: [0; NAME] });
        all.session.Wnode.BufferSize = mem::size_of::<Self>() as u32;
        all.session.LoggerNameOffset = mem::offset_of!(Self, name) as u32;
        all.session.LogFileNameOffset = mem::offset_of!(Self, file) as u32;
        all
    }

    fn losses(&self) -> SessionLosses {
        let EVENT_TRACE_PROPERTIES { EventsLost, RealTimeBuffersLost, LogBuffersLost, .. } = self.session;
        SessionLosses {
            events: EventsLost.into(),
            buffers: u64::from(RealTimeBuffersLost) + u64::from(LogBuffersLost),
        }
    }
}

/// A session that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionHandle(u64);

impl SessionHandle {
    fn raw(self) -> CONTROLTRACE_HANDLE {
        CONTROLTRACE_HANDLE { Value: self.0 }
    }
}

/// What a new session is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewSession<'a> {
    pub(crate) name: &'a str,
    /// A number that no other session has.
    pub(crate) id: u128,
    /// The kernel's events: `EVENT_TRACE_FLAG_…`.
    pub(crate) flags: u32,
    pub(crate) cpus: usize,
}

/// Starts a session of the kernel's events. They are delivered, and not written to a file.
pub(crate) fn start(session: &NewSession<'_>) -> io::Result<SessionHandle> {
    let name = wide(session.name);
    let (fewest, most) = buffer_counts(session.cpus, memory::of_machine());
    let mut all = Properties::new();
    let properties = &mut all.session;
    properties.Wnode.Guid = GUID::from_u128(session.id);
    properties.Wnode.Flags = WNODE_FLAG_TRACED_GUID;
    properties.Wnode.ClientContext = PERFORMANCE_COUNTER;
    properties.LogFileMode = EVENT_TRACE_REAL_TIME_MODE | EVENT_TRACE_SYSTEM_LOGGER_MODE;
    properties.BufferSize = BUFFER_KB;
    properties.MinimumBuffers = fewest;
    properties.MaximumBuffers = most;
    properties.FlushTimer = FLUSH_SECONDS;
    properties.EnableFlags = session.flags;
    // No file.
    properties.LogFileNameOffset = 0;
    let mut handle = CONTROLTRACE_HANDLE::default();
    // SAFETY: the name ends with a zero, and the properties have the size that they state, with room for the
    // name at its offset; all live through the call.
    check_code(unsafe { StartTraceW(&raw mut handle, name.as_ptr(), ptr::from_mut(&mut *all).cast()) })?;
    Ok(SessionHandle(handle.Value))
}

/// What a session has lost so far.
pub(crate) fn losses(session: SessionHandle) -> io::Result<SessionLosses> {
    control(session, EVENT_TRACE_CONTROL_QUERY)
}

/// Stops a session, and returns what it has lost.
pub(crate) fn stop(session: SessionHandle) -> io::Result<SessionLosses> {
    control(session, EVENT_TRACE_CONTROL_STOP)
}

fn control(session: SessionHandle, code: u32) -> io::Result<SessionLosses> {
    let mut all = Properties::new();
    // SAFETY: the session is named by its handle, so that the name may be null. The properties have the size
    // that they state, with room for both names, and live through the call.
    check_code(unsafe { ControlTraceW(session.raw(), ptr::null(), ptr::from_mut(&mut *all).cast(), code) })?;
    Ok(all.losses())
}

/// Stops the session with a name.
pub(crate) fn stop_named(name: &str) -> io::Result<()> {
    let name = wide(name);
    let mut all = Properties::new();
    let none = CONTROLTRACE_HANDLE::default();
    let properties = ptr::from_mut(&mut *all).cast();
    // SAFETY: the name ends with a zero. The properties have the size that they state, with room for both names.
    // All live through the call.
    check_code(unsafe { ControlTraceW(none, name.as_ptr(), properties, EVENT_TRACE_CONTROL_STOP) })
}

/// The names of all sessions that this user may see.
pub(crate) fn names() -> io::Result<Vec<String>> {
    let mut sessions: Vec<Box<Properties>> = (0..MAX_SESSIONS).map(|_| Properties::new()).collect();
    let mut pointers: Vec<*mut EVENT_TRACE_PROPERTIES> =
        sessions.iter_mut().map(|session| ptr::from_mut(&mut **session).cast()).collect();
    let mut count = 0;
    // SAFETY: there are as many pointers as stated. Each points to properties of the size that they state, with
    // room for both names. All live through the call.
    let code = unsafe { QueryAllTracesW(pointers.as_mut_ptr(), MAX_SESSIONS as u32, &raw mut count) };
    // If there are more sessions, as many as there is room for are stated.
    if code != ERROR_MORE_DATA {
        check_code(code)?;
    }
    Ok(sessions.iter().take(count as usize).map(|session| text(&session.name)).collect())
}

/// Lets the kernel walk the stacks of these kinds of events.
pub(crate) fn walk_stacks(session: SessionHandle, events: &[(Guid, u8)]) -> io::Result<()> {
    let id = |(class, kind): &(Guid, u8)| CLASSIC_EVENT_ID {
        EventGuid: GUID::from_u128(class.0),
        Type: *kind,
        Reserved: [0; 7],
    };
    let ids: Vec<CLASSIC_EVENT_ID> = events.iter().map(id).collect();
    let len = mem::size_of_val(&ids[..]) as u32;
    // SAFETY: the array has the length in bytes that is passed, and lives through the call.
    check_code(unsafe { TraceSetInformation(session.raw(), TraceStackTracingInfo, ids.as_ptr().cast(), len) })
}

/// The time between two samples of a CPU, in nanoseconds. It is one for the whole machine.
pub(crate) fn interval_ns() -> io::Result<u64> {
    let mut interval = TRACE_PROFILE_INTERVAL { Source: TIMER, Interval: 0 };
    let (len, mut used) = (mem::size_of_val(&interval) as u32, 0);
    // SAFETY: the structure has the length that is passed, and lives through the call as `used` does. The
    // interval belongs to no session.
    check_code(unsafe {
        TraceQueryInformation(
            CONTROLTRACE_HANDLE::default(),
            TraceSampledProfileIntervalInfo,
            (&raw mut interval).cast(),
            len,
            &raw mut used,
        )
    })?;
    Ok(u64::from(interval.Interval) * INTERVAL_UNIT_NS)
}

/// Sets the time between two samples of a CPU, in nanoseconds.
pub(crate) fn set_interval_ns(interval_ns: u64) -> io::Result<()> {
    let interval = u32::try_from(interval_ns / INTERVAL_UNIT_NS).unwrap_or(u32::MAX);
    let interval = TRACE_PROFILE_INTERVAL { Source: TIMER, Interval: interval };
    let len = mem::size_of_val(&interval) as u32;
    // SAFETY: the structure has the length that is passed, and lives through the call. The interval belongs to no
    // session.
    check_code(unsafe {
        TraceSetInformation(
            CONTROLTRACE_HANDLE::default(),
            TraceSampledProfileIntervalInfo,
            (&raw const interval).cast(),
            len,
        )
    })
}

/// The sources of samples, as the system lists them (`PROFILE_SOURCE_INFO`).
pub(crate) fn sources() -> io::Result<Vec<u8>> {
    const ROOM: usize = 64 << 10;
    // Of 8 bytes each, because the records have numbers of that size.
    let mut room = vec![0_u64; ROOM / 8];
    let mut used = 0;
    // SAFETY: the memory has the length that is passed, and lives through the call as `used` does.
    check_code(unsafe {
        TraceQueryInformation(
            CONTROLTRACE_HANDLE::default(),
            TraceProfileSourceListInfo,
            room.as_mut_ptr().cast(),
            ROOM as u32,
            &raw mut used,
        )
    })?;
    let bytes = room.iter().flat_map(|number| number.to_le_bytes());
    Ok(bytes.take(used as usize).collect())
}

/// The shortest and the longest time between two samples of a CPU that the timer allows, in nanoseconds.
pub(crate) fn allowed_ns(sources: &[u8]) -> Option<RangeInclusive<u64>> {
    let number = |at: usize| {
        let bytes = sources.get(at..at.checked_add(4)?)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    };
    let mut at = 0;
    loop {
        // `PROFILE_SOURCE_INFO`: the offset of the next one, the source, its least and its greatest interval.
        let (next, source, least, most) = (number(at)?, number(at + 4)?, number(at + 8)?, number(at + 12)?);
        if source == TIMER {
            let ns = |interval| u64::from(interval) * INTERVAL_UNIT_NS;
            return (0 < least && least <= most).then(|| ns(least)..=ns(most));
        }
        if next < SOURCE_SIZE {
            return None;
        }
        at = at.checked_add(next as usize)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_is_found_among_the_sources() {
        let source = |next: u32, source: u32, least: u32, most: u32| {
            let numbers = [next, source, least, most, 0, 0, 0, 0];
            numbers.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>()
        };
        let listed = [source(32, 2, 4096, 9), source(0, TIMER, 1221, 10_000_000)].concat();
        assert_eq!(allowed_ns(&listed), Some(122_100..=1_000_000_000));
        assert_eq!(allowed_ns(&source(0, 2, 1, 2)), None);
        assert_eq!(allowed_ns(&listed[..40]), None);
        assert_eq!(allowed_ns(&source(8, 2, 1, 2)), None, "an offset into the record itself");
        assert_eq!(allowed_ns(&source(100, 2, 1, 2)), None, "an offset that leads nowhere");
        assert_eq!(allowed_ns(&source(0, TIMER, 0, 2)), None, "no interval");
    }

    #[test]
    fn sessions_are_listed_or_refused() {
        // Wine and plain users have none.
        let names = names().unwrap_or_default();
        assert!(names.len() <= MAX_SESSIONS && !names.contains(&"nyquist-0".to_owned()));
        assert!(stop_named("nyquist-0").is_err() || super::super::is_wine());
    }
}
