//! Linux: launching the command, and the backends that sample it.

pub mod allocations;
mod arch;
pub mod backend;
mod background_reader;
mod cgroup;
mod command;
mod command_group;
mod companion;
pub mod counters;
pub mod counting;
pub mod cpu_quota;
mod cpus;
mod credentials;
pub mod event_names;
mod identity;
mod initial_state;
mod kernel;
pub mod launch;
mod limits;
pub mod machine;
pub mod markers;
mod namespaces;
mod options;
mod pause;
pub mod perf;
mod pmu;
mod privileges;
mod proc;
pub mod process;
pub mod ptrace;
mod recorded_event;
mod ring_limits;
mod signal_stacks;
pub mod signals;
mod stop;
mod sudo;
mod sys;
pub mod target_access;
mod thread_events;
mod thread_state;
mod wait_reason;
pub mod wait_stacks;
mod writable_memory;

pub use cgroup::mount_of_events;
pub use companion::Companion;
pub use credentials::Credentials;
pub use identity::{as_user, become_user, file_user, give_up_capabilities, has_rights_of};
pub use options::{CallGraph, Options, RecordingTarget};
pub use pause::PauseHandle;
pub use privileges::are_kept_under_ptrace as may_read_other_processes;
pub use proc::{
    has_ended as process_has_ended, named as processes_named, process_of_thread, process_with_thread,
    state as process_state,
};
pub use recorded_event::RecordedEvent;
pub use stop::{EndReason, StopHandle};
pub use sudo::{invoking_environment, invoking_user};
pub use sys::process::Preference;

pub use crate::command::Command;

/// The current time, on the clock of all events.
pub fn now() -> nyquist_convert::event::Timestamp {
    nyquist_convert::event::Timestamp(sys::clock::monotonic_ns())
}
