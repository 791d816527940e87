//! Threads that wait because somebody has stopped them, or has frozen their control group. They still report
//! the system call that they were in.

use std::fs;
use std::path::{Component, Path};

use nyquist_convert::ProcessFile;
use nyquist_convert::event::WaitReason;

use crate::linux::{proc, target_access};
use nyquist_system::read_kernel_text;

/// The mount point of the hierarchy that freezes groups in version 1 of control groups.
const FREEZER: &str = "/sys/fs/cgroup/freezer";

/// Why a thread of a process is suspended, if it is.
pub(crate) fn suspension(pid: u32, tid: u32) -> Option<WaitReason> {
    match proc::state(tid)? {
        'T' | 't' => Some(WaitReason::Stopped),
        'S' => is_frozen_at(&place(pid, tid)?).then_some(WaitReason::Frozen),
        // Version 1 freezes threads in an uninterruptible sleep.
        'D' => is_group_frozen(pid, Path::new(FREEZER)).then_some(WaitReason::Frozen),
        _ => None,
    }
}

/// Whether a thread that sleeps in this function of the kernel is frozen (version 2 of control groups). The
/// compiler puts `do_freezer_trap` into `get_signal`, which has no other sleep of this kind.
fn is_frozen_at(place: &str) -> bool {
    matches!(place, "do_freezer_trap" | "get_signal")
}

/// The function of the kernel in which a thread sleeps; `0` if this process may not know.
pub(super) fn place(pid: u32, tid: u32) -> Option<String> {
    let place = target_access::process_file(pid, Some(tid), ProcessFile::WaitChannel).ok()?;
    String::from_utf8(place).ok()
}

/// Whether a process's group in a hierarchy of version 1 is frozen. A group's state includes its ancestors'.
fn is_group_frozen(pid: u32, hierarchy: &Path) -> bool {
    let Ok(groups) = read_kernel_text(format!("/proc/{pid}/cgroup")) else { return false };
    let Some(group) = freezer_group(&groups) else { return false };
    let state = fs::read_to_string(hierarchy.join(group).join("freezer.state"));
    state.is_ok_and(|state| state.trim_end() == "FROZEN")
}

/// The group of the freezer in `/proc/PID/cgroup`, as a relative path. `None` for the root, which cannot be
/// frozen, and for a path that leaves the hierarchy.
fn freezer_group(groups: &str) -> Option<&Path> {
    let path = groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|controller| controller == "freezer").then_some(path)
    })?;
    let path = Path::new(path.strip_prefix('/')?);
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    (is_inside && !path.as_os_str().is_empty()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_group_of_the_freezer_is_found() {
        let groups = "9:name=systemd:/x\n6:freezer:/a/b\n0::/z\n";
        assert_eq!(freezer_group(groups), Some(Path::new("a/b")));
        for none in ["6:freezer:/\n", "0::/z\n", "6:freezer:/../x\n", "nonsense\n"] {
            assert_eq!(freezer_group(none), None, "{none}");
        }
    }

    #[test]
    fn a_stopped_process_is_told_from_a_sleeping_one() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id();
        while proc::state(pid) != Some('S') {
            std::thread::yield_now();
        }
        let sleeping = suspension(pid, pid);
        Command::new("kill").args(["-STOP", &pid.to_string()]).status().unwrap();
        while proc::state(pid) != Some('T') {
            std::thread::yield_now();
        }
        let stopped = suspension(pid, pid);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((sleeping, stopped), (None, Some(WaitReason::Stopped)));
        assert_eq!(suspension(pid, pid), None);
    }
}
