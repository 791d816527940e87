//! Linux: what the command needs of the system.

mod arm_cores;
pub(crate) mod folders;
pub(crate) mod launch;
pub(crate) mod machine;
pub(crate) mod process_memory;
pub(crate) mod processes;
pub(crate) mod programs;
pub(crate) mod signals;
pub(crate) mod sys;
pub(crate) mod targets;
pub(crate) mod users;
