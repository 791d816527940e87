//! The interface to the mechanism that finds the parts of stacks which their copies lack.
//!
//! `active_outer_stacks.rs` says which mechanism it is, and `docs/design/deep-stacks.md` how to delete it. With
//! `()` in its place, samples have what the kernel has copied.

use std::fmt::Debug;
use std::io;
use std::os::fd::OwnedFd;

use nyquist_convert::StackCopyFeedback;
use nyquist_convert::event::{Event, Timestamp};
use nyquist_perf::{RecordFormat, SampleLayout, StackPlace};

use super::ring_source::RingSource;

/// How much is read of living processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemoryReading {
    /// Nothing.
    None,
    /// What makes stacks complete.
    Full,
    /// What takes a share of the CPUs that is in proportion to the samples.
    Sparing {
        /// The most samples a second, of all CPUs.
        samples: u32,
    },
}

/// Finds the parts of stacks that their copies lack. It does not slow down the thread that drains the rings.
pub(super) trait OuterStacks: Debug + Sized {
    /// A program in the kernel that copies these parts.
    type Program: Debug;

    /// The part in the thread that drains the rings.
    type Observer: StackCopyObserver;

    /// Attaches the program to events whose samples have stack copies of this size, if the machine allows it.
    fn attach(events: &[&OwnedFd], stack_bytes: u32) -> Option<Self::Program>;

    /// Starts for the samples in these rings.
    fn start(
        samples: (&[RingSource], &RecordFormat),
        program: Option<Self::Program>,
        reading: MemoryReading,
    ) -> io::Result<(Self, Self::Observer)>;

    /// What was read since the last call, as events for samples from that time on. Older ones are dropped.
    fn take_since(&self, time: Timestamp) -> Vec<Event>;

    /// Uses the converter's feedback on stack copies.
    fn apply_feedback(&self, feedback: &StackCopyFeedback);

    /// Waits until it ends, which it does when the observer is gone.
    fn join(self);
}

/// Observes stack copies in the thread that drains the rings. It never waits.
pub(super) trait StackCopyObserver: Debug + Send + 'static {
    /// The needed part of a copy. `read` copies bytes of the sample from an offset on.
    fn used_part(
        &self,
        read: &impl Fn(usize, &mut [u8]),
        stack: &StackPlace,
        layout: &SampleLayout,
    ) -> UsedPart;

    /// Reports a sample, as it was copied out of a ring, whose stack may continue beyond its copy.
    fn report(&self, sample: &[u8], layout: &SampleLayout);
}

/// The needed part of a stack copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UsedPart {
    /// Its length in bytes.
    pub(super) len: usize,
    /// Whether the stack may continue beyond it.
    pub(super) may_go_on: bool,
}

impl OuterStacks for () {
    type Program = ();
    type Observer = ();

    fn attach(_: &[&OwnedFd], _: u32) -> Option<()> {
        None
    }

    fn start(_: (&[RingSource], &RecordFormat), _: Option<()>, _: MemoryReading) -> io::Result<((), ())> {
        Ok(((), ()))
    }

    fn take_since(&self, _: Timestamp) -> Vec<Event> {
        Vec::new()
    }

    fn apply_feedback(&self, _: &StackCopyFeedback) {}

    fn join(self) {}
}

impl StackCopyObserver for () {
    fn used_part(&self, _: &impl Fn(usize, &mut [u8]), stack: &StackPlace, _: &SampleLayout) -> UsedPart {
        UsedPart { len: stack.len, may_go_on: false }
    }

    fn report(&self, _: &[u8], _: &SampleLayout) {}
}
