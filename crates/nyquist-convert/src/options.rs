//! The converter's options: properties of the recording.

use crate::event::Timestamp;
use nyquist_profile::Meta;

/// The converter's options: properties of the recording.
#[derive(Clone, Debug)]
pub struct Options {
    /// The profile's zero, from which times count.
    pub start: Timestamp,
    /// Whether the source may sample the kernel. If not, CPU time without samples is shown separately.
    pub kernel_permitted: bool,
    /// Properties of the recording and the machine. The interval is the time that a sample of weight 1 stands
    /// for.
    pub meta: Meta,
}

impl Options {
    /// The time that a sample of weight 1 stands for, in nanoseconds.
    pub(crate) fn interval(&self) -> u64 {
        self.meta.interval.max(1)
    }
}
