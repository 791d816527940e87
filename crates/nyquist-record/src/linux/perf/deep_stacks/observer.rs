//! The part of the mechanism in the thread that drains the rings.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use nyquist_perf::{SampleLayout, StackPlace};

use super::stack_bases::StackBases;
use super::truncated_stack::TruncatedStack;
use super::used_part::used_part;
use crate::linux::perf::outer_stacks::{StackCopyObserver, UsedPart};

/// Shortens copies to their stacks, and reports truncated ones.
#[derive(Debug, Default)]
pub(crate) struct StackObserver {
    pub(super) bases: Arc<StackBases>,
    /// The receiver of truncated copies, if there is one.
    pub(super) reports: Option<SyncSender<TruncatedStack>>,
    /// Whether the kernel copies what lies beyond copies that fill their room.
    pub(super) by_kernel: bool,
}

impl StackCopyObserver for StackObserver {
    #[inline]
    fn used_part(
        &self,
        read: &impl Fn(usize, &mut [u8]),
        stack: &StackPlace,
        layout: &SampleLayout,
    ) -> UsedPart {
        used_part(read, stack, layout, (&self.bases, self.by_kernel))
    }

    fn report(&self, sample: &[u8], layout: &SampleLayout) {
        if let Some(reports) = &self.reports
            && let Some(truncated) = TruncatedStack::in_sample(sample, layout)
        {
            // If the queue is full, the report is dropped.
            let _ = reports.try_send(truncated);
        }
    }
}
