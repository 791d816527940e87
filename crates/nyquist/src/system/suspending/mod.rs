//! The common parts of the systems on which programs are recorded by suspending their threads.

pub(crate) mod files;
pub(crate) mod launch;
pub(crate) mod options;
pub(crate) mod process_memory;
pub(crate) mod processes;
pub(crate) mod record;
pub(crate) mod recording;
mod save_signal;
pub(crate) mod spool;
mod sys;
pub(crate) mod users;
