//! Copies of programs that are recorded in their place, and by which path the profile calls them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{fs, io};

/// The paths of the copies that this process has made, and those of the programs.
static COPIES: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// The path of the program that a path means: that of the original, if it is one of a copy.
pub(crate) fn original(path: String) -> String {
    let copies = COPIES.lock().unwrap_or_else(PoisonError::into_inner);
    let found = copies.iter().find(|(copy, _)| *copy == path);
    found.map(|(_, original)| original.clone()).unwrap_or(path)
}

/// A copy of a program in a folder that no other user can enter. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Copy {
    folder: PathBuf,
}

impl Copy {
    /// Copies a program. Returns the path of the copy.
    pub(crate) fn of(program: &Path) -> io::Result<(PathBuf, Self)> {
        let name = program.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let folder = super::sign::private_folder()?;
        let copy = Self { folder: folder.clone() };
        let path = folder.join(name);
        fs::copy(program, &path)?;
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        let original = fs::canonicalize(program)?;
        COPIES.lock().unwrap_or_else(PoisonError::into_inner).push((shown(&path), shown(&original)));
        Ok((path, copy))
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_called_by_its_original() {
        let own = std::env::current_exe().unwrap();
        let (path, copy) = Copy::of(&own).unwrap();
        let shown = path.to_str().unwrap().to_owned();
        assert!(path.is_file());
        assert_eq!(original(shown), fs::canonicalize(own).unwrap().to_str().unwrap());
        assert_eq!(original("/x".to_owned()), "/x");
        drop(copy);
        assert!(!path.exists());
    }
}
