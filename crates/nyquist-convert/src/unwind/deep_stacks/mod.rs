//! Deep stacks, whose copies are too short. They are completed from the running program's memory.

pub(crate) mod completer;
mod copy_then_live;
pub(crate) mod incomplete;
pub(crate) mod live_stacks;
pub(crate) mod live_walker;
pub(crate) mod stack_bases;
pub(crate) mod stack_copy_feedback;
#[cfg(test)]
mod tests;
