//! The folders of control groups: the group of this process, and those of recorders.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::expect::{Stop, skip};
use super::running_targets::is_alive;

/// How many probes were made: tests that run at once make folders of different names.
static PROBES: AtomicU32 = AtomicU32::new(0);

/// The folder of this process's control group in the hierarchy of version 2.
pub(crate) fn own_group() -> Result<PathBuf, Stop> {
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let mounts = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].map(Path::new);
    let mount = mounts.into_iter().find(|mount| mount.join("cgroup.controllers").exists());
    let Some(mount) = mount else { return skip("no cgroup file system of version 2 is mounted") };
    let folder = mount.join(own);
    let probe = PROBES.fetch_add(1, Ordering::Relaxed);
    let probe = folder.join(format!("probe-of-the-tests-{}-{probe}", std::process::id()));
    if fs::create_dir(&probe).is_err() {
        return skip("the cgroup file system cannot be written to");
    }
    fs::remove_dir(&probe)?;
    Ok(folder)
}

/// The groups of recorders, with the recorders' process ids.
fn groups() -> Result<Vec<(PathBuf, u32)>, Stop> {
    let entries = fs::read_dir(own_group()?)?.flatten();
    let group = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.strip_prefix("nyquist-")?.split('-').next()?.parse().ok()?;
        Some((entry.path(), pid))
    };
    Ok(entries.filter_map(group).collect())
}

/// The groups of one recorder.
pub(crate) fn groups_of(recorder: u32) -> Result<Vec<PathBuf>, Stop> {
    let own = groups()?.into_iter().filter(|(_, pid)| *pid == recorder);
    Ok(own.map(|(path, _)| path).collect())
}

/// The groups that recorders have created and not removed. The groups of recorders that still run are left
/// out.
pub(crate) fn leaves() -> Result<Vec<PathBuf>, Stop> {
    let left = groups()?.into_iter().filter(|(_, pid)| !is_alive(*pid));
    Ok(left.map(|(path, _)| path).collect())
}

/// The processes of a group.
pub(crate) fn processes_of(group: &Path) -> Result<Vec<u32>, anyhow::Error> {
    let list = fs::read_to_string(group.join("cgroup.procs"))?;
    list.lines().map(|line| line.parse().map_err(Into::into)).collect()
}

/// A group whose memory can be limited, of version 1 or 2. It is removed at the end.
pub(crate) struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// Makes a group below this process's own; `None` if there are no such groups here.
    pub(crate) fn create(name: &str) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let first = own.lines().find_map(|line| line.split_once(":memory:/"));
        let above = first.map(|(_, own)| Path::new("/sys/fs/cgroup/memory").join(own));
        let folder = above.or_else(|| own_group().ok())?.join(format!("tests-{name}-{}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        let group = Self(folder);
        (group.0.join("memory.limit_in_bytes").exists() || group.0.join("memory.max").exists())
            .then_some(group)
    }

    /// The file that takes the ids of processes.
    pub(crate) fn processes(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }

    /// Allows no more memory than is used now.
    pub(crate) fn close(&self) {
        let used = fs::read_to_string(self.0.join("memory.usage_in_bytes"));
        let used = used.or_else(|_| fs::read_to_string(self.0.join("memory.current"))).unwrap_or_default();
        for file in ["memory.limit_in_bytes", "memory.max"] {
            let file = self.0.join(file);
            if file.exists() {
                // It may be used for more than that by now.
                drop(fs::write(file, used.trim()));
            }
        }
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        drop(fs::remove_dir(&self.0));
    }
}
