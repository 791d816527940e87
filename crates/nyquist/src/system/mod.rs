//! The operating system, as the command needs it. Only this module knows for which system the program is
//! built: each system's folder has the items that are used here, by the same names.

#[cfg(target_os = "linux")]
pub(crate) mod linux;
#[cfg(windows)]
pub(crate) mod windows;

#[cfg(target_os = "linux")]
use linux as current;
#[cfg(windows)]
use windows as current;

pub(crate) use current::{
    files, folders, lossy_path, process_memory, processes, programs, recording, signals, users,
};
