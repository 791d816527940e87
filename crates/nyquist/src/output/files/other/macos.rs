//! Files that are not replaced, and how new ones are made. Nobody else may read those.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The device that keeps nothing.
#[cfg(test)]
pub(crate) const NULL_DEVICE: &str = "/dev/null";

/// What is written to and not replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    /// What has no positions.
    Pipe,
    Device,
}

/// The kind of special file that a path names, if it is one.
pub(crate) fn kind(path: &Path) -> Option<Special> {
    let kind = fs::metadata(path).ok()?.file_type();
    if kind.is_fifo() || kind.is_socket() {
        return Some(Special::Pipe);
    }
    (kind.is_char_device() || kind.is_block_device()).then_some(Special::Device)
}

/// The standard output.
#[expect(clippy::disallowed_methods, reason = "the profile is written to it, and not text")]
pub(crate) fn standard_output() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

/// Lets everything that is printed from now on go to the standard error, also what started programs print.
pub(crate) fn redirect_stdout_to_stderr() -> io::Result<()> {
    Ok(rustix::stdio::dup2_stdout(crate::printer::stderr())?)
}

/// A new file, which is no link (`O_EXCL`).
pub(crate) fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// A new folder.
pub(crate) fn new_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}
