//! Files at the paths of processes, on Linux: folders are held by descriptors, so that nothing on the way can be
//! replaced meanwhile.

use super::FileDenied;
use crate::event::Pid;
use nyquist_system::read_kernel_text;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags, Stat, StatxFlags, fstat, fstatfs,
    openat, openat2, statat, statx, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::{Component, Path};

impl From<Errno> for FileDenied {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT | Errno::NOTDIR | Errno::SRCH => Self::Absent,
            Errno::LOOP => Self::Link,
            other => Self::Unreadable(other.into()),
        }
    }
}

/// A folder from which paths are resolved.
#[derive(Debug)]
pub(crate) struct Root(OwnedFd);

impl Root {
    /// A process's own root folder, in its own mount namespace.
    pub(crate) fn of_process(pid: Pid) -> Option<Self> {
        Self::at(Path::new(&format!("/proc/{}/root", pid.0)))
    }

    /// Our own root folder.
    pub(crate) fn own() -> Option<Self> {
        Self::at(Path::new("/"))
    }

    /// The mount that it is on, and its number in there.
    pub(crate) fn mount(&self) -> Option<(u64, u64)> {
        /// `STATX_MNT_ID_UNIQUE` (Linux 6.8): numbers that are not used again when a mount is gone.
        const UNIQUE_MOUNT: StatxFlags = StatxFlags::from_bits_retain(0x4000);
        let requested = StatxFlags::INO | StatxFlags::MNT_ID | UNIQUE_MOUNT;
        let stat = statx(&self.0, "", AtFlags::EMPTY_PATH, requested).ok()?;
        Some((stat.stx_mnt_id, stat.stx_ino))
    }

    /// A folder that the user has named.
    pub(crate) fn at(folder: &Path) -> Option<Self> {
        openat(CWD, folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok().map(Self)
    }

    /// The folder for temporary files in this root. It may be a link, because only the administrator can have
    /// made it one.
    pub(crate) fn temporary(&self) -> Option<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(folder) = openat(&self.0, "tmp", flags | OFlags::NOFOLLOW, Mode::empty()) {
            return Some(Self(folder));
        }
        let is_roots = statat(&self.0, "tmp", AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|link| link.st_uid == 0);
        let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let folder = is_roots.then(|| openat2(&self.0, "tmp", flags, Mode::empty(), inside));
        folder?.ok().map(Self)
    }

    /// Opens a regular file for reading. No symbolic link is followed.
    pub(crate) fn open(&self, path: &Path) -> Result<OpenedFile, FileDenied> {
        let mut names = Vec::new();
        for component in path.components() {
            match component {
                Component::Normal(name) => names.push(name),
                Component::RootDir | Component::CurDir => {}
                Component::ParentDir | Component::Prefix(_) => return Err(FileDenied::Absent),
            }
        }
        let name = names.pop().ok_or(FileDenied::Absent)?;
        let mut folder = self.0.try_clone().map_err(FileDenied::Unreadable)?;
        for name in names {
            folder = open_folder(&folder, name)?;
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = open_again(&openat(&folder, name, flags, Mode::empty())?)?;
        Ok(OpenedFile { file, place: Some((folder, name.to_owned())) })
    }
}

fn open_folder(folder: &OwnedFd, name: &OsStr) -> Result<OwnedFd, FileDenied> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty()).map_err(|error| {
        let there = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map(|there| file_type(&there));
        if there == Ok(FileType::Symlink) { FileDenied::Link } else { error.into() }
    })
}

/// Opens a file that was found at a path for reading, if it is a regular file. Opening a device may have an
/// effect, and opening a FIFO may block.
fn open_again(found: &OwnedFd) -> Result<File, FileDenied> {
    match file_type(&fstat(found)?) {
        FileType::RegularFile => {}
        FileType::Symlink => return Err(FileDenied::Link),
        _ => return Err(FileDenied::NotRegular),
    }
    File::open(format!("/proc/self/fd/{}", found.as_raw_fd())).map_err(FileDenied::Unreadable)
}

/// Opens a regular file at a path, and follows all links. It is for paths that the user has named, and for
/// links of the kernel.
pub(crate) fn open_regular(path: &Path) -> Result<File, FileDenied> {
    open_again(&openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// A regular file that is open.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    pub(crate) file: File,
    /// The folder in which it was found, and its name in there.
    place: Option<(OwnedFd, OsString)>,
}

impl OpenedFile {
    /// A file that was found in some other way.
    pub(crate) fn without_place(file: File) -> Self {
        Self { file, place: None }
    }

    /// Returns the file if it is trusted for a process of one of these users.
    pub(crate) fn trusted(self, users: &[u32]) -> Result<Self, FileDenied> {
        // The kernel's contents depend on the opening process, and may be more than the recorded process
        // could see.
        if fstatfs(&self.file)?.f_type == PROC_SUPER_MAGIC {
            return Err(FileDenied::NotRegular);
        }
        let file = fstat(&self.file)?;
        let is_theirs = users.contains(&file.st_uid);
        if !is_theirs && file.st_uid != 0 {
            return Err(FileDenied::Owner(file.st_uid));
        }
        if file.st_mode & 0o002 != 0 {
            return Err(FileDenied::Writable);
        }
        // Otherwise a hard link to a file of root would reveal its contents.
        if !is_theirs && file.st_mode & 0o004 == 0 {
            return Err(FileDenied::Private);
        }
        Ok(self)
    }

    /// Removes the file from the folder in which it was found, if it is still there and belongs to this user.
    /// The user could also remove it.
    pub(crate) fn remove(&self, user: u32) -> Result<(), FileDenied> {
        let (folder, name) = self.place.as_ref().ok_or(FileDenied::Absent)?;
        let (file, there) = (fstat(&self.file)?, statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?);
        if (file.st_dev, file.st_ino) != (there.st_dev, there.st_ino) {
            return Err(FileDenied::Other);
        }
        let around = fstat(folder)?;
        if file.st_uid != user || (around.st_uid != user && around.st_mode & 0o002 == 0) {
            return Err(FileDenied::Owner(file.st_uid));
        }
        Ok(unlinkat(folder.as_fd(), name, AtFlags::empty())?)
    }
}

/// The user whose rights a process has, in our own user namespace. `None` if the process has ended.
pub(crate) fn user_of(pid: Pid) -> Option<u32> {
    let status = read_kernel_text(format!("/proc/{}/status", pid.0)).ok()?;
    // Real, effective, saved (proc_pid_status(5)).
    let numbers = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    numbers.split_whitespace().nth(1)?.parse().ok()
}

/// The user whose rights we have.
pub(crate) fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("nyquist-side-{}-{number}", std::process::id());
            let path = std::env::temp_dir().canonicalize().unwrap().join(name);
            fs::create_dir_all(path.join("in/side")).unwrap();
            fs::write(path.join("in/side/file"), "names").unwrap();
            Self(path)
        }

        fn file(&self) -> PathBuf {
            self.0.join("in/side/file")
        }

        fn open(&self, path: &str) -> Result<OpenedFile, FileDenied> {
            Root::at(&self.0).unwrap().open(Path::new(path))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn links_and_special_files_are_not_opened() {
        let folder = Folder::new();
        symlink("side/file", folder.0.join("in/link")).unwrap();
        symlink("in", folder.0.join("way")).unwrap();
        rustix::fs::mknodat(CWD, folder.0.join("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(folder.open("/in/./side/file").is_ok());
        let check = |path: &str, expected: fn(&FileDenied) -> bool| {
            let denied = folder.open(path).unwrap_err();
            assert!(expected(&denied), "{path}: {denied:?}");
        };
        check("/in/link", |denied| matches!(denied, FileDenied::Link));
        check("/way/side/file", |denied| matches!(denied, FileDenied::Link));
        check("/fifo", |denied| matches!(denied, FileDenied::NotRegular));
        check("/in/side", |denied| matches!(denied, FileDenied::NotRegular));
        check("/in/side/none", |denied| matches!(denied, FileDenied::Absent));
        check("/in/side/file/more", |denied| matches!(denied, FileDenied::Absent));
        check("/in/../in/side/file", |denied| matches!(denied, FileDenied::Absent));
        assert!(matches!(open_regular(&folder.0.join("fifo")), Err(FileDenied::NotRegular)));
        assert!(open_regular(&folder.0.join("in/link")).is_ok());
    }

    #[test]
    fn a_file_is_believed_by_its_owner_and_writers() {
        let folder = Folder::new();
        let owner = fs::metadata(folder.file()).unwrap().uid();
        let with_mode = |mode| {
            fs::set_permissions(folder.file(), fs::Permissions::from_mode(mode)).unwrap();
            folder.open("in/side/file").unwrap()
        };
        assert!(with_mode(0o600).trusted(&[7, owner]).is_ok());
        assert!(matches!(with_mode(0o602).trusted(&[owner]), Err(FileDenied::Writable)));
        // If root runs the tests, its files are trusted for all users, if all users may read them.
        let of_other = with_mode(0o600).trusted(&[owner + 1]);
        if owner == 0 {
            assert!(matches!(of_other, Err(FileDenied::Private)), "{of_other:?}");
            assert!(with_mode(0o644).trusted(&[1]).is_ok());
        } else {
            assert!(matches!(of_other, Err(FileDenied::Owner(uid)) if uid == owner), "{of_other:?}");
        }
    }

    #[test]
    fn what_the_kernel_writes_is_not_believed() {
        let own = Root::at(Path::new("/proc/sys/kernel")).unwrap().open(Path::new("ostype")).unwrap();
        assert!(matches!(own.trusted(&[0]), Err(FileDenied::NotRegular)));
    }

    #[test]
    fn only_the_very_file_is_removed() {
        let folder = Folder::new();
        let owner = fs::metadata(folder.file()).unwrap().uid();
        let found = folder.open("in/side/file").unwrap();
        assert!(matches!(found.remove(owner + 1), Err(FileDenied::Owner(_))));
        fs::rename(folder.file(), folder.0.join("moved")).unwrap();
        symlink("../../moved", folder.file()).unwrap();
        assert!(matches!(found.remove(owner), Err(FileDenied::Other)));
        assert!(folder.file().symlink_metadata().is_ok() && folder.0.join("moved").exists());
        fs::remove_file(folder.file()).unwrap();
        fs::rename(folder.0.join("moved"), folder.file()).unwrap();
        found.remove(owner).unwrap();
        assert!(!folder.file().exists());
    }

    #[test]
    fn the_temporary_folder_may_be_only_roots_link() {
        let folder = Folder::new();
        symlink("in", folder.0.join("tmp")).unwrap();
        let is_roots = fs::symlink_metadata(folder.0.join("tmp")).unwrap().uid() == 0;
        let temporary = Root::at(&folder.0).unwrap().temporary();
        assert_eq!(temporary.is_some_and(|tmp| tmp.open(Path::new("side/file")).is_ok()), is_roots);
    }

    #[test]
    fn a_process_has_the_rights_of_a_user() {
        assert_eq!(user_of(Pid(std::process::id())), Some(own_user()));
        assert_eq!(user_of(Pid(u32::MAX)), None);
    }
}
