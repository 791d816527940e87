//! Which file a command means.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{env, io};

/// System calls that read files, as a trait for tests.
pub(crate) trait FileCalls {
    /// Whether this process may execute a file; the error says why it may not.
    fn may_be_run(&self, path: &Path) -> io::Result<()>;
    /// Whether a path leads to a file that is no folder or device.
    fn is_file(&self, path: &Path) -> bool;
}

/// The file of a program. A name without a slash is searched in folders, which are given in the form of PATH.
/// The error of a file that is there and may not be executed is returned rather than that there is none.
pub(crate) fn find(program: &OsStr, folders: &OsStr, files: &impl FileCalls) -> io::Result<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') {
        files.may_be_run(Path::new(program))?;
        return Ok(program.into());
    }
    let mut error = io::Error::from(io::ErrorKind::NotFound);
    for folder in env::split_paths(folders) {
        let path = folder.join(program);
        match files.may_be_run(&path) {
            Ok(()) if files.is_file(&path) => return Ok(path),
            Err(refused) if refused.kind() == io::ErrorKind::PermissionDenied && files.is_file(&path) => {
                error = refused;
            }
            _ => {}
        }
    }
    Err(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    /// Files by their paths: whether each is a file, and whether it may be executed.
    struct SimulatedFiles(Vec<(PathBuf, bool, bool)>);

    impl FileCalls for SimulatedFiles {
        fn may_be_run(&self, path: &Path) -> io::Result<()> {
            let found = self.0.iter().find(|file| file.0 == path).ok_or(io::ErrorKind::NotFound)?;
            if found.2 { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
        }

        fn is_file(&self, path: &Path) -> bool {
            self.0.iter().any(|file| file.0 == path && file.1)
        }
    }

    fn folders() -> OsString {
        env::join_paths(["one", "two", "three"]).unwrap()
    }

    fn found(program: &str, files: &[(&str, bool, bool)]) -> Result<PathBuf, io::ErrorKind> {
        let path = |path: &str| -> PathBuf { path.split(' ').collect() };
        let files = files.iter().map(|(at, is_file, may)| (path(at), *is_file, *may)).collect();
        find(program.as_ref(), &folders(), &SimulatedFiles(files)).map_err(|error| error.kind())
    }

    #[test]
    fn the_first_file_that_may_be_executed_is_taken() {
        let files = [("one app", false, true), ("two app", true, false), ("three app", true, true)];
        let expected: PathBuf = ["three", "app"].iter().collect();
        assert_eq!(
            found("app", &files),
            Ok(expected),
            "a folder and a file without the right are passed over"
        );
    }

    #[test]
    fn a_file_that_may_not_be_executed_is_reported() {
        let files = [("one app", true, false)];
        assert_eq!(found("app", &files), Err(io::ErrorKind::PermissionDenied));
        assert_eq!(found("other", &files), Err(io::ErrorKind::NotFound));
    }

    #[test]
    fn a_path_is_not_searched() {
        let files = [("./app", true, true), ("one ./other", true, true)];
        assert_eq!(found("./app", &files), Ok("./app".into()));
        assert_eq!(found("./other", &files), Err(io::ErrorKind::NotFound));
    }
}
