//! What the recorder asks of the processes that it records, as a closed set of requests. Each may have to wait for
//! a file system or for memory that a target itself serves.

use super::process_file::ProcessFile;
use crate::event::{Mapping, Pid, Tid};
use crate::files::opened::FileDenied;
use crate::files::view::MountView;
use nyquist_system::{HeldFile, OpenRoot};
use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Opens files of processes, and reads their memory.
pub(crate) trait TargetAccess: Debug + Send + Sync {
    /// Which files a process sees at paths. `None` if it has ended, may not be inspected, or does not answer.
    fn view(&self, pid: Pid) -> Option<MountView>;

    /// The file of a mapping, for a process with this view. `None` if the view is another one by now.
    fn open_mapping(&self, mapping: &Mapping, pid: Pid, mounts: MountView) -> Option<FoundFile>;

    /// The jitdump of a mapping.
    fn open_dump(&self, mapping: &Mapping, pid: Pid, how: DumpAccess) -> Result<HeldFile, FileDenied>;

    /// The perf map of a process of this user. If `may_come`, it may not exist yet.
    fn open_map(&self, pid: Pid, user: Option<u32>, may_come: bool) -> Result<FoundMap, FileDenied>;

    /// The marker file of a mapping.
    fn open_marker_file(&self, mapping: &Mapping, pid: Pid) -> Result<HeldFile, FileDenied>;

    /// A memory file of a process, for reading and writing: that with this index among those whose names begin so.
    fn open_memory_file(&self, pid: Pid, name: &str, index: u32) -> Option<File>;

    /// The root folder of a process, if it differs from ours.
    fn root(&self, pid: Pid) -> Option<OpenRoot>;

    /// Copies a process's memory from an address on, up to the first unreadable byte. Returns the number of
    /// bytes.
    fn read_memory(&self, pid: Pid, address: u64, out: &mut [u8]) -> usize;

    /// The text of the mappings of a process, or of that of a thread with this number: at most this many bytes.
    fn mappings(&self, pid: Pid, most: u64) -> Vec<u8>;

    /// The writable memory around an address of a process, as far as it is one mapping.
    fn writable_at(&self, pid: Pid, address: u64) -> Option<Range<u64>>;

    /// A file of a process's folder in `/proc`, or of the folder of one of its threads.
    fn process_file(&self, pid: Pid, tid: Option<Tid>, file: ProcessFile) -> io::Result<Vec<u8>>;

    /// The beginning of a process's command line, of at most [`COMMAND_LINE_BYTES`].
    fn command_line(&self, pid: Pid) -> Vec<u8>;

    /// The beginning of the file of a process's program, of at most [`PROGRAM_START_BYTES`].
    fn program_start(&self, pid: Pid) -> Vec<u8>;

    /// Whether a process belongs to another user, who may withhold its files and its memory.
    fn may_withhold(&self, _pid: Pid) -> bool {
        false
    }

    /// Notes that a process gave the caller no access to itself, unless that is known already.
    fn note_silence(&self, _pid: Pid) {}

    /// Messages to the user about processes that gave no answer, a sentence each.
    fn sentences(&self) -> Vec<String> {
        Vec::new()
    }

    /// Gives up the rights that the user who started the recording does not have.
    fn give_up_rights(&self) {}

    /// Ends all access.
    fn end(&self) {}
}

/// The most bytes that are read of a command line.
pub(crate) const COMMAND_LINE_BYTES: usize = 64 << 10;

/// The bytes that are read of a program's file: its ELF header.
pub(crate) const PROGRAM_START_BYTES: usize = 64;

/// How a jitdump is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DumpAccess {
    /// The user of the process, if that is known and the process may have ended.
    pub(crate) user: Option<u32>,
    /// The view of the process.
    pub(crate) mounts: MountView,
    /// Whether the file is removed from its folder.
    pub(crate) unlink: bool,
}

/// A mapped file that was found.
#[derive(Debug)]
pub(crate) struct FoundFile {
    pub(crate) file: HeldFile,
    /// Whether we see it at its path, too.
    pub(crate) is_here: bool,
}

/// A perf map.
#[derive(Debug)]
pub(crate) enum FoundMap {
    /// It is held open, because the process and its folders may be gone when the names are needed.
    Open(HeldFile),
    /// It will be in this folder.
    Expected(Arc<dyn MapFolder>),
}

/// The folder in which a process will write its perf map.
pub(crate) trait MapFolder: Debug + Send + Sync {
    /// Opens the map, if it is trusted for a process of this user.
    fn open(&self, name: &Path, user: Option<u32>) -> Result<HeldFile, FileDenied>;
}
