//! Opening the memory files of processes that run.
//!
//! They are opened through links in `/proc`. A process can replace the target of such a link by any other
//! file at any time. So the target is first opened with `O_PATH`, which calls no file system. It is opened
//! only if it is in the kernel's own file system for memory.

use crate::event::{MappedFile, Mapping, Pid};
use crate::files::identity::has_identity;
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open as open_path};
use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The most descriptors of a process that are checked.
const MAX_DESCRIPTORS: usize = 1 << 16;

/// Opens the memory file of a mapping: as the process's program, by its mapping, which takes privileges, or by a
/// descriptor that the process still has.
pub(crate) fn open_mapped(mapping: &Mapping, pid: Pid) -> Option<File> {
    let folder = PathBuf::from(format!("/proc/{}", pid.0));
    let end = mapping.start.0.saturating_add(mapping.len);
    let of_mapping = folder.join(format!("map_files/{:x}-{end:x}", mapping.start.0));
    if mapping.identity == MappedFile::Unknown {
        return open(&of_mapping);
    }
    let descriptors = descriptors(&folder.join("fd"), &mapping.path);
    let mut files =
        [folder.join("exe"), of_mapping].into_iter().chain(descriptors).filter_map(|it| open(&it));
    files.find(|file| has_identity(file, &mapping.identity))
}

/// The descriptors in a folder of `/proc` that are files of that name.
fn descriptors(folder: &Path, name: &str) -> impl Iterator<Item = PathBuf> + use<> {
    let name = PathBuf::from(name);
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_DESCRIPTORS);
    entries.map(|entry| entry.path()).filter(move |path| fs::read_link(path).is_ok_and(|it| it == name))
}

/// Opens a memory file of a process for reading and writing: that with this index among those whose names begin so.
pub(crate) fn open_named(pid: Pid, name: &str, index: usize) -> Option<File> {
    let entries = fs::read_dir(format!("/proc/{}/fd", pid.0)).ok()?.flatten().take(MAX_DESCRIPTORS);
    let named = entries.filter_map(|entry| hold(&entry.path())).filter(|held| has_name(held, name));
    let held = named.skip(index).take(1).next()?;
    File::options().read(true).write(true).open(own_link(&held)).ok()
}

/// Opens the target of a link if it is a memory file.
fn open(link: &Path) -> Option<File> {
    let file = File::open(own_link(&hold(link)?)).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

/// Holds the target of a link if it is a memory file.
fn hold(link: &Path) -> Option<OwnedFd> {
    let held = open_path(link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    (mount_of(&held)? == own_mount()?).then_some(held)
}

/// Whether the name of a memory file, as it was made, begins so.
fn has_name(held: &OwnedFd, name: &str) -> bool {
    fs::read_link(own_link(held)).is_ok_and(|link| {
        link.to_str().and_then(|link| link.strip_prefix("/memfd:")?.strip_prefix(name)).is_some()
    })
}

fn own_link(held: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", held.as_raw_fd())
}

/// The number of the mount that has all memory files.
fn own_mount() -> Option<u64> {
    static MOUNT: OnceLock<Option<u64>> = OnceLock::new();
    *MOUNT.get_or_init(|| mount_of(&memfd_create("nyquist", MemfdFlags::CLOEXEC).ok()?))
}

/// The number of the mount that an open file is in (proc_pid_fdinfo(5)).
fn mount_of(file: impl AsFd) -> Option<u64> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_fd().as_raw_fd())).ok()?;
    info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_object::{Avma, FileOffset};
    use std::os::unix::fs::MetadataExt as _;

    /// A memory file of this process, and the mapping that it would have.
    fn memory_file(name: &str) -> (File, Mapping) {
        let file = File::from(memfd_create(name, MemfdFlags::CLOEXEC).unwrap());
        let inode = file.metadata().unwrap().ino();
        let mapping = Mapping {
            pid: Some(Pid(std::process::id())),
            start: Avma(0x1000),
            len: 0x1000,
            offset: FileOffset(0),
            path: format!("/memfd:{name} (deleted)"),
            identity: MappedFile::Inode { major: 0, minor: 1, inode, generation: 0 },
        };
        (file, mapping)
    }

    #[test]
    fn a_memory_file_is_opened_by_a_descriptor() {
        let (file, mapping) = memory_file("opened");
        let (_other, _) = memory_file("opened");
        let pid = Pid(std::process::id());
        let inode = |file: File| file.metadata().unwrap().ino();
        assert_eq!(open_mapped(&mapping, pid).map(inode), Some(file.metadata().unwrap().ino()));
        drop(file);
        assert!(open_mapped(&mapping, pid).is_none(), "it is not open any more");
    }

    #[test]
    fn memory_files_are_opened_by_name() {
        let pid = Pid(std::process::id());
        let name = format!("named-{}", pid.0);
        let made = [memory_file(&name).0, memory_file(&name).0];
        let mut found: Vec<u64> = (0..)
            .map_while(|index| open_named(pid, &name, index))
            .map(|it| it.metadata().unwrap().ino())
            .collect();
        let mut inodes = made.map(|file| file.metadata().unwrap().ino());
        found.sort_unstable();
        inodes.sort_unstable();
        assert_eq!(found, inodes);
        let path = std::env::temp_dir().join(format!("memfd:{name}"));
        let plain = File::create(&path).unwrap();
        fs::remove_file(path).unwrap();
        assert!(open_named(pid, &name, 2).is_none(), "{plain:?} is no memory file");
    }

    #[test]
    fn what_is_no_memory_file_is_not_opened() {
        let plain = File::open("/etc/passwd").unwrap();
        assert!(open(Path::new(&format!("/proc/self/fd/{}", plain.as_raw_fd()))).is_none());
        assert!(open(Path::new("/proc/self/exe")).is_none());
        assert!(open(Path::new("/dev/zero")).is_none());
    }
}
