//! The call chains of a profile's stacks in perf's form.

use nyquist_perf::abi::{context, misc};
use nyquist_profile::{ProcessIndex, Profile, StackId};
use rustc_hash::FxHashSet;

use super::code::{Code, FramePlace, ImageIndex};

/// Makes call chains.
pub(super) struct Chains<'a> {
    profile: &'a Profile,
    code: &'a Code,
    /// The words of the latest chain. Kept to reuse its memory.
    words: Vec<u64>,
}

/// One call chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chain<'a> {
    /// The CPU mode of the record: kernel or user.
    pub(super) mode: u16,
    /// Its instruction pointer.
    pub(super) ip: u64,
    /// The chain, innermost first, with its context words.
    pub(super) words: &'a [u64],
}

impl<'a> Chains<'a> {
    pub(super) fn new(profile: &'a Profile, code: &'a Code) -> Self {
        Self { profile, code, words: Vec::new() }
    }

    /// The call chain of a stack. It is empty without a stack.
    pub(super) fn chain(&mut self, stack: Option<StackId>) -> Chain<'_> {
        self.words.clear();
        let mut mode = None;
        let (mut ip, mut innermost_mode) = (0, misc::USER);
        let places = frames(self.profile, self.code, stack);
        for place in places {
            let is_innermost = self.words.is_empty();
            let in_mode = if place.image.is_none() { misc::KERNEL } else { misc::USER };
            if mode.replace(in_mode) != Some(in_mode) {
                let context = if in_mode == misc::KERNEL { context::KERNEL } else { context::USER };
                self.words.push(context);
            }
            if is_innermost {
                (ip, innermost_mode) = (place.address.0, in_mode);
                self.words.push(ip);
            } else {
                // Readers look up a caller one byte before its return address.
                self.words.push(place.address.0.wrapping_add(1));
            }
        }
        Chain { mode: innermost_mode, ip, words: &self.words }
    }

    /// The images in which any sample of a process has frames, in order.
    pub(super) fn images_of(&self, process: ProcessIndex) -> Vec<ImageIndex> {
        let (mut seen, mut images) = (FxHashSet::default(), FxHashSet::default());
        let threads = self.profile.threads().iter().filter(|thread| thread.process == process);
        for stack in threads.flat_map(|thread| &thread.samples).filter_map(|sample| sample.stack) {
            for stack in self.profile.ancestors(stack).take_while(|stack| seen.insert(*stack)) {
                let place = self.code.frame(self.profile.stack(stack).frame.index());
                images.extend(place.and_then(|place| place.image));
            }
        }
        let mut images: Vec<_> = images.into_iter().collect();
        images.sort_unstable();
        images
    }
}

/// The places of the frames of a stack, innermost first. If the reader of an address finds the inlined
/// functions itself, only the outermost function is written.
fn frames<'a>(
    profile: &'a Profile,
    code: &'a Code,
    stack: Option<StackId>,
) -> impl Iterator<Item = FramePlace> + 'a {
    let stacks = stack.into_iter().flat_map(|stack| profile.ancestors(stack));
    stacks.filter_map(|stack| {
        let stack = profile.stack(stack);
        let place = code.frame(stack.frame.index())?;
        let caller = stack.prefix.map(|prefix| profile.stack(prefix).frame);
        let caller_place = caller.and_then(|caller| code.frame(caller.index()));
        let is_inlined = place.has_inlines
            && profile.frame(stack.frame).inline_depth > 0
            && caller_place.is_some_and(|caller| caller.address == place.address);
        (!is_inlined).then_some(place)
    })
}
