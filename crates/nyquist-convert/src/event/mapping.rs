//! Code that was mapped into a process, and the identity of its file.

use super::ids::Pid;
use super::provided_image::ProvidedImage;
use nyquist_object::{Avma, BuildId, FileOffset, MachUuid, PeCodeId};
use std::sync::Arc;

/// A range of executable memory, and the file that is mapped there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Whose, or `None` for the kernel's own address space.
    pub pid: Option<Pid>,
    /// The first address.
    pub start: Avma,
    /// The number of bytes.
    pub len: u64,
    /// Where in the file the first byte is.
    pub offset: FileOffset,
    /// The path as the process sees it, or a pseudo name: `[vdso]`, `//anon`, `[kernel.kallsyms]`.
    pub path: String,
    /// The file's identity, from the kernel.
    pub identity: MappedFile,
}

/// A mapped file's identity, from the kernel at the time of the mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum MappedFile {
    /// No identity: anonymous memory, or a source that does not know it.
    #[default]
    Unknown,
    /// The build id.
    BuildId(BuildId),
    /// The time and the size in the headers of an image of Windows, as they are in memory.
    Pe(PeCodeId),
    /// What a trace of Windows states of an image.
    Provided(Arc<ProvidedImage>),
    /// The id of an image of macOS, as it is in memory.
    MachO(MachUuid),
    /// The device and the inode.
    Inode {
        /// The device's major number.
        major: u32,
        /// The device's minor number.
        minor: u32,
        /// The inode.
        inode: u64,
        /// The inode's generation.
        generation: u64,
    },
}
