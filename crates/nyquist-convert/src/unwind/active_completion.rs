//! The mechanism that completes stacks beyond the ends of their copies. `()` is one that completes nothing.

/// The mechanism in use.
pub(crate) type ActiveCompletion = super::deep_stacks::completer::StackCompleter;

/// Its feedback for the recorder.
pub use super::deep_stacks::stack_copy_feedback::StackCopyFeedback;
