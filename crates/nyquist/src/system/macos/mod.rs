//! macOS: what the command needs of the system.

pub(crate) mod folders;
pub(crate) mod machine;
pub(crate) mod programs;
pub(crate) mod signals;
mod sys;

pub(crate) use super::suspending::{launch, process_memory, processes, targets, users};
pub(crate) use machine::memory as physical_memory;

/// The system's name.
pub(crate) const NAME: &str = "macOS";
