//! Control groups, by which the kernel filters events: finding them, and making a transient one for the
//! command (cgroups(7)).

use std::fs::{self, File, TryLockError};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;
use std::{ffi::OsString, io};

use super::sys::clock::monotonic_ns;

/// The prefix of the names of our own groups.
const PREFIX: &str = "nyquist-";
/// The file that lists a group's processes. Writing a pid to it moves that process into the group.
const PROCESSES: &str = "cgroup.procs";
/// How many times to try to remove a group whose last processes are still ending, and the time between two
/// tries.
const REMOVALS: u32 = 50;
const BETWEEN_REMOVALS: Duration = Duration::from_millis(2);

/// The mount point of the hierarchy with a controller, such as the one that filters perf events, and the position
/// of a process in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CgroupHierarchy {
    mount: PathBuf,
    own: PathBuf,
}

impl CgroupHierarchy {
    fn of_this_process() -> io::Result<Self> {
        Self::of_process("self", b"perf_event")?.ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                "no cgroup file system is mounted that filters perf events",
            )
        })
    }

    /// The hierarchy with a controller, and the position of a process in it. `process` is its folder in
    /// `/proc`.
    fn of_process(process: &str, controller: &[u8]) -> io::Result<Option<Self>> {
        let mounts = fs::read("/proc/self/mountinfo")?;
        let groups = fs::read(format!("/proc/{process}/cgroup"))?;
        Ok(Self::parse(controller, &mounts, &groups))
    }

    /// Finds the hierarchy in `/proc/self/mountinfo` and `/proc/PID/cgroup`. If a version 1 hierarchy has
    /// the controller, the one of version 2 does not have it.
    fn parse(controller: &[u8], mounts: &[u8], groups: &[u8]) -> Option<Self> {
        let lines = || mounts.split(|byte| *byte == b'\n').filter_map(CgroupMount::parse);
        let version_1 = lines().find(|mount| mount.kind == b"cgroup" && has_word(mount.options, controller));
        let mount = version_1.or_else(|| lines().find(|mount| mount.kind == b"cgroup2"))?;
        let is_ours = |controllers: &[u8]| match mount.kind {
            b"cgroup2" => controllers.is_empty(),
            _ => has_word(controllers, controller),
        };
        let own = groups.split(|byte| *byte == b'\n').find_map(|line| {
            let mut fields = line.splitn(3, |byte| *byte == b':').skip(1);
            let controllers = fields.next()?;
            is_ours(controllers).then_some(fields.next()?)
        })?;
        // The mount may show only a part of the hierarchy. If this process is outside it, no group can be
        // made.
        let below = Path::new(&path(own)).strip_prefix(path(mount.root)).ok()?.to_owned();
        let below = below.strip_prefix("/").unwrap_or(&below);
        let escapes = below.components().any(|part| part.as_os_str() == "..");
        let point = PathBuf::from(path(mount.point));
        (!escapes).then(|| Self { own: point.join(below), mount: point })
    }
}

/// A line of mountinfo (proc_pid_mountinfo(5)).
struct CgroupMount<'a> {
    root: &'a [u8],
    point: &'a [u8],
    kind: &'a [u8],
    options: &'a [u8],
}

impl<'a> CgroupMount<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let mut rest = fields.skip_while(|field| field != b"-").skip(1);
        let kind = rest.next()?;
        Some(Self { root, point, kind, options: rest.nth(1)? })
    }
}

fn has_word(list: &[u8], word: &[u8]) -> bool {
    list.split(|byte| *byte == b',').any(|part| part == word)
}

/// Decodes a path in which the kernel writes blanks, tabs, newlines and backslashes as three octal digits.
fn path(escaped: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some((&byte, after)) = rest.split_first() {
        let digits =
            after.first_chunk::<3>().filter(|digits| byte == b'\\' && digits.iter().all(u8::is_ascii_digit));
        let number = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(number.unwrap_or(byte));
        rest = if number.is_some() { &after[3..] } else { after };
    }
    OsString::from_vec(bytes)
}

/// The folders of a process's group and of the groups above it that are visible, in the hierarchy that limits CPU
/// time, and the mount point of that. `process` is its folder in `/proc`.
pub(crate) fn groups_with_cpu_limits(process: &str) -> Option<(PathBuf, Vec<PathBuf>)> {
    let CgroupHierarchy { mount, own } = CgroupHierarchy::of_process(process, b"cpu").ok()??;
    let groups = own.ancestors().take_while(|group| group.starts_with(&mount));
    let groups = groups.map(Path::to_owned).collect();
    Some((mount, groups))
}

/// The mount point of the hierarchy of control groups by which the kernel filters events.
///
/// # Errors
/// If no such hierarchy is mounted, or the list of mounts cannot be read.
pub fn mount_of_events() -> io::Result<PathBuf> {
    Ok(CgroupHierarchy::of_this_process()?.mount)
}

/// Opens the folder of a group: a path in the hierarchy, as in `/proc/PID/cgroup`, or in the file system.
pub(crate) fn open(group: &Path) -> io::Result<(PathBuf, File)> {
    let mount = CgroupHierarchy::of_this_process()?.mount;
    let in_hierarchy = mount.join(group.strip_prefix("/").unwrap_or(group));
    let folder = if group.starts_with(&mount) { group.to_owned() } else { in_hierarchy };
    // Any folder could be named; one without this file is not a group.
    fs::metadata(folder.join(PROCESSES))?;
    let file = File::open(&folder)?;
    Ok((folder, file))
}

/// The processes of a group and of all groups below it.
pub(crate) fn processes(folder: &Path) -> Vec<u32> {
    with_descendants(folder).iter().flat_map(|group| own_processes(group)).collect()
}

fn own_processes(folder: &Path) -> Vec<u32> {
    let list = fs::read_to_string(folder.join(PROCESSES)).unwrap_or_default();
    list.lines().filter_map(|line| line.parse().ok()).collect()
}

/// A group and all below it, with parents before children.
fn with_descendants(folder: &Path) -> Vec<PathBuf> {
    let mut groups = vec![folder.to_owned()];
    let mut at = 0;
    while let Some(group) = groups.get(at) {
        let entries = fs::read_dir(group).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let folders: Vec<_> = folders.map(|entry| entry.path()).collect();
        groups.extend(folders);
        at += 1;
    }
    groups
}

/// A group for one command, below the group of this process. Dropping it removes it; processes that are still
/// in it move to where they would have been without it.
///
/// Its folder is locked while the recorder lives, however it ends, so that the next recorder can recognize
/// what a crashed one has left behind.
#[derive(Debug)]
pub(crate) struct LeafGroup {
    folder: PathBuf,
    file: File,
}

impl LeafGroup {
    /// Makes the group, and removes those that earlier recorders have left behind.
    pub(crate) fn create() -> io::Result<Self> {
        let parent = CgroupHierarchy::of_this_process()?.own;
        remove_stale(&parent);
        let folder = parent.join(format!("{PREFIX}{}-{}", std::process::id(), monotonic_ns()));
        fs::create_dir(&folder)?;
        let locked = File::open(&folder).and_then(|file| file.try_lock().map(|()| file).map_err(Into::into));
        match locked {
            Ok(file) => Ok(Self { folder, file }),
            Err(error) => {
                remove(&folder);
                Err(error)
            }
        }
    }

    /// Moves a process into the group.
    pub(crate) fn admit(&self, pid: u32) -> io::Result<()> {
        fs::write(self.folder.join(PROCESSES), pid.to_string())
    }

    /// Whether the group, or one below it, contains processes.
    pub(crate) fn has_processes(&self) -> bool {
        !processes(&self.folder).is_empty()
    }

    /// The folder that identifies the group to events.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for LeafGroup {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// Removes the groups whose recorder no longer lives.
fn remove_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())
            && let Ok(folder) = File::open(entry.path())
            && !matches!(folder.try_lock(), Err(TryLockError::WouldBlock))
        {
            remove(&entry.path());
        }
    }
}

/// Moves a group's processes up and removes it. Removes groups that the command has made below it if they are
/// empty. If one is not, the group stays until a later recorder finds it empty.
fn remove(folder: &Path) {
    let Some(parent) = folder.parent() else { return };
    for _ in 0..REMOVALS {
        for pid in own_processes(folder) {
            // A process that has ended meanwhile need not be moved.
            let _ = fs::write(parent.join(PROCESSES), pid.to_string());
        }
        for below in with_descendants(folder).iter().skip(1).rev() {
            let _ = fs::remove_dir(below);
        }
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => sleep(BETWEEN_REMOVALS),
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mounts: &str, groups: &str, expected: Option<(&str, &str)>) {
        let found = CgroupHierarchy::parse(b"perf_event", mounts.as_bytes(), groups.as_bytes());
        let expected = expected.map(|(mount, own)| CgroupHierarchy { mount: mount.into(), own: own.into() });
        assert_eq!(found, expected, "{mounts}");
    }

    const UNIFIED: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const HYBRID: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
                          32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                          41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_own_group_is_found_under_any_mount() {
        check(
            UNIFIED,
            "0::/user.slice/a.scope\n",
            Some(("/sys/fs/cgroup", "/sys/fs/cgroup/user.slice/a.scope")),
        );
        check(UNIFIED, "0::/\n", Some(("/sys/fs/cgroup", "/sys/fs/cgroup/")));
        let groups = "9:name=systemd:/x\n1:cpu:/y\n0::/z\n";
        check(HYBRID, groups, Some(("/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/z")));
    }

    #[test]
    fn a_version_1_perf_event_hierarchy_counts() {
        let mounts =
            format!("{HYBRID}50 31 0:40 / /sys/fs/cgroup/perf_event rw - cgroup cgroup rw,perf_event\n");
        let groups = "3:cpu,perf_event:/job\n0::/z\n";
        check(&mounts, groups, Some(("/sys/fs/cgroup/perf_event", "/sys/fs/cgroup/perf_event/job")));
        check(&mounts, "0::/z\n", None);
    }

    #[test]
    fn a_container_sees_a_part_of_the_hierarchy() {
        let mounts = "1 2 0:26 /docker/abc /cg\\040v2 ro - cgroup2 cgroup2 rw\n";
        check(mounts, "0::/docker/abc/job\n", Some(("/cg v2", "/cg v2/job")));
        check(mounts, "0::/elsewhere\n", None);
        check(UNIFIED, "0::/../sibling\n", None);
    }

    #[test]
    fn without_a_hierarchy_there_is_none() {
        check("", "0::/\n", None);
        check("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\nnonsense - -\n", "0::/\n", None);
    }

    #[test]
    fn escapes_are_what_they_stand_for() {
        assert_eq!(path(b"/a\\040b\\134c\\9"), "/a b\\c\\9");
        assert_eq!(path(b"\\777"), "\\777");
    }
}
