//! Batches of events for the converter, with the stacks that still have to be walked.

use nyquist_perf::file::{PIECE_BYTES, Place};
use nyquist_unwind::AddressSpace;

use crate::event::pre_unwound::{AddressSpaceHash, KeptCopy};
use crate::event::{Event, EventKind, Mapping, Sample, Timestamp, UserStack};
use crate::unwind::copy_walker::CopyWalker;

/// The most steps that are handed over at once. It is large enough to make the cost of waking the other
/// thread negligible.
const MAX_STEPS: usize = 256;

/// The most bytes of stack copies that are handed over at once. This is as much as one turn reads. It fits
/// into a part of a processor's cache, so that the copies are still cached when they are walked.
const MAX_BYTES: usize = PIECE_BYTES;

/// A step of the conversion, in order.
#[derive(Debug)]
pub(crate) enum Step {
    /// As [`Converter::push`](crate::Converter::push).
    Push(Event),
    /// As [`Converter::advance`](crate::Converter::advance).
    Advance(Timestamp),
    /// As `Converter::prepare_mapping`.
    Note(Mapping),
}

impl Step {
    /// The sample of the step, if it is one.
    fn sample(&mut self) -> Option<&mut Sample> {
        match self {
            Self::Push(Event { kind: EventKind::Sample(sample), .. }) => Some(sample),
            _ => None,
        }
    }
}

/// Steps, and the data for walking their stacks.
#[derive(Debug)]
pub(crate) struct Batch {
    steps: Vec<Step>,
    /// The size of the stack copies in it.
    bytes: usize,
    /// The address spaces of the processes whose stacks are walked.
    spaces: Vec<(AddressSpaceHash, AddressSpace)>,
    walks: Vec<Walk>,
}

/// A stack that is to be walked.
#[derive(Debug)]
struct Walk {
    /// The index of its sample's step.
    step: usize,
    /// The index of its address space in [`Batch::spaces`].
    space: usize,
    /// Where the copy is in a file.
    copy_at: Option<Place>,
}

impl Batch {
    /// An empty batch.
    pub(crate) fn new() -> Self {
        Self { steps: Vec::with_capacity(MAX_STEPS), bytes: 0, spaces: Vec::new(), walks: Vec::new() }
    }

    /// Adds a step.
    pub(crate) fn add(&mut self, mut step: Step) {
        self.bytes += step.sample().map_or(0, |sample| match &sample.user {
            UserStack::Copied { stack, .. } => stack.len(),
            UserStack::PreUnwound(unwound) => unwound.copied,
            _ => 0,
        });
        self.steps.push(step);
    }

    /// Adds a sample whose stack is to be walked, given its process's address space, and the copy's place in
    /// a file.
    pub(crate) fn add_to_walk(
        &mut self,
        sample: Event,
        (code, space): (AddressSpaceHash, &AddressSpace),
        copy_at: Option<Place>,
    ) {
        let known = self.spaces.iter().rposition(|(known, _)| *known == code);
        let space = known.unwrap_or_else(|| {
            self.spaces.push((code, space.clone()));
            self.spaces.len() - 1
        });
        self.walks.push(Walk { step: self.steps.len(), space, copy_at });
        self.add(Step::Push(sample));
    }

    /// Whether it is large enough to be handed over.
    pub(crate) fn is_full(&self) -> bool {
        self.steps.len() >= MAX_STEPS || self.bytes >= MAX_BYTES
    }

    /// Whether it has no steps.
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether it has stacks to walk.
    pub(crate) fn has_walks(&self) -> bool {
        !self.walks.is_empty()
    }

    /// Walks the stacks. Returns the steps, without the copies that can be read again.
    pub(crate) fn walked(mut self, walker: &mut CopyWalker) -> Vec<Step> {
        for walk in &self.walks {
            let sample = self.steps.get_mut(walk.step).and_then(Step::sample);
            if let Some((sample, (_, space))) = sample.zip(self.spaces.get(walk.space))
                && let UserStack::PreUnwound(unwound) = &mut sample.user
            {
                walker.walk(space, unwound);
                if let Some(place) = walk.copy_at {
                    unwound.copy = KeptCopy::File(place);
                }
            }
        }
        self.steps
    }
}
