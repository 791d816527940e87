//! The folder for files of the comparisons.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

/// Makes the folder, and returns its path.
pub(super) fn folder() -> Result<PathBuf> {
    let folder = crate::paths::target().join("oracle");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}
