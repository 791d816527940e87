//! The root folder of other processes: its files are opened as these see them.

use crate::HeldFile;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2};
use rustix::io::Errno;
use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A root folder that is held open, so that it can still be used when its processes have ended.
#[derive(Clone, Debug)]
pub struct OpenRoot {
    path: PathBuf,
    folder: Folder,
}

#[derive(Clone, Debug)]
enum Folder {
    /// This process holds it. The namespace keeps the file systems mounted that are in it.
    Here(Arc<OwnedFd>, Option<Arc<OwnedFd>>),
    Elsewhere(Arc<dyn RemoteRoot>),
}

/// A root folder that another process holds open, because its file systems may never answer.
pub trait RemoteRoot: Debug + Send + Sync {
    /// Opens a regular file in it, as [`OpenRoot::open_file`] does.
    ///
    /// # Errors
    /// If it is not there, is no regular file, cannot be opened, or if there is no answer.
    fn open_file(&self, inside: &Path) -> io::Result<HeldFile>;
}

impl OpenRoot {
    /// Opens a folder, by which path what is in it is called from then on.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = Arc::new(open(&path, flags, Mode::empty())?);
        Ok(Self { path, folder: Folder::Here(folder, None) })
    }

    /// Opens the root of a process. What is mounted there is held, too: it would go with the last process of the mount
    /// namespace.
    pub fn of_process(pid: u32) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let namespace = open(format!("/proc/{pid}/ns/mnt"), flags, Mode::empty())?;
        let Self { path, folder } = Self::open(format!("/proc/{pid}/root"))?;
        let folder = match folder {
            Folder::Here(folder, _) => Folder::Here(folder, Some(Arc::new(namespace))),
            elsewhere @ Folder::Elsewhere(_) => elsewhere,
        };
        Ok(Self { path, folder })
    }

    /// A root that another process holds, by which path what is in it is called from then on.
    pub fn elsewhere(path: impl Into<PathBuf>, root: Arc<dyn RemoteRoot>) -> Self {
        Self { path: path.into(), folder: Folder::Elsewhere(root) }
    }

    /// Whether what is mounted in it stays there.
    pub fn holds_mounts(&self) -> bool {
        !matches!(self.folder, Folder::Here(_, None))
    }

    /// By what it is called.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a regular file in it for reading. Links lead to the same places as for processes with this root,
    /// and never out of it (openat2(2)).
    pub fn open_file(&self, inside: &Path) -> io::Result<HeldFile> {
        match &self.folder {
            Folder::Here(folder, _) => Ok(open_in(folder, inside)?.into()),
            Folder::Elsewhere(root) => root.open_file(inside),
        }
    }
}

fn open_in(folder: &OwnedFd, inside: &Path) -> io::Result<File> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let open = |flags| openat2(folder, inside, flags | OFlags::CLOEXEC, Mode::empty(), resolve);
    let regular = |file: OwnedFd| match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(file),
        _ => Err(Errno::INVAL),
    };
    // Checked before opening, because merely opening a FIFO or a device can wait for ever or have effects.
    regular(open(OFlags::PATH)?)?;
    Ok(regular(open(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?)?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_link_leads_out_of_a_root() {
        let folder = std::env::temp_dir().join(format!("nyquist-root-{}", std::process::id()));
        let inside = folder.join("root");
        fs::create_dir_all(inside.join("in")).unwrap();
        fs::write(inside.join("in/file"), "inner").unwrap();
        fs::write(folder.join("secret"), "outer").unwrap();
        symlink("/in/file", inside.join("absolute")).unwrap();
        symlink(folder.join("secret"), inside.join("escape")).unwrap();
        symlink("../../../secret", inside.join("in/up")).unwrap();
        let root = OpenRoot::open(&inside).unwrap();
        let of_process = OpenRoot::of_process(std::process::id()).unwrap();
        assert!(!root.holds_mounts() && of_process.holds_mounts());
        assert!(of_process.open_file(&inside.join("in/file")).is_ok());
        let read = |path: &str| {
            let mut text = vec![0; 5];
            let opened = root.open_file(Path::new(path));
            opened
                .and_then(|file| file.read_exact_at(&mut text, 0))
                .map(|()| String::from_utf8(text).unwrap())
                .map_err(|error| error.kind())
        };
        for path in ["in/file", "/in/file", "absolute", "../../in/file"] {
            assert_eq!(read(path).as_deref(), Ok("inner"), "{path}");
        }
        for path in ["escape", "in/up", "../secret", "none"] {
            assert_eq!(read(path), Err(io::ErrorKind::NotFound), "{path}");
        }
        assert_eq!(read("in"), Err(io::ErrorKind::InvalidInput));
        fs::remove_dir_all(&folder).unwrap();
    }
}
