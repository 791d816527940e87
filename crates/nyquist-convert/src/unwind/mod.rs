//! The unwind stage: a sample's registers and the copy of its stack become the addresses of its frames.

pub(crate) mod active_completion;
pub(crate) mod ahead;
pub(crate) mod copy_walker;
mod deep_stacks;
pub(crate) mod registers;
mod stack_completion;
pub(crate) mod stack_walker;
pub(crate) mod truncation;
mod uncalled_frames;
pub(crate) mod walk;
