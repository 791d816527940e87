//! A file before it is damaged.

use std::path::PathBuf;

/// A valid file, its path, and the commands that read it there.
pub(super) struct Seed {
    pub(super) place: PathBuf,
    pub(super) bytes: Vec<u8>,
    pub(super) commands: Vec<Vec<String>>,
}
