//! Why a thread left its CPU.

/// Why a thread left its CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SwitchReason {
    /// It waits for something.
    Blocked,
    /// The scheduler chose another thread to run.
    Preempted,
    /// It has ended.
    Ended,
    /// It did not leave the CPU, but the recording has ended.
    RecordingEnded,
}

impl SwitchReason {
    /// The text of the reason in markers.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Preempted => "preempted",
            Self::Ended => "ended",
            Self::RecordingEnded => "recording ended",
        }
    }
}
