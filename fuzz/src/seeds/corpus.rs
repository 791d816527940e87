//! Where the first inputs of a target are written.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// The folder of a target's inputs.
pub(super) fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// Writes one of a target's inputs.
pub(super) fn write(target: &str, number: usize, seed: &[u8]) -> io::Result<()> {
    let folder = corpus(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(format!("seed-{number}")), seed)
}
