//! Output files: they are opened without following another user's links, written under a temporary name, and
//! renamed at the end.

mod pending;
mod place;
mod stale_files;
#[cfg(test)]
mod tests;

pub(crate) use pending::{PendingFile, create_folders};
pub(crate) use place::FolderEntry;

use crate::output::OutputError;
use crate::system::linux::sys;
use place::Target;
use rustix::fs::{CWD, FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

/// The number of the standard output.
const STDOUT: u32 = 1;

/// The device that keeps nothing.
#[cfg(test)]
pub(crate) const NULL_DEVICE: &str = "/dev/null";

/// What a path names.
#[derive(Debug)]
pub(crate) enum OutputTarget {
    /// A file, or none yet.
    File(FolderEntry),
    /// Something that is written to and not replaced.
    Stream {
        /// It, opened for writing.
        file: File,
        /// Whether it is the standard output.
        is_stdout: bool,
    },
}

/// Finds what a path names, with the rights of the calling thread; `-` is the standard output. `to_seek`
/// refuses pipes before they are opened.
pub(crate) fn find(path: &Path, to_seek: bool) -> Result<OutputTarget, OutputError> {
    if path == Path::new("-") {
        return stream_of(STDOUT);
    }
    match place::find(path)? {
        Target::File(place) => Ok(OutputTarget::File(place)),
        Target::Descriptor(number) => stream_of(number),
        Target::Special(_, FileType::Fifo | FileType::Socket) if to_seek => Err(OutputError::Stream),
        Target::Special(special, _) => {
            // For a FIFO this waits for its reader, because without one the output would be lost. The
            // opened file is the one that was checked.
            let own = format!("/proc/self/fd/{}", special.as_raw_fd());
            let file = openat(CWD, own, OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
            Ok(OutputTarget::Stream { file: file.into(), is_stdout: false })
        }
    }
}

fn stream_of(number: u32) -> Result<OutputTarget, OutputError> {
    let file = sys::duplicate(number)?;
    let flags = rustix::fs::fcntl_getfl(&file)?;
    if !flags.intersects(OFlags::WRONLY | OFlags::RDWR) {
        return Err(OutputError::NotWritable);
    }
    Ok(OutputTarget::Stream { file, is_stdout: number == STDOUT })
}

/// Lets everything that is printed from now on go to the standard error, also what started programs print.
pub(crate) fn redirect_stdout_to_stderr() -> io::Result<()> {
    Ok(rustix::stdio::dup2_stdout(crate::printer::stderr())?)
}

/// The folders for a profile that cannot be written where it should be.
pub(crate) fn other_folders() -> Vec<std::path::PathBuf> {
    [std::env::temp_dir(), "/var/tmp".into(), "/dev/shm".into()].into()
}

impl From<Errno> for OutputError {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}
