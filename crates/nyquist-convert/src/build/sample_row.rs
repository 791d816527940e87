//! A sample and its row, before its stack is interned.

use super::sample_frame::SampleFrame;
use crate::event::Timestamp;
use crate::jit::dumps::DumpIndex;
use nyquist_profile::{Sample, ThreadIndex};

/// A sample without its stack, and its row.
#[derive(Debug)]
pub(crate) struct SampleRow {
    pub(crate) thread: ThreadIndex,
    /// The CPU that has a track of its own, and the sample's name there.
    pub(crate) on_cpu: Option<(u32, String)>,
    pub(crate) sample: Sample,
    /// The reason why the thread did not run, as the innermost function of its stack.
    pub(crate) waits_for: Option<String>,
}

/// A sample in code whose jitdump has not yet been written up to its time.
#[derive(Debug)]
pub(crate) struct WaitingSample {
    pub(crate) time: Timestamp,
    pub(crate) row: SampleRow,
    pub(crate) places: Vec<SampleFrame>,
    pub(crate) dumps: Vec<DumpIndex>,
}
