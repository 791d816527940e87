//! The only `unsafe` code of this crate, and what differs by system.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(feature = "tracing")]
mod spin_lock;

#[cfg(not(target_os = "linux"))]
pub(crate) use crate::no_recorder::sys::{now, thread_id};
#[cfg(target_os = "linux")]
pub(crate) use linux::{Shared, after_fork, free, memory_file, now, thread_id};
#[cfg(feature = "tracing")]
pub(crate) use spin_lock::SpinLock;
