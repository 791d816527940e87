//! macOS: what the command needs of the system, with recording by suspending threads.

pub(crate) mod folders;
pub(crate) mod machine;
pub(crate) mod programs;
pub(crate) mod recording;
pub(crate) mod sampling;
mod setup;
pub(crate) mod signals;
pub(crate) mod special_files;
mod sys;

pub(crate) use super::suspending::{files, launch, process_memory, processes, spool, users};
pub(crate) use machine::memory as physical_memory;

/// The system's name.
pub(crate) const NAME: &str = "macOS";
