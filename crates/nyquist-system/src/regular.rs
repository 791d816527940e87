//! Opening regular files only. Merely opening a FIFO or a device can wait for ever or have effects.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::system::{is_of_another_machine, reading};

/// Opens a regular file of this machine for reading. Links are followed.
///
/// The kind of file is checked before it is opened, and again afterwards, because another process may replace
/// it meanwhile. Opening does not wait.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if it is another kind of file, or another machine's.
pub fn open_regular(path: &Path) -> io::Result<File> {
    check_place(path)?;
    open(path, &fs::metadata(path)?, &reading(true))
}

/// The same of a path that must not be a link: in a folder that other users may write to, it could lead
/// anywhere.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if it is a link or another kind of file.
pub fn open_regular_unlinked(path: &Path) -> io::Result<File> {
    check_place(path)?;
    open(path, &fs::symlink_metadata(path)?, &reading(false))
}

/// Whether a path leads to a regular file of this machine. Links are followed.
pub fn is_regular(path: &Path) -> bool {
    check_place(path).and_then(|()| fs::metadata(path)).is_ok_and(|metadata| metadata.is_file())
}

/// The path of a file of this machine without links.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if it is another machine's. Others if there is no such file.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    check_place(path)?;
    path.canonicalize()
}

/// A path may come from a profile. To open one of another machine, Windows would log in there.
fn check_place(path: &Path) -> io::Result<()> {
    let error = || io::Error::new(io::ErrorKind::InvalidInput, "a path of another machine");
    (!is_of_another_machine(path)).then_some(()).ok_or_else(error)
}

fn open(path: &Path, before: &Metadata, options: &OpenOptions) -> io::Result<File> {
    check(before)?;
    let file = options.open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

fn check(metadata: &Metadata) -> io::Result<()> {
    let error = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
    metadata.is_file().then_some(()).ok_or_else(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_missing_files_are_refused() {
        for open in [open_regular, open_regular_unlinked] {
            let kind = |path: &Path| open(path).map_err(|error| error.kind()).err();
            assert_eq!(kind(&std::env::temp_dir()), Some(io::ErrorKind::InvalidInput));
            assert_eq!(kind(&std::env::temp_dir().join("no-such-file")), Some(io::ErrorKind::NotFound));
            assert_eq!(kind(&std::env::current_exe().unwrap()), None);
        }
        let [folder, missing, file] = [
            std::env::temp_dir(),
            std::env::temp_dir().join("no-such-file"),
            std::env::current_exe().unwrap(),
        ];
        assert_eq!([&folder, &missing, &file].map(|path| is_regular(path)), [false, false, true]);
        assert_eq!([&folder, &missing, &file].map(|path| real_path(path).is_ok()), [true, false, true]);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_pipes_are_refused() {
        let folder = std::env::temp_dir().join(format!("nyquist-regular-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let [file, link, pipe] = ["file", "link", "pipe"].map(|name| folder.join(name));
        fs::write(&file, "x").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(open_regular(&link).is_ok() && open_regular_unlinked(&file).is_ok());
        for refused in [open_regular_unlinked(&link), open_regular(&pipe), open_regular_unlinked(&pipe)] {
            assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
