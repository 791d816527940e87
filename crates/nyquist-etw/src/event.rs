//! An event, as files and live sessions give it.

use crate::Guid;

/// An event. A file's reader makes it from one of the headers that files have, and a live session from an
/// `EVENT_RECORD` (evntcons.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The provider, or the class of a classic event such as the kernel's: `EVENT_HEADER::ProviderId`.
    pub provider: Guid,
    /// The type of a classic event: `EVENT_DESCRIPTOR::Opcode`.
    pub opcode: u8,
    /// The version of its payload's layout: `EVENT_DESCRIPTOR::Version`.
    pub version: u8,
    /// The size of pointers in the payload: `EVENT_HEADER_FLAG_32_BIT_HEADER` and `_64_BIT_HEADER`.
    pub pointer_size: PointerSize,
    /// The process that it happened in, if its header says so. Many of the kernel's events have no process, or
    /// the one that happened to run. A process number of all ones is none.
    pub process: Option<u32>,
    /// The thread that it happened on, if its header says so.
    pub thread: Option<u32>,
    /// When, in units of the trace's [`Clock`](crate::Clock).
    pub time: u64,
    /// The CPU that it happened on, counted from 0 through all groups.
    pub cpu: u16,
    /// What it says: `EVENT_RECORD::UserData`.
    pub payload: &'a [u8],
}

/// The size of pointers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PointerSize {
    /// 4 bytes.
    Four,
    /// 8 bytes.
    #[default]
    Eight,
}

impl PointerSize {
    /// In bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}
