//! What every user may know of a process.

/// What the system provides about a process without rights to its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessStatus {
    /// When it was started, in microseconds since 1970. It stays the same when the process executes another
    /// program.
    pub(crate) began: u64,
    /// The process that has started it, or `launchd` (1) if that one has ended.
    pub(crate) parent: u32,
    /// Whether it has ended, and only its status is kept for its parent.
    pub(crate) has_ended: bool,
    pub(crate) has_64_bits: bool,
    /// Whether its code is of another architecture and translated (Rosetta).
    pub(crate) is_translated: bool,
}
