//! The known processes and threads, and the state of each.

pub(crate) mod arguments;
pub(crate) mod code;
pub(crate) mod code_finder;
pub(crate) mod jit_state;
pub(crate) mod memory;
pub(crate) mod process;
pub(crate) mod program_arguments;
pub(crate) mod program_words;
pub(crate) mod remainder;
pub(crate) mod state;
pub(crate) mod thread;
pub(crate) mod thread_time;
pub(crate) mod tracker;
pub(crate) mod unseen_waits;
