//! Finding the perf map of a process.

use crate::event::Pid;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How large a perf map may be: one of a large server has some tens of megabytes.
const MAX_SIZE: u64 = 1 << 30;

/// How many ticks a second `/proc/PID/stat` counts in (`USER_HZ`, the same on every Linux).
const TICKS: u64 = 100;

/// A perf map that is still written, or yet to come.
#[derive(Debug)]
pub(crate) struct MapFile {
    /// Its path, as the process sees it.
    path: PathBuf,
    /// Held open: the process may have ended, and its folders with it, when the names are wanted.
    file: Option<File>,
}

impl MapFile {
    /// The perf map of a process that lives, or has just ended. It may not be there yet where `maps_at_end`.
    pub(crate) fn find(pid: Pid, maps_at_end: bool) -> Option<Self> {
        let inner = inner_pid(pid).unwrap_or(pid.0);
        let path = PathBuf::from(format!("/tmp/perf-{inner}.map"));
        let places =
            [format!("/proc/{}/root/tmp/perf-{inner}.map", pid.0), format!("/tmp/perf-{}.map", pid.0)];
        let file = places.iter().find_map(|place| open_own(pid, place));
        (file.is_some() || maps_at_end).then_some(Self { path, file })
    }

    /// The perf map that a process of a recording has left behind, which is read later.
    pub(crate) fn left_behind(file: File, path: PathBuf) -> Self {
        Self { path, file: Some(file) }
    }

    /// The map's path.
    pub(crate) fn path(&self) -> &PathBuf {
        &self.path
    }

    /// What the map holds by now.
    pub(crate) fn read(&self) -> io::Result<Vec<u8>> {
        let opened;
        let file = match &self.file {
            Some(file) => file,
            None => {
                opened = File::open(&self.path)?;
                &opened
            }
        };
        let mut text = Vec::new();
        file.take(MAX_SIZE).read_to_end(&mut text)?;
        Ok(text)
    }
}

/// The process's number in its own namespace.
fn inner_pid(pid: Pid) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.0)).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().last()?.parse().ok()
}

/// Opens a perf map, unless it was left behind by an earlier process of the same number.
fn open_own(pid: Pid, place: &str) -> Option<File> {
    let metadata = fs::metadata(place).ok()?;
    let is_older = || Some(metadata.modified().ok()? + Duration::from_secs(1) < start_time(pid)?);
    if !metadata.is_file() || is_older() == Some(true) {
        return None;
    }
    File::open(place).ok()
}

/// When a process began; `None` if it has ended.
fn start_time(pid: Pid) -> Option<SystemTime> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.0)).ok()?;
    // The name stands in brackets and may hold anything; field 22 is the 20th behind it (proc_pid_stat(5)).
    let after_name = &stat[stat.rfind(')')? + 1..];
    let ticks: u64 = after_name.split_whitespace().nth(19)?.parse().ok()?;
    let boot = fs::read_to_string("/proc/stat").ok()?;
    let boot: u64 = boot.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    Some(UNIX_EPOCH + Duration::from_secs(boot) + Duration::from_millis(ticks.saturating_mul(1000 / TICKS)))
}
