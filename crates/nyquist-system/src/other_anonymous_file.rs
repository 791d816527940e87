//! Files without a name, on macOS and Windows: they are made with a name that cannot be predicted.

use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::Path;

/// The number of attempts to find an unused name for a file.
const ATTEMPTS: u32 = 16;

/// A new file in the folder for temporary files, for reading and writing. It is gone when it is closed.
///
/// # Errors
/// If it cannot be made.
pub fn anonymous_file() -> io::Result<File> {
    for attempt in 0..ATTEMPTS {
        let name = format!("nyquist-{:016x}", RandomState::new().hash_one(attempt));
        match create(&std::env::temp_dir().join(name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created,
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
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
