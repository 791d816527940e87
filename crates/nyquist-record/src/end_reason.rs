//! Why a recording ended, for every backend.

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The command, or every process that was attached to, ended.
    Exited,
    /// It was stopped.
    Stopped,
    /// The requested time was over.
    Duration,
}
