//! What a release archive holds.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::files::Files;
use super::target::Target;

/// The two programs. `cargo-nyquist` runs the `nyquist` beside it.
pub(super) const PROGRAMS: [&str; 2] = ["nyquist", "cargo-nyquist"];

/// The project's documents that each archive has.
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// The programs that were built into a folder.
pub(super) fn programs(target: &Target, folder: &Path) -> Result<Files> {
    let mut programs = Files::default();
    for name in PROGRAMS {
        let name = target.program(name);
        let path = folder.join(&name);
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        programs.add_program(name, bytes);
    }
    Ok(programs)
}

/// The project's documents.
pub(super) fn documents() -> Result<Files> {
    let mut documents = Files::default();
    for name in DOCUMENTS {
        let path = crate::paths::root().join(name);
        documents.add(name, fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?);
    }
    Ok(documents)
}

/// All files of an archive, in the one folder that it unpacks to.
pub(super) fn archive(target: &Target, version: &str, parts: &[&Files]) -> Files {
    let mut files = Files::default();
    for part in parts {
        files.add_below(&target.folder(version), part);
    }
    files
}
