//! The root folder of other processes, on systems where all processes have the same one.

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::{HeldFile, open_regular};

/// A folder below which files are opened.
#[derive(Clone, Debug)]
pub struct OpenRoot(PathBuf);

impl OpenRoot {
    /// Takes a folder, by which path what is in it is called from then on.
    ///
    /// # Errors
    /// If it is no folder.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let is_folder = path.metadata()?.is_dir();
        is_folder.then_some(Self(path)).ok_or_else(|| io::ErrorKind::NotADirectory.into())
    }

    /// The root of a process: there is none of its own.
    ///
    /// # Errors
    /// Always.
    pub fn of_process(_pid: u32) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Whether what is mounted in it stays there.
    pub fn holds_mounts(&self) -> bool {
        false
    }

    /// By what it is called.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Opens a regular file in it for reading. A path that leads out of it is refused; links are followed.
    ///
    /// # Errors
    /// If it is not there, is no regular file, or cannot be opened.
    pub fn open_file(&self, inside: &Path) -> io::Result<HeldFile> {
        let mut path = self.0.clone();
        for component in inside.components() {
            match component {
                Component::Normal(name) => path.push(name),
                Component::RootDir | Component::CurDir => {}
                Component::ParentDir | Component::Prefix(_) => return Err(io::ErrorKind::NotFound.into()),
            }
        }
        Ok(open_regular(&path)?.into())
    }
}
