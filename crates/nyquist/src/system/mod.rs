//! The operating system, as the command needs it. Only this module knows for which system the program is
//! built: each system's folder has the items that are used here, by the same names.

pub(crate) mod abilities;
#[cfg(unix)]
mod asking;
pub(crate) mod drive;
#[cfg(target_os = "linux")]
pub(crate) mod linux;
#[cfg(target_os = "macos")]
pub(crate) mod macos;
// Tested on every Unix.
#[cfg(any(target_os = "macos", all(test, unix)))]
mod replaced_program;
#[cfg(any(target_os = "macos", windows))]
mod suspending;
#[cfg(windows)]
pub(crate) mod windows;

#[cfg(target_os = "linux")]
use linux as current;
#[cfg(target_os = "macos")]
use macos as current;
#[cfg(windows)]
use windows as current;

#[cfg(target_os = "linux")]
pub(crate) use linux::delegates;
/// Other systems open files by paths that all processes share.
#[cfg(not(target_os = "linux"))]
pub(crate) mod delegates {
    use std::process::ExitCode;

    pub(crate) fn set_up() {}

    pub(crate) fn sentences() -> Vec<String> {
        Vec::new()
    }

    pub(crate) fn give_up_rights() {}

    pub(crate) fn end() {}

    pub(crate) fn work() -> Option<ExitCode> {
        None
    }
}

/// The library's module for this system.
#[cfg(target_os = "linux")]
use nyquist_record::linux as recorder;
#[cfg(target_os = "macos")]
use nyquist_record::macos as recorder;
#[cfg(windows)]
use nyquist_record::windows as recorder;

pub(crate) use current::{
    files, folders, launch, machine, process_memory, processes, programs, recording, signals, spool, users,
};
