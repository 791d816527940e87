//! Memory files (`memfd_create`) that processes have mapped. They can hold programs and libraries, and the
//! code that compilers make.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub(crate) use linux::{open_mapped, open_named};

/// Whether a mapping's path is the name of a memory file.
pub(crate) fn is_name(path: &str) -> bool {
    path.starts_with("/memfd:")
}

/// Opens a memory file of a process by its name: there are none here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn open_named(_: crate::event::Pid, _: &str, _: usize) -> Option<std::fs::File> {
    None
}

/// Opens the memory file of a mapping: there are none of processes here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn open_mapped(_: &crate::event::Mapping, _: crate::event::Pid) -> Option<std::fs::File> {
    None
}
