//! Copies of programs that are recorded in their place, and by which path the profile calls them.

use nyquist_system::with_unused_name;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{env, fs, io};

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
pub(crate) struct ProgramCopy {
    folder: PathBuf,
}

impl ProgramCopy {
    /// Copies a program, with its extended attributes. Returns the path of the copy.
    pub(crate) fn of(program: &Path) -> io::Result<(PathBuf, Self)> {
        let name = program.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let folder = private_folder()?;
        let copy = Self { folder: folder.clone() };
        let path = folder.join(name);
        fs::copy(program, &path)?;
        // `codesign` has to write it, and programs are often for reading only. The copy never has the rights of
        // the program's owner or group (setuid).
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
        let shown = |path: &Path| path.to_string_lossy().into_owned();
        let original = fs::canonicalize(program)?;
        COPIES.lock().unwrap_or_else(PoisonError::into_inner).push((shown(&path), shown(&original)));
        Ok((path, copy))
    }
}

impl Drop for ProgramCopy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A new folder for temporary files that no other user can enter. Its path has no links.
pub(crate) fn private_folder() -> io::Result<PathBuf> {
    let parent = fs::canonicalize(env::temp_dir())?;
    with_unused_name(|number| {
        let folder = parent.join(format!("nyquist-{number:016x}"));
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(folder)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_copy_is_called_by_its_original() {
        let own = env::current_exe().unwrap();
        let (path, copy) = ProgramCopy::of(&own).unwrap();
        let shown = path.to_str().unwrap().to_owned();
        assert!(path.is_file() && mode(path.parent().unwrap()) == 0o700);
        assert_eq!(original(shown), fs::canonicalize(own).unwrap().to_str().unwrap());
        assert_eq!(original("/x".to_owned()), "/x");
        drop(copy);
        assert!(!path.exists() && !path.parent().unwrap().exists());
    }

    #[test]
    fn a_copy_is_writable_and_private() {
        let folder = private_folder().unwrap();
        let program = folder.join("app");
        fs::write(&program, "code").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o6555)).unwrap();
        let (path, _copy) = ProgramCopy::of(&program).unwrap();
        assert_eq!((mode(&path), fs::read(&path).unwrap()), (0o700, b"code".to_vec()));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_copy_that_cannot_be_made_leaves_nothing() {
        let missing = env::temp_dir().join("nyquist-no-such-program");
        assert_eq!(ProgramCopy::of(&missing).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
