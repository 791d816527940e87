//! The root folder of other processes: its files are opened as these see them.

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A root folder that is held open, so that it can still be used when its processes have ended.
#[derive(Clone, Debug)]
pub struct OpenRoot {
    path: PathBuf,
    folder: Arc<OwnedFd>,
    /// Keeps the file systems mounted that are in it, as long as this is held.
    namespace: Option<Arc<OwnedFd>>,
}

impl OpenRoot {
    /// Opens a folder, by which path what is in it is called from then on.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = Arc::new(open(&path, flags, Mode::empty())?);
        Ok(Self { path, folder, namespace: None })
    }

    /// Opens the root of a process. What is mounted there is held, too: it would go with the last process of the mount namespace.
    pub fn of_process(pid: u32) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let namespace = open(format!("/proc/{pid}/ns/mnt"), flags, Mode::empty())?;
        Ok(Self { namespace: Some(Arc::new(namespace)), ..Self::open(format!("/proc/{pid}/root"))? })
    }

    /// Whether what is mounted in it stays there.
    pub fn holds_mounts(&self) -> bool {
        self.namespace.is_some()
    }

    /// By what it is called.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a regular file in it for reading. Links lead to the same places as for processes with this root,
    /// and never out of it (openat2(2)).
    pub fn open_file(&self, inside: &Path) -> io::Result<File> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let open = |flags| openat2(&self.folder, inside, flags | OFlags::CLOEXEC, Mode::empty(), resolve);
        let regular = |file: OwnedFd| match FileType::from_raw_mode(fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(file),
            _ => Err(Errno::INVAL),
        };
        // Checked before opening, because merely opening a FIFO or a device can wait for ever or have effects.
        regular(open(OFlags::PATH)?)?;
        Ok(regular(open(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?)?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read as _;
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
            let mut text = String::new();
            let opened = root.open_file(Path::new(path));
            opened
                .and_then(|mut file| file.read_to_string(&mut text))
                .map(|_| text)
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
