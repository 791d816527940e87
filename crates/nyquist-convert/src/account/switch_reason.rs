//! Why a thread left its CPU.

/// Why a thread left its CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SwitchReason {
    /// It waits for something.
    Blocked,
    /// Another one was to run.
    Preempted,
    /// It has ended.
    Ended,
    /// It did not; the recording has ended.
    RecordingEnded,
}

impl SwitchReason {
    /// As markers say it.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Preempted => "preempted",
            Self::Ended => "ended",
            Self::RecordingEnded => "recording ended",
        }
    }
}
