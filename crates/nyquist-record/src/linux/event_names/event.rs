//! An event to count, as the user requested it.

use perf_event_open_sys::bindings::PERF_TYPE_TRACEPOINT;

use super::modifiers::Modifiers;
use super::selector::Selector;

/// An event to count, as the user requested it.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestedEvent {
    /// Its name: as typed, or from the term `name`.
    pub name: String,
    /// The kernel's events to count. If there are several, the event's count is their sum.
    pub selectors: Vec<Selector>,
    /// The modifiers, which restrict what is counted.
    pub modifiers: Modifiers,
    /// How often it is sampled, if the text contains that.
    pub interval: Option<SampleInterval>,
    /// The factor that converts a count to `unit`.
    pub scale: f64,
    /// The unit of the count, if it is not a number of occurrences: `Joules`.
    pub unit: Option<String>,
}

impl RequestedEvent {
    /// Whether it is a tracepoint of the kernel.
    pub fn is_tracepoint(&self) -> bool {
        self.selectors.iter().any(|selector| selector.kind == PERF_TYPE_TRACEPOINT)
    }

    /// Whether it is a place in a program (an uprobe, or a USDT probe).
    pub fn is_probe(&self) -> bool {
        self.selectors.iter().any(|selector| selector.probe.is_some())
    }
}

/// When an event is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleInterval {
    /// Once in this many occurrences.
    Period(u64),
    /// This many times a second.
    Frequency(u64),
}
