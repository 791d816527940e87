//! Files by path, in order: what an archive or a package holds.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    /// The rights of everybody: `0o755` for a program, `0o644` for all else.
    pub(super) mode: u32,
    /// What it contains.
    pub(super) bytes: Vec<u8>,
}

/// Files by path. They are in the order of their paths, so that an archive does not depend on the order in
/// which a folder was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Files(BTreeMap<String, File>);

impl Files {
    /// Adds a program.
    pub(super) fn add_program(&mut self, path: impl Into<String>, bytes: Vec<u8>) {
        self.0.insert(path.into(), File { mode: 0o755, bytes });
    }

    /// Adds a file that is read.
    pub(super) fn add(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.insert(path.into(), File { mode: 0o644, bytes: bytes.into() });
    }

    /// Adds all files of others below a folder.
    pub(super) fn add_below(&mut self, folder: &str, others: &Self) {
        for (path, file) in &others.0 {
            self.0.insert(format!("{folder}/{path}"), file.clone());
        }
    }

    /// The files in the order of their paths.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &File)> {
        self.0.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// The paths in order.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The size of all files together.
    pub(super) fn bytes(&self) -> u64 {
        self.0.values().map(|file| file.bytes.len() as u64).sum()
    }

    /// Writes the files below a folder. Folders have the rights `0o755`, whatever this process's mask is.
    pub(super) fn write_below(&self, folder: &Path) -> Result<()> {
        for (path, file) in &self.0 {
            let path = folder.join(path);
            let parent = path.parent().context("a file is in a folder")?;
            fs::create_dir_all(parent)?;
            for outer in parent.ancestors().take_while(|outer| outer.starts_with(folder)) {
                fs::set_permissions(outer, fs::Permissions::from_mode(0o755))?;
            }
            fs::write(&path, &file.bytes).with_context(|| format!("cannot write {}", path.display()))?;
            fs::set_permissions(&path, fs::Permissions::from_mode(file.mode))?;
        }
        Ok(())
    }
}

/// Makes an empty folder, whatever was there.
pub(super) fn empty_folder(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot remove {}", path.display()));
        }
        _ => {}
    }
    fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))
}
