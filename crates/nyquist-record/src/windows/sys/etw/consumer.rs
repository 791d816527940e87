//! The delivery of a session's events. The system calls a function for each event, on the thread that asks for
//! them.

use std::{io, ptr, slice};

use nyquist_etw::{Event, Guid, PointerSize};
use windows_sys::Win32::System::Diagnostics::Etw::{
    CloseTrace, EVENT_HEADER_FLAG_32_BIT_HEADER, EVENT_HEADER_FLAG_PROCESSOR_INDEX, EVENT_RECORD,
    EVENT_TRACE_LOGFILEW, OpenTraceW, PROCESS_TRACE_MODE_EVENT_RECORD, PROCESS_TRACE_MODE_RAW_TIMESTAMP,
    PROCESS_TRACE_MODE_REAL_TIME, PROCESSTRACE_HANDLE, ProcessTrace,
};

use super::{check_code, wide};
use crate::etw::EventSink;

/// What `OpenTraceW` returns if it fails (`INVALID_PROCESSTRACE_HANDLE`).
const INVALID: u64 = u64::MAX;
/// What stands for no process and no thread in a header.
const NONE: u32 = u32::MAX;
/// What a function that is called for each buffer returns to go on.
const GO_ON: u32 = 1;

/// An open session.
#[derive(Debug)]
pub(crate) struct Consumer {
    handle: u64,
    /// Made by [`Box::into_raw`]. The system passes it to the functions that it calls.
    sink: *mut EventSink,
}

// SAFETY: the sink is owned by this value alone, it may be sent itself, and the system uses it only on the thread
// that calls `run`.
unsafe impl Send for Consumer {}

impl Consumer {
    /// Opens the events of a session with a name.
    pub(crate) fn open(name: &str, sink: EventSink) -> io::Result<Self> {
        let mut name = wide(name);
        let sink = Box::into_raw(Box::new(sink));
        let mut file = EVENT_TRACE_LOGFILEW {
            LoggerName: name.as_mut_ptr(),
            BufferCallback: Some(on_buffer),
            Context: sink.cast(),
            ..EVENT_TRACE_LOGFILEW::default()
        };
        file.Anonymous1.ProcessTraceMode =
            PROCESS_TRACE_MODE_REAL_TIME | PROCESS_TRACE_MODE_EVENT_RECORD | PROCESS_TRACE_MODE_RAW_TIMESTAMP;
        file.Anonymous2.EventRecordCallback = Some(on_event);
        // SAFETY: the structure and the name, which ends with a zero, live through the call. The functions have
        // the types that the mode asks for, and the context lives until the handle is closed.
        let handle = unsafe { OpenTraceW(&raw mut file) }.Value;
        // Made before the check, so that the sink is freed.
        let consumer = Self { handle, sink };
        if handle == INVALID { Err(io::Error::last_os_error()) } else { Ok(consumer) }
    }

    /// Copies events to the sink, until the session has stopped and all were delivered.
    pub(crate) fn run(self) -> io::Result<()> {
        let handle = PROCESSTRACE_HANDLE { Value: self.handle };
        // SAFETY: the handle is open, and there is one. Null pointers mean all times.
        check_code(unsafe { ProcessTrace(&raw const handle, 1, ptr::null(), ptr::null()) })
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        if self.handle != INVALID {
            // SAFETY: the handle is open, and is not used again.
            unsafe { CloseTrace(PROCESSTRACE_HANDLE { Value: self.handle }) };
        }
        // SAFETY: `into_raw` has made the pointer. The handle is closed, and `ProcessTrace` has returned, so that
        // no function uses it again.
        drop(unsafe { Box::from_raw(self.sink) });
    }
}

/// Called for each event.
unsafe extern "system" fn on_event(record: *mut EVENT_RECORD) {
    // SAFETY: the system passes a record that lives through the call.
    let Some(record) = (unsafe { record.as_ref() }) else { return };
    // SAFETY: the context is the sink that `open` has passed. This thread alone uses it, in one function at once.
    let Some(sink) = (unsafe { record.UserContext.cast::<EventSink>().as_mut() }) else { return };
    let payload = if record.UserData.is_null() {
        &[]
    } else {
        // SAFETY: the system states the payload's length, and it lives through the call.
        unsafe { slice::from_raw_parts(record.UserData.cast(), record.UserDataLength.into()) }
    };
    sink.push(&event(record, payload));
}

/// Called after the events of each of the kernel's buffers.
unsafe extern "system" fn on_buffer(file: *mut EVENT_TRACE_LOGFILEW) -> u32 {
    // SAFETY: the system passes the structure of the session, which lives through the call.
    if let Some(file) = unsafe { file.as_ref() } {
        // SAFETY: as above.
        if let Some(sink) = unsafe { file.Context.cast::<EventSink>().as_mut() } {
            sink.flush();
        }
    }
    GO_ON
}

/// The event of a record.
fn event<'a>(record: &EVENT_RECORD, payload: &'a [u8]) -> Event<'a> {
    let header = &record.EventHeader;
    let has = |flag: u32| u32::from(header.Flags) & flag != 0;
    // SAFETY: all bits of both forms are numbers.
    let (index, number) = unsafe {
        let context = &record.BufferContext.Anonymous;
        (context.ProcessorIndex, context.Anonymous.ProcessorNumber)
    };
    let is_short = has(EVENT_HEADER_FLAG_32_BIT_HEADER);
    Event {
        provider: Guid(id(header.ProviderId)),
        opcode: header.EventDescriptor.Opcode,
        version: header.EventDescriptor.Version,
        pointer_size: if is_short { PointerSize::Four } else { PointerSize::Eight },
        process: Some(header.ProcessId).filter(|pid| *pid != NONE),
        thread: Some(header.ThreadId).filter(|tid| *tid != NONE),
        time: u64::try_from(header.TimeStamp).unwrap_or_default(),
        cpu: if has(EVENT_HEADER_FLAG_PROCESSOR_INDEX) { index } else { number.into() },
        payload,
    }
}

/// An identifier as the number that its text spells.
fn id(id: windows_sys::core::GUID) -> u128 {
    let front = u128::from(id.data1) << 96 | u128::from(id.data2) << 80 | u128::from(id.data3) << 64;
    front | u128::from(u64::from_be_bytes(id.data4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_an_event() {
        let mut record = EVENT_RECORD::default();
        let number = 0x3d6f_a8d1_fe05_11d0_9dda_00c0_4fd7_ba7c;
        record.EventHeader.ProviderId = windows_sys::core::GUID::from_u128(number);
        record.EventHeader.EventDescriptor.Opcode = 36;
        record.EventHeader.ProcessId = NONE;
        record.EventHeader.ThreadId = 7;
        record.EventHeader.TimeStamp = 99;
        record.BufferContext.Anonymous.ProcessorIndex = 0x0105;
        let made = event(&record, b"abc");
        assert_eq!((made.provider, made.opcode, made.cpu), (Guid(number), 36, 5));
        assert_eq!((made.process, made.thread, made.time, made.payload), (None, Some(7), 99, &b"abc"[..]));
        record.EventHeader.Flags = EVENT_HEADER_FLAG_PROCESSOR_INDEX as u16;
        assert_eq!(event(&record, b"").cpu, 0x0105);
    }

    #[test]
    fn a_session_that_does_not_run_is_refused() {
        let (sink, sunk) = EventSink::new();
        assert!(Consumer::open("nyquist-0", sink).is_err());
        assert!(sunk.buffers.recv().is_err(), "the sink is freed");
    }
}
