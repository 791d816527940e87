//! Finds the perf map of a process, decides whether it is trusted, and reads it.

use crate::event::Pid;
use crate::files::opened::{OpenedFile, Refusal, Root, own_user, user_of};
use crate::jit::id;
use nyquist_object::DebugId;
use nyquist_perf::{Budget, CodeNames};
use nyquist_system::FileExt as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The most bytes that are read of a perf map. That of a large server has some tens of megabytes.
const MAX_SIZE: u64 = 1 << 32;

/// A map that takes longer to read than this is not read again at once.
const QUICK_READ: Duration = Duration::from_millis(50);

/// The ticks per second in `/proc/PID/stat` (`USER_HZ`, the same on every Linux).
const TICKS: u64 = 100;

/// A perf map that is still being written, or does not exist yet.
#[derive(Debug)]
pub(crate) struct MapFile {
    /// Its path, as the process sees it.
    path: PathBuf,
    source: Source,
    /// The names that were read. Each lib that is made of the file gets its names from here.
    cached: Mutex<Option<CachedNames>>,
}

/// The contents of a perf map, at the time when it was read.
#[derive(Debug)]
struct CachedNames {
    /// How long the file was.
    len: u64,
    names: Arc<CodeNames>,
    /// When it was read, and how long that took.
    read: Instant,
    took: Duration,
}

impl CachedNames {
    /// Whether the names need not be read again from the file, which has `len` bytes now. Old names are also used
    /// while their age is less than the time that reading took. Otherwise a huge map that the program still
    /// writes would be read again for each of its libs.
    fn is_current(&self, len: u64) -> bool {
        self.len == len || (self.took > QUICK_READ && self.read.elapsed() < self.took)
    }
}

#[derive(Debug)]
enum Source {
    /// Held open, because the process and its folders may be gone when the names are needed.
    Open(File),
    /// It will be in this folder, and is trusted if it belongs to this user.
    Expected(Root, Option<u32>),
}

impl MapFile {
    /// The perf map of a process that lives, or has just ended. `user` is `None` if the process's user is not
    /// known. If `maps_at_end`, the map may not exist yet.
    pub(crate) fn find(pid: Pid, user: Option<u32>, maps_at_end: bool) -> Result<Self, Refusal> {
        let user = user_of(pid).or(user);
        let inner = inner_pid(pid).unwrap_or(pid.0);
        let path = PathBuf::from(format!("/tmp/perf-{inner}.map"));
        // Some agents write it outside of the process's namespaces.
        let places = [(Root::of_process(pid), inner), (Root::own(), pid.0)];
        let mut folders = places.into_iter().filter_map(|(root, number)| Some((root?.temporary()?, number)));
        let mut why = Refusal::Absent;
        let mut expected = None;
        let found =
            folders.find_map(|(folder, number)| match open_own(pid, &folder, &name_of(number), user) {
                Ok(found) => Some(found.file),
                Err(refusal) => {
                    if !why.deserves_message() {
                        why = refusal;
                    }
                    if number == inner {
                        expected.get_or_insert(folder);
                    }
                    None
                }
            });
        let source = match (found, expected) {
            (Some(file), _) => Source::Open(file),
            (None, Some(folder)) if maps_at_end && !why.deserves_message() => Source::Expected(folder, user),
            _ => return Err(why),
        };
        Ok(Self { path, source, cached: Mutex::default() })
    }

    /// The perf map that a process has left behind, for a recording that is read later.
    pub(crate) fn left_behind(file: File, path: PathBuf) -> Self {
        Self { path, source: Source::Open(file), cached: Mutex::default() }
    }

    /// The map's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The id of the lib that is made of it. `None` if the file does not exist yet.
    pub(crate) fn id(&self) -> Option<DebugId> {
        match &self.source {
            Source::Open(file) => id::of_map(file),
            Source::Expected(..) => None,
        }
    }

    /// The current contents of the map, as far as the budget allows.
    pub(crate) fn read(&self, budget: &Budget) -> Result<Arc<CodeNames>, Refusal> {
        let opened;
        let file = match &self.source {
            Source::Open(file) => file,
            Source::Expected(folder, user) => {
                let name = self.path.file_name().unwrap_or_default();
                opened = trusted(folder.open(Path::new(name))?, *user)?.file;
                &opened
            }
        };
        let len = file.metadata().map_err(Refusal::Unreadable)?.len();
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = cached.as_ref().filter(|cached| cached.is_current(len)) {
            return Ok(Arc::clone(&current.names));
        }
        // The memory of the old ones is freed first, if nothing else holds them.
        *cached = None;
        let began = Instant::now();
        let text = FromStart { file, at: 0 }.take(len.min(MAX_SIZE));
        let names = Arc::new(CodeNames::read(text, budget).map_err(Refusal::Unreadable)?);
        let took = began.elapsed();
        *cached = Some(CachedNames { len, names: Arc::clone(&names), read: Instant::now(), took });
        Ok(names)
    }
}

/// Reads a file from its start, independently of the shared position of its descriptor.
struct FromStart<'a> {
    file: &'a File,
    at: u64,
}

impl Read for FromStart<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(room, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

fn name_of(pid: u32) -> PathBuf {
    PathBuf::from(format!("perf-{pid}.map"))
}

/// The process's number in its own namespace.
fn inner_pid(pid: Pid) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.0)).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().last()?.parse().ok()
}

/// Opens a perf map, unless the pid is reused and the file is that of its former process.
fn open_own(pid: Pid, folder: &Root, name: &Path, user: Option<u32>) -> Result<OpenedFile, Refusal> {
    let found = folder.open(name)?;
    let modified =
        found.file.metadata().and_then(|metadata| metadata.modified()).map_err(Refusal::Unreadable)?;
    if start_time(pid).is_some_and(|start| modified + Duration::from_secs(1) < start) {
        return Err(Refusal::Absent);
    }
    trusted(found, user)
}

/// If the process's user is not known, the recording user is assumed.
fn trusted(found: OpenedFile, user: Option<u32>) -> Result<OpenedFile, Refusal> {
    found.trusted(&[user.unwrap_or_else(own_user)])
}

/// When a process began; `None` if it has ended.
fn start_time(pid: Pid) -> Option<SystemTime> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.0)).ok()?;
    // The name is in brackets and may contain anything. Field 22 is the 20th behind it (proc_pid_stat(5)).
    let after_name = &stat[stat.rfind(')')? + 1..];
    let ticks: u64 = after_name.split_whitespace().nth(19)?.parse().ok()?;
    let boot = fs::read_to_string("/proc/stat").ok()?;
    let boot: u64 = boot.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    Some(UNIX_EPOCH + Duration::from_secs(boot) + Duration::from_millis(ticks.saturating_mul(1000 / TICKS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_changing_map_is_not_read_for_each_lib() {
        let no_names = || Arc::new(CodeNames::read(io::empty(), &Budget::default()).unwrap());
        let read = |took| CachedNames { len: 7, names: no_names(), read: Instant::now(), took };
        assert!(read(Duration::from_mins(1)).is_current(8));
        assert!(!read(Duration::ZERO).is_current(8) && read(Duration::ZERO).is_current(7));
    }
}
