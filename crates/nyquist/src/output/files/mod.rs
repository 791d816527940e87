//! Output files as each system has them: what a path names, and files that appear under their names at the end.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
use linux as current;
#[cfg(not(target_os = "linux"))]
use other as current;

#[cfg(test)]
pub(crate) use current::NULL_DEVICE;
pub(crate) use current::{
    FolderEntry, OutputTarget, PendingFile, create_folders, find, other_folders, redirect_stdout_to_stderr,
};
