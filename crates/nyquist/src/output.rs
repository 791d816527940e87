//! Where a profile is saved: opened before the recording starts, whole or not at all when it ends.

use crate::page;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

/// The owner that saved files get, where it is not the process's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    /// The user's number.
    pub(crate) uid: u32,
    /// The group's number.
    pub(crate) gid: u32,
}

/// An opened place for a profile.
#[derive(Debug)]
pub(crate) enum Output {
    /// A new file beside the place where it will appear by rename.
    File(PendingFile),
    /// A device, a FIFO or standard output: written to and not replaced.
    Stream {
        /// The open file.
        file: File,
        /// Its name for messages.
        path: PathBuf,
    },
}

impl Output {
    /// Opens `path`; `-` is standard output. Symbolic links are followed, so that a link stays a link.
    pub(crate) fn open(path: &Path, owner: Option<Owner>) -> io::Result<Self> {
        if path == Path::new("-") {
            return Self::stdout();
        }
        let target = follow_links(path)?;
        match fs::metadata(&target) {
            Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(metadata) if !metadata.is_file() => {
                // Of a FIFO this waits for its reader: without one, what is written would be gone.
                let file = OpenOptions::new().write(true).open(&target)?;
                Ok(Self::Stream { file, path: target })
            }
            _ => PendingFile::create(target, owner).map(Self::File),
        }
    }

    fn stdout() -> io::Result<Self> {
        if page::is_terminal() {
            return Err(io::Error::other("a profile is not for a terminal; redirect it to a file or a pipe"));
        }
        let file = File::from(std::os::fd::AsFd::as_fd(&page::stdout()).try_clone_to_owned()?);
        Ok(Self::Stream { file, path: PathBuf::from("-") })
    }

    /// Whether the profile goes to standard output, so that nothing else may.
    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self, Self::Stream { path, .. } if path == Path::new("-"))
    }

    /// Its name for messages.
    pub(crate) fn name(&self) -> &Path {
        match self {
            Self::File(pending) => &pending.target,
            Self::Stream { path, .. } => path,
        }
    }

    /// The file that can be read back after [`Output::save`]; a stream has none.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(pending) => Some(&pending.target),
            Self::Stream { .. } => None,
        }
    }

    /// As [`Output::save`], for a format whose beginning is written last; a stream cannot have it.
    pub(crate) fn save_seekable(
        self,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> io::Result<()> {
        match self {
            Self::File(pending) => pending.save(write),
            Self::Stream { .. } => {
                Err(io::Error::other("this format needs a file that can be written in any order"))
            }
        }
    }

    /// Writes the profile and makes it appear. On an error nothing of it is left behind in the file system.
    pub(crate) fn save(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        match self {
            Self::File(pending) => pending.save(|writer| write(writer)),
            Self::Stream { file, .. } => {
                let mut writer = BufWriter::new(file);
                write(&mut writer)?;
                writer.flush()
            }
        }
    }
}

/// A file that is written under another name; it is removed again unless it is committed.
#[derive(Debug)]
pub(crate) struct PendingFile {
    file: Option<File>,
    temporary: PathBuf,
    target: PathBuf,
}

impl PendingFile {
    fn create(target: PathBuf, owner: Option<Owner>) -> io::Result<Self> {
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy().into_owned();
        let temporary = target.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&temporary)?;
        let pending = Self { file: Some(file), temporary, target };
        if let (Some(owner), Some(file)) = (owner, &pending.file) {
            fchown(file, Some(owner.uid), Some(owner.gid))?;
        }
        Ok(pending)
    }

    fn save(mut self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let mut writer = BufWriter::with_capacity(1 << 16, file);
        write(&mut writer)?;
        writer.flush()?;
        if self.target.exists() {
            fs::rename(&self.target, with_suffix(&self.target, ".old"))?;
        }
        fs::rename(&self.temporary, &self.target)
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        // After a successful rename there is nothing of that name any more.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// The same path with `suffix` behind its name.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The place that `path` stands for, also where the last link points to nothing yet.
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    const MAX_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("nyquist-output-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<_> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn save(path: &Path, text: &str) {
        Output::open(path, None).unwrap().save(|out| out.write_all(text.as_bytes())).unwrap();
    }

    #[test]
    fn an_earlier_recording_is_kept_and_the_file_is_private() {
        let folder = Folder::new("old");
        let path = folder.0.join("p.json.gz");
        save(&path, "one");
        save(&path, "two");
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_to_string(folder.0.join("p.json.gz.old")).unwrap(), "one");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(folder.names(), ["p.json.gz", "p.json.gz.old"]);
    }

    #[test]
    fn a_failed_save_leaves_the_earlier_recording_and_nothing_else() {
        let folder = Folder::new("failed");
        let path = folder.0.join("p");
        save(&path, "one");
        let output = Output::open(&path, None).unwrap();
        let result = output.save(|out| {
            out.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        assert_eq!(folder.names(), ["p"]);
    }

    #[test]
    fn an_output_that_is_never_saved_leaves_nothing() {
        let folder = Folder::new("unused");
        drop(Output::open(&folder.0.join("p"), None).unwrap());
        assert!(folder.names().is_empty());
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = Folder::new("link");
        fs::create_dir(folder.0.join("real")).unwrap();
        let link = folder.0.join("link");
        std::os::unix::fs::symlink("real/file", &link).unwrap();
        save(&link, "one");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(folder.0.join("real/file")).unwrap(), "one");
    }

    #[test]
    fn a_device_is_written_to() {
        save(Path::new("/dev/null"), "gone");
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }

    #[test]
    fn places_that_cannot_be_written_fail_at_once() {
        assert!(Output::open(Path::new("/nonexistent/p"), None).is_err());
        assert_eq!(Output::open(Path::new("/tmp"), None).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        let folder = Folder::new("loop");
        let link = folder.0.join("loop");
        std::os::unix::fs::symlink("loop", &link).unwrap();
        assert!(Output::open(&link, None).is_err());
    }
}
