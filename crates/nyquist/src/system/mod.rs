//! The calls of the operating system, as the command needs them: each system's folder has the items that are used
//! here, by the same names. Nothing here needs the rest of the command, but the message of a failure.

pub(crate) mod abilities;
#[cfg(any(windows, test))]
pub(crate) mod elevation;
#[cfg(target_os = "linux")]
pub(crate) mod linux;
#[cfg(target_os = "macos")]
pub(crate) mod macos;
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

/// Ends the program with a status.
#[cfg(unix)]
pub(crate) fn exit_code(status: u32) -> std::process::ExitCode {
    u8::try_from(status).unwrap_or(u8::MAX).into()
}

/// Ends the program with a status. It can be any number of 32 bits, which `ExitCode` cannot.
#[cfg(windows)]
pub(crate) fn exit_code(status: u32) -> std::process::ExitCode {
    match u8::try_from(status) {
        Ok(status) => status.into(),
        Err(_) => std::process::exit(status.cast_signed()),
    }
}

/// The library's module for this system.
#[cfg(target_os = "linux")]
pub(crate) use nyquist_record::linux as recorder;
#[cfg(target_os = "macos")]
pub(crate) use nyquist_record::macos as recorder;
#[cfg(windows)]
pub(crate) use nyquist_record::windows as recorder;

#[cfg(not(target_os = "linux"))]
pub(crate) use current::NAME;
pub(crate) use current::{
    folders, launch, machine, process_memory, processes, programs, signals, targets, users,
};
