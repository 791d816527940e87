//! The common parts of the systems on which programs are recorded by suspending their threads.

pub(crate) mod launch;
pub(crate) mod process_memory;
pub(crate) mod processes;
mod sys;
pub(crate) mod targets;
pub(crate) mod users;
