//! The file systems that are mounted where this process sees them. Those that a user serves are left out.

use nyquist_system::{FileExt as _, FileFacts};
use rustc_hash::FxHashSet;
use rustix::event::Timespec;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{AtFlags, MemfdFlags, StatxFlags, major, memfd_create, minor, statx};
use std::fs::File;

/// The mounts of this process's namespace (proc_pid_mountinfo(5)), which change rarely.
#[derive(Debug)]
pub(super) struct OwnMounts {
    list: Option<File>,
    /// The numbers of mounts, and the devices of their file systems.
    mounts: FxHashSet<u64>,
    devices: FxHashSet<(u32, u32)>,
    /// The device of the kernel's memory files, which no user serves.
    memory: Option<u64>,
}

impl OwnMounts {
    pub(super) fn new() -> Self {
        let memory = memfd_create("nyquist", MemfdFlags::CLOEXEC).ok().map(File::from);
        let mut own = Self {
            list: File::open("/proc/self/mountinfo").ok(),
            mounts: FxHashSet::default(),
            devices: FxHashSet::default(),
            memory: memory.and_then(|file| Some(FileFacts::of(&file).ok()?.id.device)),
        };
        own.read();
        own
    }

    /// No mounts.
    #[cfg(test)]
    pub(super) fn none() -> Self {
        let (mounts, devices) = (FxHashSet::default(), FxHashSet::default());
        Self { list: None, mounts, devices, memory: None }
    }

    /// Whether an open file is in one of them. While it is open, no other file system gets its device's number.
    pub(super) fn have(&mut self, file: &File, facts: &FileFacts) -> bool {
        if self.have_changed() {
            self.read();
        }
        let device = facts.id.device;
        // On some file systems, `stat` shows another device than the mount has.
        let mount = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok();
        let mount = mount.filter(|it| it.stx_mask & StatxFlags::MNT_ID.bits() != 0).map(|it| it.stx_mnt_id);
        self.devices.contains(&(major(device), minor(device)))
            || Some(device) == self.memory
            || mount.is_some_and(|mount| self.mounts.contains(&mount))
    }

    /// The kernel reports a change once for each open list.
    fn have_changed(&self) -> bool {
        let Some(list) = &self.list else { return false };
        let mut poll_list = [PollFd::new(list, PollFlags::PRI)];
        poll(&mut poll_list, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
    }

    fn read(&mut self) {
        self.mounts.clear();
        self.devices.clear();
        let mut text = Vec::new();
        let mut piece = vec![0; 1 << 16];
        while let Some(read) =
            self.list.as_ref().and_then(|list| list.read_at(&mut piece, text.len() as u64).ok())
            && read > 0
        {
            text.extend_from_slice(&piece[..read]);
        }
        for (mount, device) in String::from_utf8_lossy(&text).lines().filter_map(mount) {
            self.mounts.insert(mount);
            self.devices.insert(device);
        }
    }
}

/// The number and the device of a mount whose file system no user serves, of a line of the list.
fn mount(line: &str) -> Option<(u64, (u32, u32))> {
    let (before, after) = line.split_once(" - ")?;
    if after.starts_with("fuse") {
        return None;
    }
    let mut fields = before.split(' ');
    let number = fields.next()?.parse().ok()?;
    let (major, minor) = fields.nth(1)?.split_once(':')?;
    Some((number, (major.parse().ok()?, minor.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_users_file_systems_are_not_ours() {
        let line = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        assert_eq!(mount(line), Some((36, (98, 0))));
        assert_eq!(mount("37 35 0:52 / /home/t/f rw - fuse.sshfs t@host:/ rw,user_id=7"), None);
        assert_eq!(mount("38 35"), None);
    }

    #[test]
    fn our_own_files_and_memory_files_are_ours() {
        let mut own = OwnMounts::new();
        let memory = File::from(memfd_create("test", MemfdFlags::CLOEXEC).unwrap());
        for file in [File::open("/proc/self/status").unwrap(), memory] {
            assert!(own.have(&file, &FileFacts::of(&file).unwrap()));
        }
    }
}
