//! Files at paths that a recorded process names, or can write to: how they are opened, and which are trusted.
//!
//! The recorder may have more privileges than the process. So no link is followed on the way, and only
//! regular files are opened. A compiler's description of its code is trusted only in a file that only the
//! process's user or root can have written.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use other as system;

use std::io;

pub(crate) use system::{OpenedFile, Root, open_regular, own_user, user_of};

/// Why a file is not used.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "owners are compared on Linux only"))]
pub(crate) enum FileDenied {
    #[error("the file does not exist")]
    Absent,
    #[error("the file or its folder is a symbolic link")]
    Link,
    #[error("the file is not a regular file")]
    NotRegular,
    #[error("the file belongs to user {0}, who is neither the process's user nor root")]
    Owner(u32),
    #[error("every user may write to it")]
    Writable,
    #[error("the file is root's, and the process's user may not read it")]
    Private,
    #[error("the file is not the file that was mapped")]
    Other,
    #[error("the file cannot be opened: {0}")]
    Unreadable(#[source] io::Error),
}

impl FileDenied {
    /// Whether the user should get a message. A missing file is not worth one.
    pub(crate) fn deserves_message(&self) -> bool {
        !matches!(self, Self::Absent)
    }
}
