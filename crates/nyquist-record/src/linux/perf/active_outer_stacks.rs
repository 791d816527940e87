//! The mechanism that finds the parts of stacks which their copies lack. `()` is one that finds nothing.

use super::outer_stacks::OuterStacks;

/// The mechanism in use.
pub(super) type ActiveOuterStacks = super::deep_stacks::DeepStacks;

/// Its part in the thread that drains the rings.
pub(super) type Observer = <ActiveOuterStacks as OuterStacks>::Observer;

/// Its program in the kernel.
pub(super) type Program = <ActiveOuterStacks as OuterStacks>::Program;
