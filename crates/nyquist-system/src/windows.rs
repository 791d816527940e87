//! Files and names of Windows.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf, Prefix};
use std::process::Command;

use crate::{Access, FileId, Ownership};

/// `FILE_FLAG_OPEN_REPARSE_POINT`: a link is opened itself, and not its target.
const OPEN_REPARSE_POINT: u32 = 0x0020_0000;

/// `FILE_FLAG_BACKUP_SEMANTICS`: folders can be opened, too.
const BACKUP_SEMANTICS: u32 = 0x0200_0000;

/// The 100 ns between 1601 and 1970.
const UNTIL_1970: u64 = 116_444_736_000_000_000;

/// Reading and writing at an offset of a file, which changes its position. The items are those of the trait of
/// this name on Unix.
pub trait FileExt {
    /// Reads at most as many bytes as the buffer has room for.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Fills the buffer. A file that ends before is an error.
    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read_at(buffer, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    buffer = &mut buffer[read..];
                    offset += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes at most all of the buffer.
    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize>;

    /// Writes all of the buffer.
    fn write_all_at(&self, mut buffer: &[u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.write_at(buffer, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    buffer = &buffer[written..];
                    offset += written as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl FileExt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.seek_read(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<usize> {
        self.seek_write(buffer, offset)
    }
}

/// Names as bytes: those of files and debug info are UTF-8.
pub trait OsStrExt {
    /// The name. Bytes that are not UTF-8 are the empty name, which no file has.
    fn from_bytes(bytes: &[u8]) -> &Self;

    /// The bytes of the name. They are UTF-8 if the name is Unicode.
    fn as_bytes(&self) -> &[u8];
}

impl OsStrExt for OsStr {
    fn from_bytes(bytes: &[u8]) -> &Self {
        Self::new(std::str::from_utf8(bytes).unwrap_or_default())
    }

    fn as_bytes(&self) -> &[u8] {
        self.as_encoded_bytes()
    }
}

/// The identity of an open file (`GetFileInformationByHandle`).
pub fn file_id(file: &File) -> io::Result<FileId> {
    let information = winapi_util::file::information(file)?;
    Ok(FileId { device: information.volume_serial_number(), number: information.file_index() })
}

/// The identity of a file or folder. Links are followed.
pub fn path_id(path: &Path) -> io::Result<FileId> {
    file_id(&OpenOptions::new().read(true).custom_flags(BACKUP_SEMANTICS).open(path)?)
}

/// The owner of an open file, and what others may do with it: users are not distinguished, because who may read a
/// file is decided when it is opened.
pub fn ownership(file: &File) -> io::Result<Ownership> {
    let links = winapi_util::file::information(file)?.number_of_links();
    Ok(Ownership { user: 0, is_readable_by_all: true, links })
}

/// Whether a file can be replaced by another of its name while it is open: not before Windows 10.
pub const REPLACES_OPEN_FILES: bool = false;

/// Runs a program in place of this process, and ends with its status. Returns only if it cannot be started.
pub fn replace_process(command: &mut Command) -> io::Error {
    match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}

/// When a file was written to last: seconds since 1970, and the nanoseconds after these.
pub fn changed(metadata: &Metadata) -> (i64, i64) {
    let since = metadata.last_write_time().saturating_sub(UNTIL_1970);
    ((since / 10_000_000) as i64, (since % 10_000_000 * 100) as i64)
}

/// How much of the disk a file takes, in bytes: holes are not known.
pub fn allocated_bytes(metadata: &Metadata) -> u64 {
    metadata.len()
}

/// Whether at least that many bytes of a file are in no hole: holes are not known.
pub fn has_data(_file: &File, _len: u64, _least: u64) -> bool {
    true
}

/// A path that leads to an open file even when it was deleted: there is none.
pub fn path_of_open(_file: &File) -> Option<PathBuf> {
    None
}

/// How files are made, or opened again, in folders that only this process's user may use. Links are not
/// followed.
pub fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(OPEN_REPARSE_POINT);
    options
}

/// Makes a folder and those above it that are missing. Below a user's profile, only that user may use it.
pub fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(folder)
}

/// Sets the rights to a file that is complete: it has those of its folder, so that it can be replaced.
pub fn restrict(_file: &File, _access: Access) -> io::Result<()> {
    Ok(())
}

/// Whether a path names a file of another machine, or a device. To open it, the system may log in there.
pub(crate) fn is_of_another_machine(path: &Path) -> bool {
    let Some(Component::Prefix(prefix)) = path.components().next() else { return false };
    !matches!(prefix.kind(), Prefix::Disk(_) | Prefix::VerbatimDisk(_))
}

/// Options for reading a file.
pub(crate) fn reading(follows_links: bool) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(if follows_links { 0 } else { OPEN_REPARSE_POINT });
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_other_machines_are_refused() {
        for path in
            [r"\\server\share\a.dll", r"\\?\UNC\server\share\a.dll", r"\\.\pipe\a", r"//server/share/a"]
        {
            assert!(is_of_another_machine(Path::new(path)), "{path}");
            let refused = crate::open_regular(Path::new(path)).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{path}");
            let refused = crate::real_path(Path::new(path)).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{path}");
            assert!(!crate::is_regular(Path::new(path)), "{path}");
        }
        for path in [r"C:\a.dll", r"\\?\C:\a.dll", r"a\b", "/a"] {
            assert!(!is_of_another_machine(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn files_are_read_at_places_and_have_identities() {
        let [one, other] = ["one", "other"]
            .map(|name| std::env::temp_dir().join(format!("nyquist-{name}-{}", std::process::id())));
        for path in [&one, &other] {
            std::fs::write(path, "0123456789").unwrap();
        }
        let open = |path| crate::open_regular(path).unwrap();
        let mut bytes = [0; 4];
        open(&one).read_exact_at(&mut bytes, 6).unwrap();
        assert_eq!(&bytes, b"6789");
        assert!(open(&one).read_exact_at(&mut bytes, 7).is_err());
        assert_eq!(file_id(&open(&one)).unwrap(), file_id(&open(&one)).unwrap());
        assert_ne!(file_id(&open(&one)).unwrap(), file_id(&open(&other)).unwrap());
        for path in [&one, &other] {
            std::fs::remove_file(path).unwrap();
        }
    }
}
