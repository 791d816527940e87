//! What happened to a process, a thread, or an image.

/// What a process, a thread, or an image did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectChange {
    /// It began.
    Start,
    /// It ended.
    End,
    /// It was there when the trace began ("data collection start").
    ThereAtStart,
    /// It was there when the trace ended ("data collection end"). Traces that keep the newest events only, and
    /// some others, have these events alone.
    ThereAtEnd,
}

impl ObjectChange {
    /// By the opcode of the classes `Process`, `Thread` and, but for its start, `Image`.
    pub(super) fn of(opcode: u8) -> Option<Self> {
        match opcode {
            1 => Some(Self::Start),
            2 => Some(Self::End),
            3 => Some(Self::ThereAtStart),
            4 => Some(Self::ThereAtEnd),
            _ => None,
        }
    }
}
