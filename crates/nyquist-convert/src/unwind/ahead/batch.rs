//! Events on their way to who converts them, many at once, and the stacks of them that are still to be walked.

use nyquist_perf::file::{PIECE_BYTES, Place};
use nyquist_unwind::AddressSpace;

use crate::event::pre_unwound::{AddressSpaceHash, KeptCopy};
use crate::event::{Event, EventKind, Sample, UserStack};
use crate::unwind::copy_walker::CopyWalker;

/// How many steps are handed over at once: enough that waking the other thread costs next to nothing.
const MOST_STEPS: usize = 256;

/// How many bytes of copied stacks are handed over at once at most, which is as much as is read in one turn: a part of a processor's cache,
/// so that they are in it when they are walked.
const MOST_BYTES: usize = PIECE_BYTES;

/// What a batch has one after the other: an event, or what else its taker has to do between them.
pub(crate) trait Step: From<Event> {
    /// The event that it is.
    fn event(&mut self) -> Option<&mut Event>;
}

impl Step for Event {
    fn event(&mut self) -> Option<&mut Event> {
        Some(self)
    }
}

/// How far ahead of its walk a stack is fetched.
const AHEAD: usize = 2;

/// Steps, and what it takes to walk the stacks in them.
#[derive(Debug)]
pub(crate) struct Batch<S> {
    steps: Vec<S>,
    /// The copied stacks in it.
    bytes: usize,
    /// What is mapped in the processes whose stacks are walked.
    spaces: Vec<(AddressSpaceHash, AddressSpace)>,
    walks: Vec<Walk>,
}

/// A stack that is to be walked.
#[derive(Debug)]
struct Walk {
    /// The step that is its sample.
    step: usize,
    /// Its place in [`Batch::spaces`].
    space: usize,
    /// Where the copy stands in a file.
    copy_at: Option<Place>,
}

impl<S: Step> Batch<S> {
    /// A batch of nothing.
    pub(crate) fn new() -> Self {
        Self { steps: Vec::with_capacity(MOST_STEPS), bytes: 0, spaces: Vec::new(), walks: Vec::new() }
    }

    /// Adds a step.
    pub(crate) fn add(&mut self, mut step: S) {
        self.bytes += sample_of(&mut step).map_or(0, |sample| match &sample.user {
            UserStack::Copied { stack, .. } => stack.len(),
            UserStack::PreUnwound(unwound) => unwound.copied,
            _ => 0,
        });
        self.steps.push(step);
    }

    /// Adds a sample whose stack is to be walked, given what is mapped in its process, and where the copy stands in a file.
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
        self.add(sample.into());
    }

    /// Whether it is time to hand it over.
    pub(crate) fn is_full(&self) -> bool {
        self.steps.len() >= MOST_STEPS || self.bytes >= MOST_BYTES
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether there are stacks to walk.
    pub(crate) fn has_walks(&self) -> bool {
        !self.walks.is_empty()
    }

    /// Walks the stacks. Gives back the steps, which hold no copies then that can be read again.
    pub(crate) fn walked(mut self, walker: &mut CopyWalker) -> Vec<S> {
        for (at, walk) in self.walks.iter().enumerate() {
            let coming = self.walks.get(at + AHEAD).and_then(|walk| self.steps.get_mut(walk.step));
            if let Some(event) = coming.and_then(Step::event) {
                walker.fetch(&event.kind);
            }
            let sample = self.steps.get_mut(walk.step).and_then(sample_of);
            if let Some((sample, (_, space))) = sample.zip(self.spaces.get(walk.space))
                && let UserStack::PreUnwound(unwound) = &mut sample.user
            {
                walker.walk(sample.tid, space, unwound);
                if let Some(place) = walk.copy_at {
                    unwound.copy = KeptCopy::File(place);
                }
            }
        }
        self.steps
    }
}

/// The sample that a step is.
fn sample_of<S: Step>(step: &mut S) -> Option<&mut Sample> {
    match &mut step.event()?.kind {
        EventKind::Sample(sample) => Some(sample),
        _ => None,
    }
}
