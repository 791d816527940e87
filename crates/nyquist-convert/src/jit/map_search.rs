//! Finds the perf map of a process, and decides whether it is trusted.

use crate::event::Pid;
use crate::files::opened::{FileDenied, OpenedFile, Root, own_user};
use crate::targets::access::FoundMap;
use nyquist_system::read_kernel_text;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The ticks per second in `/proc/PID/stat` (`USER_HZ`, the same on every Linux).
const TICKS: u64 = 100;

/// The perf map of a process of this user that lives, or has just ended. If `may_come`, it may not exist yet.
pub(crate) fn find(pid: Pid, user: Option<u32>, may_come: bool) -> Result<FoundMap, FileDenied> {
    let inner = inner_pid(pid).unwrap_or(pid.0);
    // Some agents write it outside of the process's namespaces.
    let places = [(Root::of_process(pid), inner), (Root::own(), pid.0)];
    let folders = places.into_iter().filter_map(|(root, number)| Some((root?.temporary()?, number)));
    let mut why = FileDenied::Absent;
    let mut expected = None;
    for (folder, number) in folders {
        match open_own(pid, &folder, &name_of(number), user) {
            Ok(found) => return Ok(FoundMap::Open(found.file.into())),
            Err(denied) if !why.deserves_message() => why = denied,
            Err(_) => {}
        }
        if number == inner {
            expected.get_or_insert(folder);
        }
    }
    let expected = expected.filter(|_| may_come && !why.deserves_message());
    expected.map(|folder| FoundMap::Expected(Arc::new(folder))).ok_or(why)
}

/// The file's name in the folder for temporary files.
pub(crate) fn name_of(pid: u32) -> PathBuf {
    PathBuf::from(format!("perf-{pid}.map"))
}

/// The process's number in its own namespace.
pub(crate) fn inner_pid(pid: Pid) -> Option<u32> {
    let status = read_kernel_text(format!("/proc/{}/status", pid.0)).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().last()?.parse().ok()
}

/// Opens a perf map, unless the pid is reused and the file is that of its former process.
fn open_own(pid: Pid, folder: &Root, name: &Path, user: Option<u32>) -> Result<OpenedFile, FileDenied> {
    let found = folder.open(name)?;
    let modified =
        found.file.metadata().and_then(|metadata| metadata.modified()).map_err(FileDenied::Unreadable)?;
    if start_time(pid).is_some_and(|start| modified + Duration::from_secs(1) < start) {
        return Err(FileDenied::Absent);
    }
    trusted(found, user)
}

/// If the process's user is not known, the recording user is assumed.
pub(crate) fn trusted(found: OpenedFile, user: Option<u32>) -> Result<OpenedFile, FileDenied> {
    found.trusted(&[user.unwrap_or_else(own_user)])
}

/// When a process began; `None` if it has ended.
fn start_time(pid: Pid) -> Option<SystemTime> {
    let stat = read_kernel_text(format!("/proc/{}/stat", pid.0)).ok()?;
    // The name is in brackets and may contain anything. Field 22 is the 20th behind it (proc_pid_stat(5)).
    let after_name = &stat[stat.rfind(')')? + 1..];
    let ticks: u64 = after_name.split_whitespace().nth(19)?.parse().ok()?;
    let boot = fs::read_to_string("/proc/stat").ok()?;
    let boot: u64 = boot.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    Some(UNIX_EPOCH + Duration::from_secs(boot) + Duration::from_millis(ticks.saturating_mul(1000 / TICKS)))
}
