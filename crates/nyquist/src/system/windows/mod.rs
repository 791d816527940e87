//! Windows: recording programs by suspending their threads, and what the other commands need of the system.

pub(crate) mod files;
pub(crate) mod folders;
pub(crate) mod lossy_path;
pub(crate) mod machine;
mod options;
pub(crate) mod process_memory;
pub(crate) mod processes;
pub(crate) mod programs;
mod record;
pub(crate) mod recording;
pub(crate) mod signals;
mod sys;
pub(crate) mod users;
