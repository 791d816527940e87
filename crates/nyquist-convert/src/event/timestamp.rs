//! The time of an event.

/// A point in time: nanoseconds of `CLOCK_MONOTONIC` (or the platform's clock of the same meaning).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);
