//! All access to the files and the memory of processes that are recorded. A target can serve both itself, and then
//! never answer. So a recorder lets other processes open and read them (`delegates.rs`), and an import does it itself.

pub(crate) mod access;
#[cfg(target_os = "linux")]
mod answering;
#[cfg(target_os = "linux")]
mod channel;
#[cfg(target_os = "linux")]
mod delegate;
#[cfg(target_os = "linux")]
mod delegates;
mod in_process;
#[cfg(target_os = "linux")]
mod message;
#[cfg(target_os = "linux")]
mod own_mounts;
mod process_file;
#[cfg(target_os = "linux")]
mod remote;
#[cfg(target_os = "linux")]
mod silences;
#[cfg(target_os = "linux")]
mod wire;

#[cfg(target_os = "linux")]
pub use answering::answer_requests;
#[cfg(target_os = "linux")]
pub use delegate::Spawn;
pub use in_process::MemoryCalls;
pub use process_file::ProcessFile;

use crate::event::{Mapping, Pid, Tid};
use crate::files::opened::FileDenied;
use crate::files::view::MountView;
use access::TargetAccess;
use nyquist_system::{HeldFile, OpenRoot};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Access to the files and the memory of processes that are recorded.
#[derive(Clone, Debug)]
pub struct Targets(Arc<dyn TargetAccess>);

impl Default for Targets {
    /// Access by this process itself: for files that nobody withholds.
    fn default() -> Self {
        Self(in_process::access())
    }
}

impl Targets {
    /// Access by other processes, so that this one never waits for a file system or for memory that a target serves.
    /// `program` makes the command that runs [`answer_requests`] on its standard input, and `spawn` starts it. Ctrl-Z
    /// must not stop the new process before exec: this process waits for that (`vfork`), and could not stop meanwhile.
    #[cfg(target_os = "linux")]
    pub fn by_delegates(
        program: impl Fn() -> std::process::Command + Send + Sync + 'static,
        spawn: Spawn,
    ) -> Self {
        Self(Arc::new(delegates::Delegates::new(Box::new(program), spawn)))
    }

    /// Copies a process's memory from an address on, up to the first unreadable byte. Returns the number of bytes.
    pub fn read_memory(&self, pid: Pid, address: u64, out: &mut [u8]) -> usize {
        self.0.read_memory(pid, address, out)
    }

    /// The text of the mappings of a process, or of that of a thread with this number: at most this many bytes. Who
    /// opens or reads it waits for locks that the process can hold for ever.
    pub fn mappings(&self, pid: Pid, most: u64) -> Vec<u8> {
        self.0.mappings(pid, most)
    }

    /// Whether a process belongs to another user, who may withhold its files and its memory.
    pub fn may_withhold(&self, pid: Pid) -> bool {
        self.0.may_withhold(pid)
    }

    /// The writable memory around an address of a process, as far as it is one mapping. The same locks are waited for.
    pub fn writable_at(&self, pid: Pid, address: u64) -> Option<Range<u64>> {
        self.0.writable_at(pid, address)
    }

    /// Reads a file of a process's folder in `/proc`, or of the folder of one of its threads.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] if the process withholds it. Others if it is gone, or may not be read.
    pub fn process_file(&self, pid: Pid, tid: Option<Tid>, file: ProcessFile) -> io::Result<Vec<u8>> {
        self.0.process_file(pid, tid, file)
    }

    /// The beginning of a process's command line: its words, each with a zero byte behind it.
    pub fn command_line(&self, pid: Pid) -> Vec<u8> {
        self.0.command_line(pid)
    }

    /// The beginning of the file of a process's program: its ELF header.
    pub fn program_start(&self, pid: Pid) -> Vec<u8> {
        self.0.program_start(pid)
    }

    /// Whether a process sees other files at paths than the caller: it has a root folder or mounts of its own. `false`
    /// if it has ended, may not be inspected, or does not answer.
    pub fn has_own_root(&self, pid: Pid) -> bool {
        self.0.view(pid).is_some_and(|view| view != MountView::Ours)
    }

    /// Opens the file of a mapping: only if it is the file that was mapped.
    pub fn open_mapping(&self, mapping: &Mapping, pid: Pid) -> Option<HeldFile> {
        let view = self.0.view(pid).unwrap_or_default();
        Some(self.0.open_mapping(mapping, pid, view)?.file)
    }

    /// The root folder of a process, if it differs from the caller's.
    pub fn root(&self, pid: Pid) -> Option<OpenRoot> {
        self.0.root(pid)
    }

    /// Opens the marker file of a mapping, if reading it reveals nothing new to the user of the process.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is none. Others if the file is not that of the mapping, or may not be read.
    pub fn open_marker_file(&self, mapping: &Mapping, pid: Pid) -> io::Result<HeldFile> {
        self.0.open_marker_file(mapping, pid).map_err(|why| match why {
            FileDenied::Absent => io::ErrorKind::NotFound.into(),
            FileDenied::Unreadable(error) => error,
            _ => io::ErrorKind::PermissionDenied.into(),
        })
    }

    /// Opens a memory file of a process for reading and writing: that with this index among those whose names begin so.
    pub fn open_memory_file(&self, pid: Pid, name: &str, index: u32) -> Option<File> {
        self.0.open_memory_file(pid, name, index)
    }

    /// Notes that a process gave the caller no access to itself, unless that is known already.
    pub fn note_silence(&self, pid: Pid) {
        self.0.note_silence(pid);
    }

    /// Messages to the user about processes whose files or memory gave no answer, a sentence each.
    pub fn sentences(&self) -> Vec<String> {
        self.0.sentences()
    }

    /// Gives up the rights that the user who started the recording does not have, also in other processes. What they
    /// hold open stays readable.
    pub fn give_up_rights(&self) {
        self.0.give_up_rights();
    }

    /// Ends the other processes. Files that they hold open cannot be read any more.
    pub fn end(&self) {
        self.0.end();
    }

    pub(crate) fn access(&self) -> &dyn TargetAccess {
        &*self.0
    }
}
