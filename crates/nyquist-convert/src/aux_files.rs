//! Files that a program wrote beside a recording of it, which is read later: jitdumps, perf maps, marker files.

use crate::event::Mapping;
use crate::modules::{is_same, open_regular};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Where such files are looked for.
#[derive(Clone, Debug, Default)]
pub struct AuxFiles {
    /// Folders that may have files whose own place is gone, or is on another machine; the first one that has a file of
    /// that name counts.
    pub folders: Vec<PathBuf>,
    /// Whether the recording was made on this machine, so that its paths are worth a look.
    pub made_here: bool,
}

impl AuxFiles {
    /// Opens the file of a mapping: at its own path, where it still is the same file, or in the folders.
    pub(crate) fn open_mapped(&self, mapping: &Mapping) -> Option<File> {
        let path = mapping.path.strip_suffix(" (deleted)").unwrap_or(&mapping.path);
        let own = if self.made_here { open_regular(path) } else { None };
        own.filter(|file| is_same(file, &mapping.identity)).or_else(|| Some(self.in_folders(path)?.0))
    }

    /// Opens the file that was at a path, and says where it is.
    pub(crate) fn open(&self, path: &str) -> Option<(File, PathBuf)> {
        let own = if self.made_here { open_regular(path) } else { None };
        own.map(|file| (file, PathBuf::from(path))).or_else(|| self.in_folders(path))
    }

    fn in_folders(&self, path: &str) -> Option<(File, PathBuf)> {
        let name = Path::new(path).file_name()?;
        let mut places = self.folders.iter().map(|folder| folder.join(name));
        let open = |place: PathBuf| Some((open_regular(place.to_str()?)?, place));
        places.find_map(open)
    }
}
