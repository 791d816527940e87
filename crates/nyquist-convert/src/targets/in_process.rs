//! Answers requests in this process: for imports, for tests, and in the processes that answer those of a recorder.

use super::access::{
    COMMAND_LINE_BYTES, DumpAccess, FoundFile, FoundMap, MapFolder, PROGRAM_START_BYTES, TargetAccess,
};
use super::process_file::ProcessFile;
use crate::event::{Mapping, Pid, Tid};
use crate::files::marker_file;
use crate::files::opened::{FileDenied, Root, user_of};
use crate::files::roots::ProcessRoots;
use crate::files::view::{MountView, ProcessView, is_here};
use crate::jit::map_search;
use crate::modules::mapped_file::{open_mapped, open_mapped_dump};
use crate::modules::memfd;
use nyquist_system::{FileExt as _, HeldFile, OpenRoot};
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Asks the kernel itself. A file system that does not answer stops the calling thread.
#[derive(Debug)]
pub(crate) struct InProcess {
    roots: ProcessRoots,
    memory: MemoryCalls,
}

/// How the memory of a process is read.
#[derive(Clone, Copy, Debug)]
pub struct MemoryCalls {
    /// Copies memory from an address on, up to the first unreadable byte. Returns the number of bytes.
    pub read: fn(Pid, u64, &mut [u8]) -> usize,
    /// The writable memory around an address, as far as it is one mapping.
    pub writable_at: fn(Pid, u64) -> Option<Range<u64>>,
}

impl Default for InProcess {
    fn default() -> Self {
        // Only recorders look for writable memory.
        Self::reading(MemoryCalls { read: read_proc, writable_at: |_, _| None })
    }
}

impl InProcess {
    /// The same, which reads memory by other system calls.
    pub(crate) fn reading(memory: MemoryCalls) -> Self {
        Self { roots: ProcessRoots::default(), memory }
    }
}

impl TargetAccess for InProcess {
    fn view(&self, pid: Pid) -> Option<MountView> {
        let seen = ProcessView::of(pid);
        seen.root.is_some().then_some(seen.mounts)
    }

    fn open_mapping(&self, mapping: &Mapping, pid: Pid, mounts: MountView) -> Option<FoundFile> {
        let file = open_mapped(mapping, pid, &same_view(pid, mounts)?)?;
        let is_here = mounts == MountView::Ours || is_here(&file, &mapping.path);
        Some(FoundFile { file: file.into(), is_here })
    }

    fn open_dump(&self, mapping: &Mapping, pid: Pid, how: DumpAccess) -> Result<HeldFile, FileDenied> {
        let seen = same_view(pid, how.mounts).ok_or(FileDenied::Absent)?;
        let found = open_mapped_dump(mapping, pid, how.user, &seen)?;
        if how.unlink {
            // A file that cannot be removed is only left behind.
            let _ = user_of(pid).or(how.user).map(|user| found.remove(user));
        }
        Ok(found.file.into())
    }

    fn open_map(&self, pid: Pid, user: Option<u32>, may_come: bool) -> Result<FoundMap, FileDenied> {
        map_search::find(pid, user, may_come)
    }

    fn open_marker_file(&self, mapping: &Mapping, pid: Pid) -> Result<HeldFile, FileDenied> {
        Ok(marker_file::open(mapping, pid)?.into())
    }

    fn open_memory_file(&self, pid: Pid, name: &str, index: u32) -> Option<File> {
        memfd::open_named(pid, name, index as usize)
    }

    fn root(&self, pid: Pid) -> Option<OpenRoot> {
        self.roots.of(pid)
    }

    fn read_memory(&self, pid: Pid, address: u64, out: &mut [u8]) -> usize {
        (self.memory.read)(pid, address, out)
    }

    fn mappings(&self, pid: Pid, most: u64) -> Vec<u8> {
        let mut text = Vec::new();
        // What was read before an error is as good as before the end.
        let _ = File::open(format!("/proc/{}/maps", pid.0))
            .and_then(|file| file.take(most).read_to_end(&mut text));
        text
    }

    fn writable_at(&self, pid: Pid, address: u64) -> Option<Range<u64>> {
        (self.memory.writable_at)(pid, address)
    }

    fn process_file(&self, pid: Pid, tid: Option<Tid>, file: ProcessFile) -> io::Result<Vec<u8>> {
        file.read_here(pid, tid)
    }

    fn command_line(&self, pid: Pid) -> Vec<u8> {
        beginning(&format!("/proc/{}/cmdline", pid.0), COMMAND_LINE_BYTES)
    }

    fn program_start(&self, pid: Pid) -> Vec<u8> {
        beginning(&format!("/proc/{}/exe", pid.0), PROGRAM_START_BYTES)
    }
}

impl MapFolder for Root {
    fn open(&self, name: &Path, user: Option<u32>) -> Result<HeldFile, FileDenied> {
        Ok(map_search::trusted(Root::open(self, name)?, user)?.file.into())
    }
}

/// The view of a process, unless it is another one than was seen before: a process can change it at any time.
fn same_view(pid: Pid, mounts: MountView) -> Option<ProcessView> {
    let seen = ProcessView::of(pid);
    (seen.root.is_none() || seen.mounts == mounts).then_some(seen)
}

/// Reads memory as a file of `/proc`.
fn read_proc(pid: Pid, address: u64, out: &mut [u8]) -> usize {
    let Ok(memory) = File::open(format!("/proc/{}/mem", pid.0)) else { return 0 };
    let mut done = 0;
    while done < out.len() {
        match memory.read_at(&mut out[done..], address.saturating_add(done as u64)) {
            Ok(read) if read > 0 => done += read,
            _ => break,
        }
    }
    done
}

/// The first bytes of a file.
fn beginning(path: &str, most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most as u64).read_to_end(&mut bytes));
    if read.is_ok() { bytes } else { Vec::new() }
}

/// The access to targets that this process has itself.
pub(crate) fn access() -> Arc<dyn TargetAccess> {
    Arc::new(InProcess::default())
}
