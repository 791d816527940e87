//! Files that a program wrote beside a recording of it, which is read later: jitdumps, perf maps, marker
//! files.

use crate::event::Mapping;
use crate::files::identity::has_identity;
use crate::files::opened::{FileDenied, OpenedFile, Root, own_user};
use std::path::{Path, PathBuf};

/// Where such files are looked for, and which are trusted.
#[derive(Clone, Debug, Default)]
pub struct AuxFiles {
    /// Folders that may have files whose original path is gone, or is on another machine. The first folder
    /// that has a file of that name is used.
    pub folders: Vec<PathBuf>,
    /// Whether the recording was made on this machine, so that its paths may exist.
    pub made_here: bool,
    /// The owner of the recording itself. Files of that user are trusted, because that user could have
    /// written anything into the recording. All other files must belong to the reading user or to root.
    pub owner: Option<u32>,
}

impl AuxFiles {
    /// Opens the file of a mapping: at its own path, if that is still the same file, or in the folders.
    pub(crate) fn open_mapped(&self, mapping: &Mapping) -> Result<OpenedFile, FileDenied> {
        let path = mapping.path.strip_suffix(" (deleted)").unwrap_or(&mapping.path);
        let own = self.in_own_place(path).and_then(|found| {
            if has_identity(&found.file, &mapping.identity) { Ok(found) } else { Err(FileDenied::Absent) }
        });
        own.and_then(|found| self.trusted(found)).or_else(|why| Ok(self.in_folders(path, why)?.0))
    }

    /// Opens the file that was at a path, and returns where it is now.
    pub(crate) fn open(&self, path: &str) -> Result<(OpenedFile, PathBuf), FileDenied> {
        let own = self.in_own_place(path).and_then(|found| self.trusted(found));
        own.map(|found| (found, PathBuf::from(path))).or_else(|why| self.in_folders(path, why))
    }

    fn in_own_place(&self, path: &str) -> Result<OpenedFile, FileDenied> {
        let root = Root::own().filter(|_| self.made_here).ok_or(FileDenied::Absent)?;
        match Path::new(path).strip_prefix("/tmp") {
            Ok(inside) => root.temporary().ok_or(FileDenied::Absent)?.open(inside),
            Err(_) => root.open(Path::new(path)),
        }
    }

    /// The first file of that name. If no file is found, the error is `why`, or the first error that is more
    /// specific.
    fn in_folders(&self, path: &str, mut why: FileDenied) -> Result<(OpenedFile, PathBuf), FileDenied> {
        let name = Path::new(path).file_name().ok_or(FileDenied::Absent)?;
        for folder in &self.folders {
            let Some(root) = Root::at(folder) else { continue };
            match root.open(Path::new(name)).and_then(|found| self.trusted(found)) {
                Ok(found) => return Ok((found, folder.join(name))),
                Err(denied) if !why.deserves_message() => why = denied,
                Err(_) => {}
            }
        }
        Err(why)
    }

    fn trusted(&self, found: OpenedFile) -> Result<OpenedFile, FileDenied> {
        let users: Vec<u32> = self.owner.into_iter().chain([own_user()]).collect();
        found.trusted(&users)
    }
}
