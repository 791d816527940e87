//! Counters of the conversion of events to a profile.

/// The counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Samples that were converted.
    pub samples: u64,
    /// Records that the source dropped.
    pub lost: u64,
    /// How often the kernel paused sampling.
    pub throttled: u64,
    /// Samples whose stack does not reach its root.
    pub truncated: u64,
    /// Samples whose stack reaches its root only because its outer part was read from the running program's
    /// memory.
    pub completed: u64,
    /// Samples whose stack was truncated and could not be completed, by the reason, the most frequent
    /// reason first.
    pub incomplete: Vec<(&'static str, u64)>,
    /// Samples whose stack was walked ahead of their turn and again at their turn, because by then other or
    /// more code was known to be mapped.
    pub walked_again: u64,
    /// Markers that the programs have set.
    pub markers: u64,
    /// Events that came too late to be put in order.
    pub late: u64,
}
