//! What a system must provide to be recorded by its kernel's events.

use std::ops::RangeInclusive;

use super::denied::EtwDenied;
use super::sink::EventSink;

/// Nanoseconds in a second.
const NS_PER_SECOND: u64 = 1_000_000_000;

/// What a session records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionSettings {
    /// The time between two samples of a CPU, in nanoseconds.
    pub(crate) interval_ns: u64,
    /// Whether context switches are recorded with their stacks, and threads that become ready.
    pub(crate) waits: bool,
}

impl SessionSettings {
    /// The kinds of events whose stacks the kernel walks.
    pub(crate) fn stack_walks(self) -> Vec<StackWalk> {
        let switches = self.waits.then_some(StackWalk::ContextSwitch);
        [StackWalk::Sample].into_iter().chain(switches).collect()
    }
}

/// A kind of event with a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StackWalk {
    /// A sample of a CPU.
    Sample,
    /// A thread left a CPU, and another one came to it.
    ContextSwitch,
}

/// What a session has lost since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionLosses {
    /// The events for which the kernel had no room.
    pub(crate) events: u64,
    /// The buffers that did not reach the recorder.
    pub(crate) buffers: u64,
}

/// A session of the kernel's events. When it is dropped, it stops.
pub(crate) trait TraceSession: Send + 'static {
    /// The events of the running session.
    type Delivery: EventDelivery;

    /// Stops the sessions that ended recorders have left behind, and starts this one.
    fn start(&mut self, settings: &SessionSettings) -> Result<(), EtwDenied>;
    /// Opens the events, which are to be copied to the sink.
    fn events(&mut self, sink: EventSink) -> Result<Self::Delivery, EtwDenied>;
    /// Lets the kernel sample and walk stacks. Returns the time between two samples in nanoseconds, which may
    /// be longer than requested.
    fn sample(&mut self, settings: &SessionSettings) -> Result<u64, EtwDenied>;
    /// What was lost so far.
    fn lost(&mut self) -> SessionLosses;
    /// Stops the session if it runs. What it has recorded until now is still delivered. Returns what was lost
    /// in all.
    fn stop(&mut self) -> SessionLosses;
}

/// The events of a session.
pub(crate) trait EventDelivery: Send + 'static {
    /// Copies all events to the sink, until the session has stopped and everything is delivered.
    fn run(self) -> Result<(), EtwDenied>;
}

/// The machine on which is recorded.
pub(crate) trait EtwSystem: Send + 'static {
    /// The current time in nanoseconds, on the clock of all events.
    fn now(&self) -> u64;
    /// Whether the end of the recording was requested.
    fn is_stopped(&self) -> bool;
    /// The named processes and their descendants, of those that run now.
    fn family(&mut self) -> Vec<u32>;
    /// Whether all named processes have ended. No processes never end.
    fn have_named_ended(&mut self) -> bool;
    /// Whether a process lives.
    fn lives(&mut self, pid: u32) -> bool;
}

/// The time between two samples that is nearest to the requested one, in nanoseconds, of those that are
/// allowed.
pub(crate) fn interval_within(requested_ns: u64, allowed_ns: &RangeInclusive<u64>) -> u64 {
    // A range without an element is none that was understood.
    if allowed_ns.is_empty() {
        requested_ns
    } else {
        requested_ns.clamp(*allowed_ns.start(), *allowed_ns.end())
    }
}

/// Samples a second at an interval between them in nanoseconds: the nearest whole number.
pub(crate) fn rate_of(interval_ns: u64) -> u32 {
    let interval_ns = interval_ns.max(1);
    u32::try_from((NS_PER_SECOND + interval_ns / 2) / interval_ns).unwrap_or(u32::MAX)
}
