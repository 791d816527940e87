//! What differs between operating systems, for code that is the same on all of them: identities of files, how
//! they are opened safely, and names as bytes.
//!
//! `unix.rs` and `windows.rs` have the same items, and so have `linux_root.rs` and `other_root.rs`, and
//! `linux_anonymous_file.rs` and `other_anonymous_file.rs`. Recording, which has nothing in common between systems, is
//! in `nyquist-record`.

#![forbid(unsafe_code)]

mod held_file;
mod kernel_text;
#[cfg(target_os = "linux")]
mod linux_anonymous_file;
#[cfg(target_os = "linux")]
mod linux_root;
mod lossy_path;
#[cfg(not(target_os = "linux"))]
mod other_anonymous_file;
#[cfg(not(target_os = "linux"))]
mod other_root;
mod regular;
mod time;
#[cfg(unix)]
mod unix;
mod unused_name;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

pub use held_file::{FileFacts, HeldFile, RemoteFile};
pub use kernel_text::read_kernel_text;
#[cfg(target_os = "linux")]
pub use linux_anonymous_file::anonymous_file;
#[cfg(target_os = "linux")]
pub use linux_root::{OpenRoot, RemoteRoot};
pub use lossy_path::files_of_lossy_path;
#[cfg(not(target_os = "linux"))]
pub use other_anonymous_file::anonymous_file;
#[cfg(not(target_os = "linux"))]
pub use other_root::OpenRoot;
pub use regular::{is_regular, open_regular, open_regular_unlinked, real_path};
pub use system::{
    FileExt, OsStrExt, REPLACES_OPEN_FILES, allocated_bytes, changed, create_private_folder, file_id,
    has_data, ownership, path_id, path_of_open, private_options, replace_process, restrict,
};
pub use time::modified;
pub use unused_name::with_unused_name;

/// What identifies a file among all others of this machine, for as long as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The device, or the volume.
    pub device: u64,
    /// The file's number in there.
    pub number: u64,
}

/// The owner of a file, and what others may do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// The user's number; 0 on systems without such numbers.
    pub user: u32,
    /// Whether every user may read it.
    pub is_readable_by_all: bool,
    /// How many names it has.
    pub links: u64,
}

/// The rights to a file that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// This process's user may read and write it.
    ReadWrite,
    /// This process's user may only read it.
    ReadOnly,
    /// Everybody may read it, and this process's user write it.
    ReadByAll,
}

/// The example of the page that the registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
