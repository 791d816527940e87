//! Events on their way to the converter, many at once, and the stacks of them that are still to be walked.

use nyquist_perf::file::{PIECE_BYTES, Place};
use nyquist_unwind::{AddressSpace, FrameAddress, Unwinder};

use crate::event::{Event, EventKind, Mapping, Timestamp, Unwound, UserStack};
use crate::track::CodeState;
use crate::walk::{KeptCopy, Walked, walk_copy};

/// How many steps are handed over at once: enough that waking the other thread costs next to nothing.
const MOST_STEPS: usize = 256;

/// How many bytes of copied stacks are handed over at once at most, which is as much as is read in one turn: a part of a processor's cache,
/// so that they are in it when they are walked.
const MOST_BYTES: usize = PIECE_BYTES;

/// What is handed over, in order.
#[derive(Debug)]
pub(super) enum Step {
    /// As [`Converter::push`](crate::Converter::push).
    Push(Event),
    /// As [`Converter::advance`](crate::Converter::advance).
    Advance(Timestamp),
    /// As [`Converter::prepare_mapping`](crate::Converter::prepare_mapping).
    Note(Mapping),
}

/// Steps, and what it takes to walk the stacks in them.
#[derive(Debug)]
pub(super) struct Batch {
    steps: Vec<Step>,
    /// The copied stacks in it.
    bytes: usize,
    /// What is mapped in the processes whose stacks are walked.
    spaces: Vec<(CodeState, AddressSpace)>,
    walks: Vec<Walk>,
}

/// A stack that is to be walked.
#[derive(Debug)]
struct Walk {
    /// The step that is its sample.
    step: usize,
    /// Its place in [`Batch::spaces`].
    space: usize,
    /// Whether there is no stack, because the process is becoming another program.
    between_programs: bool,
    /// Where the copy stands in a file.
    copy_at: Option<Place>,
}

impl Batch {
    /// A batch of nothing.
    pub(super) fn new() -> Self {
        Self { steps: Vec::with_capacity(MOST_STEPS), bytes: 0, spaces: Vec::new(), walks: Vec::new() }
    }

    /// Adds a step.
    pub(super) fn add(&mut self, step: Step) {
        if let Step::Push(Event { kind: EventKind::Sample(sample), .. }) = &step
            && let UserStack::Copied { stack, .. } = &sample.user
        {
            self.bytes += stack.len();
        }
        self.steps.push(step);
    }

    /// Adds a sample whose stack is to be walked, given what is mapped in its process, whether there is no stack because that is
    /// becoming another program, and where the copy stands in a file.
    pub(super) fn add_to_walk(
        &mut self,
        sample: Event,
        (code, space): (CodeState, &AddressSpace),
        between_programs: bool,
        copy_at: Option<Place>,
    ) {
        let known = self.spaces.iter().rposition(|(known, _)| *known == code);
        let space = known.unwrap_or_else(|| {
            self.spaces.push((code, space.clone()));
            self.spaces.len() - 1
        });
        self.walks.push(Walk { step: self.steps.len(), space, between_programs, copy_at });
        self.add(Step::Push(sample));
    }

    /// Whether it is time to hand it over.
    pub(super) fn is_full(&self) -> bool {
        self.steps.len() >= MOST_STEPS || self.bytes >= MOST_BYTES
    }

    /// Whether there is nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether there are stacks to walk.
    pub(super) fn has_walks(&self) -> bool {
        !self.walks.is_empty()
    }

    /// Walks the stacks. Gives back the steps, which hold no copies then that can be read again.
    pub(super) fn walked(mut self, unwinder: &mut Unwinder) -> Vec<Step> {
        let mut frames = Vec::new();
        for walk in &self.walks {
            if let (Some(Step::Push(Event { kind: EventKind::Sample(sample), .. })), Some(space)) =
                (self.steps.get_mut(walk.step), self.spaces.get(walk.space))
            {
                frames.clear();
                walk.replace(&mut sample.user, space, (unwinder, &mut frames));
            }
        }
        self.steps
    }
}

impl Walk {
    /// Replaces a copied stack by a walked one.
    fn replace(
        &self,
        user: &mut UserStack,
        (code, space): &(CodeState, AddressSpace),
        (unwinder, frames): (&mut Unwinder, &mut Vec<FrameAddress>),
    ) {
        let UserStack::Copied { registers, stack, limited } = std::mem::replace(user, UserStack::None) else {
            return;
        };
        let walked = if self.between_programs {
            Walked::BetweenPrograms
        } else {
            walk_copy(unwinder, space, &registers, &stack, frames)
        };
        *user = UserStack::Unwound(Box::new(Unwound {
            frames: frames.as_slice().into(),
            walked,
            code: *code,
            registers,
            copied: stack.len(),
            copy: self.copy_at.map_or(KeptCopy::Memory(stack), KeptCopy::File),
            limited,
        }));
    }
}
