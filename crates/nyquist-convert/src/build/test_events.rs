//! Events for tests of rows, markers and counters.

use crate::converter::Converter;
use crate::event::{Event, EventKind, Timestamp};
use crate::options::Options;
use nyquist_profile::Meta;

/// A millisecond, which is the interval.
pub(super) const MS: u64 = 1_000_000;

pub(super) fn converter() -> Converter {
    let meta = Meta { interval: MS, ..Meta::default() };
    Converter::new(Options::new(Timestamp(0), meta))
}

pub(super) fn at(time_ms: u64, kind: EventKind) -> Event {
    Event { time: Timestamp(time_ms * MS), cpu: None, kind }
}
