//! The spool of a recording, where the system has one: what was recorded so far, on disk.

#[cfg(not(target_os = "linux"))]
mod absent;
#[cfg(target_os = "linux")]
mod on_disk;
#[cfg(target_os = "linux")]
mod writer;

#[cfg(not(target_os = "linux"))]
use absent as current;
#[cfg(target_os = "linux")]
use on_disk as current;

pub(crate) use current::Spool;
#[cfg(target_os = "linux")]
pub(crate) use on_disk::folder;
