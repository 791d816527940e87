//! The file of a probe. It is found by its name once: what is parsed is what the kernel gets.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nyquist_object::{Elf, FileSource};
use nyquist_resources::Budget;

use super::place_error::PlaceError;
use crate::linux::sys::beneath::{PathHandle, Status, at_once};

/// The most memory for a section of the file, and for its functions: its owner chooses their size.
const MAX_MEMORY: u64 = 256 << 20;

/// The folders of libraries that are named without a folder, besides the architecture's folders in them.
const LIBRARIES: [&str; 4] = ["/lib", "/usr/lib", "/lib64", "/usr/local/lib"];

/// An open regular file. Clones share it.
///
/// Its owner may put another file at its path at any time. So the path is not used again, and the kernel is
/// given the open file.
#[derive(Clone, Debug)]
pub struct ProbedFile {
    file: Arc<File>,
    status: Status,
    path: PathBuf,
    /// The most memory for a section of the file, and for its functions.
    memory: u64,
}

impl PartialEq for ProbedFile {
    fn eq(&self, other: &Self) -> bool {
        self.status.is(&other.status)
    }
}

impl Eq for ProbedFile {}

impl ProbedFile {
    /// Finds the file that a name refers to: a path, a program in PATH, or a library such as `libc` or
    /// `libc.so.6`. `None` if there is no such file.
    pub(super) fn named(name: &str) -> Option<io::Result<Self>> {
        if name.contains('/') {
            return Self::at(name.into());
        }
        if name.is_empty() {
            return None;
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let programs = std::env::split_paths(&path).map(|folder| folder.join(name));
        let mut programs = programs.filter(|path| path.is_absolute()).filter_map(Self::at);
        programs.next().or_else(|| libraries(name).next().map(Ok))
    }

    /// Opens the regular file at a path. Links are followed. A FIFO or a device is not opened. `None` if no
    /// regular file is there.
    ///
    /// # Errors
    /// The file may not be read.
    pub fn at(path: PathBuf) -> Option<io::Result<Self>> {
        let found = PathHandle::shown_at(&path).ok().filter(|found| found.status.is_file())?;
        let opened = found.open(&at_once(false));
        Some(opened.map(|file| Self { file: Arc::new(file), status: found.status, path, memory: MAX_MEMORY }))
    }

    /// The same file, whose sections and functions may take less memory.
    pub(super) fn within(self, memory: u64) -> Self {
        Self { memory: self.memory.min(memory), ..self }
    }

    /// Its path, for messages.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the headers of an ELF file.
    pub(super) fn elf(&self) -> Result<Elf<FileSource>, PlaceError> {
        let cannot =
            |reason: &dyn std::fmt::Display| format!("{} cannot be read: {reason}", self.path.display());
        let file = self.file.try_clone().map_err(|error| cannot(&error))?;
        let source = FileSource::within(file, Budget::new(self.memory));
        Ok(Elf::open(source).map_err(|error| cannot(&error))?)
    }

    /// The path by which the kernel finds the open file, for as long as this is open.
    ///
    /// # Errors
    /// That path leads to another file: `/proc` is missing, or shows other processes.
    pub(crate) fn path_for_kernel(&self) -> io::Result<CString> {
        let path = format!("/proc/self/fd/{}", self.file.as_fd().as_raw_fd());
        let shown = PathHandle::shown_at(Path::new(&path))?;
        if !shown.status.is(&self.status) {
            return Err(io::Error::other("/proc does not show the open files of this process"));
        }
        Ok(CString::new(path)?)
    }
}

/// The libraries with a name: the one that programs request comes first.
fn libraries(name: &str) -> impl Iterator<Item = ProbedFile> {
    let machine = format!("{}-linux-gnu", std::env::consts::ARCH);
    let folders =
        LIBRARIES.iter().flat_map(move |folder| [Path::new(folder).join(&machine), PathBuf::from(folder)]);
    folders.filter_map(move |folder| library_in(&folder, name))
}

/// A library in a folder: with the exact name, or followed by `.so` and a version.
fn library_in(folder: &Path, name: &str) -> Option<ProbedFile> {
    let library = |path: PathBuf| ProbedFile::at(path)?.ok().filter(|file| file.elf().is_ok());
    let exact = [name.to_owned(), format!("{name}.so")].map(|name| folder.join(name));
    if let Some(found) = exact.into_iter().find_map(library) {
        return Some(found);
    }
    let prefix = format!("{name}.so.");
    let entries = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let fits =
        |path: &PathBuf| path.file_name().is_some_and(|it| it.as_bytes().starts_with(prefix.as_bytes()));
    let mut versions: Vec<_> = entries.filter(fits).collect();
    // The shortest name is the one that programs request.
    versions.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    versions.into_iter().find_map(library)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

    /// A folder that is removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("nyquist-probed-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_kernel_gets_the_file_that_was_opened() {
        let folder = Folder::new("swapped");
        let [path, other] = ["app", "other"].map(|name| folder.0.join(name));
        fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
        fs::write(&other, "another file").unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        let file = ProbedFile::at(path.clone()).unwrap().unwrap();
        fs::rename(&other, &path).unwrap();
        assert!(file.elf().is_ok(), "what was opened is parsed");
        let given = file.path_for_kernel().unwrap();
        assert_eq!(fs::metadata(given.to_str().unwrap()).unwrap().ino(), inode);
        let now = ProbedFile::at(path).unwrap().unwrap();
        assert!(now != file && now.elf().is_err());
    }

    #[test]
    fn a_pipe_or_a_device_is_not_opened() {
        let folder = Folder::new("special");
        let pipe = folder.0.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [&pipe, Path::new("/dev/zero"), &folder.0, Path::new("/no/such/file")] {
            assert!(ProbedFile::at(path.to_owned()).is_none(), "{}", path.display());
        }
    }
}
