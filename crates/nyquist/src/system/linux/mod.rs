//! Linux: the commands that record and measure, and what the others need of the system.

mod agent;
mod arm_cores;
pub(crate) mod delegates;
mod doctor;
mod event_failure;
pub(crate) mod files;
pub(crate) mod folders;
pub(crate) mod launch;
mod launch_advice;
mod list;
pub(crate) mod machine;
mod markers;
mod options;
mod outcome_messages;
mod perf_tee;
pub(crate) mod process_memory;
pub(crate) mod processes;
pub(crate) mod programs;
mod record;
pub(crate) mod recording;
mod setup;
pub(crate) mod signals;
mod stat;
mod sys;
mod top;
pub(crate) mod users;
