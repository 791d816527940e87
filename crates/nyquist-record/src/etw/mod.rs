//! Recording by the kernel's events of Windows (Event Tracing for Windows, ETW). This module has the parts that
//! do not call the system, so that they are tested on every system. They are the options of a session, the
//! delivery and the filter of its events, and the end of the recording.

mod buffers;
mod denied;
mod event_filter;
mod record_format;
mod recorder;
mod session;
mod sink;
mod stale;
#[cfg(test)]
mod tests;
mod volume;

#[cfg(windows)]
pub(crate) use buffers::{BUFFER_KB, counts as buffer_counts};
pub use denied::EtwDenied;
#[cfg(windows)]
pub(crate) use recorder::{EtwPlan, EventDecoder, SessionResult, StartedSession};
#[cfg(windows)]
pub(crate) use session::{
    EtwSystem, EventDelivery, SessionLosses, SessionSettings, StackWalk, TraceSession, interval_within,
    rate_of,
};
#[cfg(windows)]
pub(crate) use sink::EventSink;
#[cfg(windows)]
pub(crate) use stale::{name_of, stale};
#[cfg(windows)]
pub(crate) use volume::volume;
