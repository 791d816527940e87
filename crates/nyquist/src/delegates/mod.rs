//! The processes that open files and read memory of targets for this one, where the system has them.

#[cfg(not(target_os = "linux"))]
mod absent;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
pub(crate) use absent::{set_up, work};
#[cfg(target_os = "linux")]
pub(crate) use linux::{set_up, targets, work};

pub(crate) use crate::system::targets::{end, sentences};
