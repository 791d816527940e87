//! Files without a name, on macOS and Windows: they are made with a name that cannot be predicted.

use crate::with_unused_name;
use std::fs::File;
use std::io;
use std::path::Path;

/// A new file in the folder for temporary files, for reading and writing. It is gone when it is closed.
///
/// # Errors
/// If it cannot be made.
pub fn anonymous_file() -> io::Result<File> {
    let folder = std::env::temp_dir();
    with_unused_name(|number| create(&folder.join(format!("nyquist-{number:016x}"))))
}

/// Makes a file for this user alone, and removes its name.
#[cfg(unix)]
fn create(path: &Path) -> io::Result<File> {
    let file = crate::private_options().read(true).write(true).create_new(true).open(path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

/// Makes a file whose name is removed when the file is closed.
#[cfg(windows)]
fn create(path: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt as _;
    /// `FILE_FLAG_DELETE_ON_CLOSE`.
    const DELETE_ON_CLOSE: u32 = 0x0400_0000;
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).create_new(true).custom_flags(DELETE_ON_CLOSE).open(path)
}
