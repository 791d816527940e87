//! The control group of a command by which the kernel filters events.

use std::os::fd::AsFd as _;
use std::path::Path;
use std::{fs, io};

use super::cgroup::{self, LeafGroup};
use super::sys::event::{self, Subject, perf_event_attr};

/// The file with the controllers that a group's children have. Writing `+NAME` and `-NAME` to it changes them.
const OF_CHILDREN: &str = "cgroup.subtree_control";
/// The file with the controllers that can be enabled for a group's children.
const AVAILABLE: &str = "cgroup.controllers";
/// Only groups below the root have this file.
const BELOW_THE_ROOT: &str = "cgroup.type";

/// Makes a group, moves a process into it, and makes sure that the kernel filters events by it. `cpu` is any CPU
/// that is online.
///
/// # Errors
/// The kernel's, or a sentence about what the machine's administrator can do.
pub(super) fn of_command(pid: u32, cpu: u32) -> io::Result<LeafGroup> {
    let leaf = LeafGroup::create()?;
    leaf.admit(pid)?;
    if filters(&leaf, cpu) {
        return Ok(leaf);
    }
    let mount = cgroup::mount_of_events()?;
    let is_root = !mount.join(BELOW_THE_ROOT).exists();
    if is_root && apply_implicit_controllers(&mount).is_ok() && filters(&leaf, cpu) {
        return Ok(leaf);
    }
    Err(io::Error::other(
        "the kernel filters no events by new groups until a controller has been enabled in the root group: `echo +pids > /sys/fs/cgroup/cgroup.subtree_control`, as root and outside of containers",
    ))
}

/// Whether the kernel knows the group as one by which it filters events. Other errors show when events are opened.
fn filters(leaf: &LeafGroup, cpu: u32) -> bool {
    let mut attr = perf_event_attr {
        type_: perf_event_open_sys::bindings::PERF_TYPE_SOFTWARE,
        config: u64::from(perf_event_open_sys::bindings::PERF_COUNT_SW_DUMMY),
        ..perf_event_attr::default()
    };
    attr.set_disabled(1);
    let opened = event::open(attr, Subject::Group(leaf.file().as_fd()), cpu);
    opened.err().and_then(|error| error.raw_os_error()) != Some(libc::ENOENT)
}

/// Makes the kernel apply the controllers that are always enabled in version 2, such as the one that filters events,
/// to the groups below the root.
///
/// The kernel does so when the root's set of controllers changes, and not at the start of the system (Linux 6.18,
/// `cgroup_apply_control`). So where no program has ever enabled a controller, groups lack them. Enabling any
/// controller and disabling it again leaves the set as it was.
fn apply_implicit_controllers(root: &Path) -> io::Result<()> {
    let set = root.join(OF_CHILDREN);
    if !fs::read_to_string(&set)?.trim().is_empty() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let available = fs::read_to_string(root.join(AVAILABLE))?;
    let controller = cheapest(&available).ok_or(io::ErrorKind::NotFound)?;
    fs::write(&set, format!("+{controller}"))?;
    fs::write(&set, format!("-{controller}"))
}

/// The controller that costs the least while it is enabled: one that only counts processes, if there is one.
fn cheapest(available: &str) -> Option<&str> {
    let names = || available.split_ascii_whitespace();
    names().find(|name| *name == "pids").or_else(|| names().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_that_counts_processes_is_taken() {
        assert_eq!(cheapest("cpuset cpu io memory hugetlb pids rdma\n"), Some("pids"));
        assert_eq!(cheapest("hugetlb\n"), Some("hugetlb"));
        assert_eq!(cheapest("\n"), None);
    }

    /// A folder stands in for the file system, which would not change for a test.
    #[test]
    fn only_an_empty_set_of_controllers_is_changed() {
        let root = std::env::temp_dir().join(format!("nyquist-controllers-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let set = |controllers: &str| {
            fs::write(root.join(AVAILABLE), "cpu pids\n").unwrap();
            fs::write(root.join(OF_CHILDREN), controllers).unwrap();
            let result = apply_implicit_controllers(&root);
            (result.is_ok(), fs::read_to_string(root.join(OF_CHILDREN)).unwrap())
        };
        assert_eq!(set("cpu memory\n"), (false, "cpu memory\n".to_owned()));
        // The last word that was written to the file.
        assert_eq!(set("\n"), (true, "-pids".to_owned()));
        fs::remove_dir_all(&root).unwrap();
    }
}
