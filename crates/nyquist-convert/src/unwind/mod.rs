//! The unwind stage: a sample's registers and the copy of its stack become the addresses of its frames.

pub(crate) mod ahead;
pub(crate) mod copy_walker;
pub(crate) mod deep_stacks;
mod entered;
pub(crate) mod prefetcher;
pub(crate) mod registers;
pub(crate) mod stack_walker;
pub(crate) mod truncation;
pub(crate) mod walk;
