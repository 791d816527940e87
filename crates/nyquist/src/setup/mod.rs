//! `nyquist setup`: makes this machine, or this program, ready for recording.

#[cfg(unix)]
mod asking;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
// Tested on every Unix.
#[cfg(any(target_os = "macos", all(test, unix)))]
mod replaced_program;

#[cfg(target_os = "linux")]
pub(crate) use linux::run;
#[cfg(target_os = "macos")]
pub(crate) use macos::run;

/// Runs the subcommand, which this system does not have.
#[cfg(not(unix))]
pub(crate) fn run(_args: crate::args::SetupArgs) -> Result<u8, crate::failure::Failure> {
    Err(crate::commands::only_on_linux("setup"))
}
