//! The perf map of a process, and its contents.

use crate::event::Pid;
use crate::files::opened::{FileDenied, user_of};
use crate::jit::id;
use crate::jit::map_search::inner_pid;
use crate::targets::Targets;
use crate::targets::access::{FoundMap, MapFolder};
use nyquist_object::DebugId;
use nyquist_perf::{Budget, CodeNames};
use nyquist_system::HeldFile;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most bytes that are read of a perf map. That of a large server has some tens of megabytes.
const MAX_SIZE: u64 = 1 << 32;

/// A map that takes longer to read than this is not read again at once.
const QUICK_READ: Duration = Duration::from_millis(50);

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
    Open(HeldFile),
    /// It will be in this folder, and is trusted if it belongs to this user.
    Expected(Arc<dyn MapFolder>, Option<u32>),
}

impl MapFile {
    /// The perf map of a process that lives, or has just ended. `user` is `None` if the process's user is not
    /// known. If `maps_at_end`, the map may not exist yet.
    pub(crate) fn find(
        targets: &Targets,
        pid: Pid,
        user: Option<u32>,
        maps_at_end: bool,
    ) -> Result<Self, FileDenied> {
        let user = user_of(pid).or(user);
        let inner = inner_pid(pid).unwrap_or(pid.0);
        let path = PathBuf::from(format!("/tmp/perf-{inner}.map"));
        let source = match targets.access().open_map(pid, user, maps_at_end)? {
            FoundMap::Open(file) => Source::Open(file),
            FoundMap::Expected(folder) => Source::Expected(folder, user),
        };
        Ok(Self { path, source, cached: Mutex::default() })
    }

    /// The perf map that a process has left behind, for a recording that is read later.
    pub(crate) fn left_behind(file: HeldFile, path: PathBuf) -> Self {
        Self { path, source: Source::Open(file), cached: Mutex::default() }
    }

    /// The map's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The id of the lib that is made of it. `None` if the file does not exist yet.
    pub(crate) fn id(&self) -> Option<DebugId> {
        match &self.source {
            Source::Open(file) => Some(id::of_map(file.facts().ok()?.id)),
            Source::Expected(..) => None,
        }
    }

    /// The current contents of the map, as far as the budget allows.
    pub(crate) fn read(&self, budget: &Budget) -> Result<Arc<CodeNames>, FileDenied> {
        let opened;
        let file = match &self.source {
            Source::Open(file) => file,
            Source::Expected(folder, user) => {
                let name = self.path.file_name().unwrap_or_default();
                opened = folder.open(Path::new(name), *user)?;
                &opened
            }
        };
        let len = file.current_len().map_err(FileDenied::Unreadable)?;
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = cached.as_ref().filter(|cached| cached.is_current(len)) {
            return Ok(Arc::clone(&current.names));
        }
        // The memory of the old ones is freed first, if nothing else holds them.
        *cached = None;
        let began = Instant::now();
        let text = FromStart { file, at: 0 }.take(len.min(MAX_SIZE));
        let names = Arc::new(CodeNames::read(text, budget).map_err(FileDenied::Unreadable)?);
        let took = began.elapsed();
        *cached = Some(CachedNames { len, names: Arc::clone(&names), read: Instant::now(), took });
        Ok(names)
    }
}

/// Reads a file from its start, independently of the shared position of its descriptor.
struct FromStart<'a> {
    file: &'a HeldFile,
    at: u64,
}

impl Read for FromStart<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(room, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
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
