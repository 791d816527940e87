//! Which commands the operating system allows.

/// Whether there are more commands here than those that record and read profiles.
pub(crate) const MEASURES: bool = cfg!(target_os = "linux");

/// Whether this machine or this program can be made ready for recording.
pub(crate) const HAS_SETUP: bool = cfg!(any(target_os = "linux", target_os = "macos"));
