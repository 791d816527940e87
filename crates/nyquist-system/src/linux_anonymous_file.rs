//! Files without a name, on Linux.

use std::fs::File;
use std::io;

use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};

/// A new file that no other process can open, for reading and writing: in the folder for temporary files, or in
/// memory if that does not support one.
///
/// # Errors
/// If neither can be made.
pub fn anonymous_file() -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = open(std::env::temp_dir(), flags, Mode::RUSR | Mode::WUSR)
        .or_else(|_| memfd_create("nyquist-unpacked", MemfdFlags::CLOEXEC));
    Ok(File::from(file?))
}
