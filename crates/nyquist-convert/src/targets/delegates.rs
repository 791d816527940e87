//! Answers requests by delegates: other processes of this program, which may wait for what a target withholds.
//!
//! Each user's processes have delegates of their own, so that nobody can withhold the files of others.

use super::access::{DumpAccess, FoundFile, FoundMap, TargetAccess};
use super::delegate::{Delegate, Received, Spawn, Subject};
use super::in_process::InProcess;
use super::message::{Answer, MAX_SHARED, Request};
use super::process_file::ProcessFile;
use super::remote::{RemoteHandle, held_file};
use super::silences::Silences;
use crate::event::{Mapping, Pid, Tid};
use crate::files::opened::FileDenied;
use crate::files::view::MountView;
use nyquist_system::read_kernel_text;
use nyquist_system::{FileExt as _, HeldFile, OpenRoot};
use rustix::process::getuid;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::ops::Range;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

/// The most users with delegates of their own. All further ones share theirs.
const MAX_USERS: usize = 32;

/// The number for all users who have no delegate of their own, and for processes that have ended.
const ALL_OTHERS: u32 = u32::MAX;

/// What a delegate is for. Memory that is withheld does not cost the files that a delegate holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Files,
    Memory,
}

/// Makes the command that starts a delegate.
type Program = Box<dyn Fn() -> Command + Send + Sync>;

/// The delegates of a recorder. Each is started when it is first needed.
pub(super) struct Delegates {
    program: Program,
    spawn: Spawn,
    known: Mutex<Vec<(u32, Work, Arc<Delegate>)>>,
    silences: Arc<Silences>,
    /// Whether only this process, and no other one of its user, may read the memory of the processes that it started.
    reads_memory_itself: bool,
}

impl fmt::Debug for Delegates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delegates").field("known", &self.known).finish_non_exhaustive()
    }
}

impl Delegates {
    pub(super) fn new(program: Program, spawn: Spawn) -> Self {
        Self::noting((program, spawn), Silences::default())
    }

    fn noting((program, spawn): (Program, Spawn), silences: Silences) -> Self {
        let (known, silences) = (Mutex::default(), Arc::new(silences));
        Self { program, spawn, known, silences, reads_memory_itself: only_parents_may_read() }
    }

    /// Asks the delegate for a process. `None` if there is no answer.
    fn ask(&self, subject: Subject, work: Work, request: &Request) -> Option<(Received, Arc<Delegate>)> {
        if self.silences.have(subject.0, subject.1) {
            return None;
        }
        let delegate = self.delegate(real_user(subject.0).unwrap_or(ALL_OTHERS), work)?;
        Some((delegate.ask(subject, request)?, delegate))
    }

    fn delegate(&self, user: u32, work: Work) -> Option<Arc<Delegate>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(.., delegate)| !delegate.is_left());
        let is_known = known.iter().any(|(other, ..)| *other == user);
        let user = if is_known || known.len() < 2 * MAX_USERS { user } else { ALL_OTHERS };
        let found = known.iter().find(|(other, its, _)| (*other, *its) == (user, work));
        if let Some((.., delegate)) = found {
            return Some(Arc::clone(delegate));
        }
        if !self.silences.may_start(user) {
            return None;
        }
        let started = Delegate::start(((self.program)(), self.spawn), user, Arc::clone(&self.silences));
        let delegate = Arc::new(started.inspect_err(|error| self.silences.note_failed_start(error)).ok()?);
        known.push((user, work, Arc::clone(&delegate)));
        Some(delegate)
    }

    fn file(&self, subject: Subject, request: &Request) -> Result<(HeldFile, bool), FileDenied> {
        let (received, delegate) = self.ask(subject, Work::Files, request).ok_or(FileDenied::Absent)?;
        held_file(received, &delegate, subject.0)
    }

    /// Reads as much memory as one answer can have.
    fn read_part(&self, pid: Pid, address: u64, out: &mut [u8]) -> usize {
        let request = Request::Memory { pid, address, len: out.len() as u64 };
        match self.ask((pid, None), Work::Memory, &request) {
            Some(((Answer::Bytes(bytes), _), _)) => {
                let read = bytes.len().min(out.len());
                out[..read].copy_from_slice(&bytes[..read]);
                read
            }
            Some(((Answer::Shared(len), Some(file)), _)) => {
                let len = usize::try_from(len).unwrap_or(usize::MAX).min(out.len());
                let read = File::from(file).read_exact_at(&mut out[..len], 0);
                if read.is_ok() { len } else { 0 }
            }
            _ => 0,
        }
    }

    fn bytes(&self, pid: Pid, work: Work, request: &Request) -> Vec<u8> {
        self.try_bytes(pid, work, request).unwrap_or_default()
    }

    fn try_bytes(&self, pid: Pid, work: Work, request: &Request) -> io::Result<Vec<u8>> {
        match self.ask((pid, None), work, request) {
            Some(((Answer::Bytes(bytes), _), _)) => Ok(bytes),
            Some(((Answer::Shared(len), Some(file)), _)) => {
                let mut bytes = Vec::new();
                File::from(file).take(len).read_to_end(&mut bytes)?;
                Ok(bytes)
            }
            Some(((Answer::Refused(FileDenied::Unreadable(error)), _), _)) => Err(error),
            _ => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

impl TargetAccess for Delegates {
    fn view(&self, pid: Pid) -> Option<MountView> {
        match self.ask((pid, None), Work::Files, &Request::View(pid))?.0.0 {
            Answer::View(view) => Some(view),
            _ => None,
        }
    }

    fn open_mapping(&self, mapping: &Mapping, pid: Pid, mounts: MountView) -> Option<FoundFile> {
        let request = Request::OpenMapping(mapping.clone(), mounts);
        let (file, is_here) = self.file((pid, Some(mounts)), &request).ok()?;
        Some(FoundFile { file, is_here })
    }

    fn open_dump(&self, mapping: &Mapping, pid: Pid, how: DumpAccess) -> Result<HeldFile, FileDenied> {
        let request = Request::OpenDump(mapping.clone(), how);
        Ok(self.file((pid, Some(how.mounts)), &request)?.0)
    }

    fn open_map(&self, pid: Pid, user: Option<u32>, may_come: bool) -> Result<FoundMap, FileDenied> {
        let request = Request::OpenMap { pid, user, may_come };
        let (received, delegate) = self.ask((pid, None), Work::Files, &request).ok_or(FileDenied::Absent)?;
        if let Answer::Held(folder) = received.0 {
            return Ok(FoundMap::Expected(Arc::new(RemoteHandle::new(delegate, pid, folder))));
        }
        held_file(received, &delegate, pid).map(|(file, _)| FoundMap::Open(file))
    }

    fn open_marker_file(&self, mapping: &Mapping, pid: Pid) -> Result<HeldFile, FileDenied> {
        Ok(self.file((pid, None), &Request::OpenMarkerFile(mapping.clone()))?.0)
    }

    fn open_memory_file(&self, pid: Pid, name: &str, index: u32) -> Option<File> {
        if !self.may_withhold(pid) {
            return InProcess::default().open_memory_file(pid, name, index);
        }
        let request = Request::OpenMemoryFile { pid, name: name.to_owned(), index };
        match self.ask((pid, None), Work::Files, &request)?.0 {
            (Answer::File { held: None, .. }, Some(file)) => Some(file.into()),
            _ => None,
        }
    }

    fn root(&self, pid: Pid) -> Option<OpenRoot> {
        let (received, delegate) = self.ask((pid, None), Work::Files, &Request::Root(pid))?;
        let Answer::Held(root) = received.0 else { return None };
        let root = RemoteHandle::new(delegate, pid, root);
        Some(OpenRoot::elsewhere(format!("/proc/{}/root", pid.0), Arc::new(root)))
    }

    fn read_memory(&self, pid: Pid, address: u64, out: &mut [u8]) -> usize {
        if self.reads_memory_itself {
            return InProcess::default().read_memory(pid, address, out);
        }
        let mut done = 0;
        while done < out.len() {
            let len = (out.len() - done).min(MAX_SHARED);
            let read = self.read_part(pid, address.saturating_add(done as u64), &mut out[done..done + len]);
            done += read;
            if read < len {
                break;
            }
        }
        done
    }

    fn mappings(&self, pid: Pid, most: u64) -> Vec<u8> {
        if !self.may_withhold(pid) {
            return InProcess::default().mappings(pid, most);
        }
        self.bytes(pid, Work::Memory, &Request::Mappings { pid, most })
    }

    fn writable_at(&self, pid: Pid, address: u64) -> Option<Range<u64>> {
        match self.ask((pid, None), Work::Memory, &Request::WritableAt { pid, address })?.0.0 {
            Answer::Range(range) => Some(range),
            _ => None,
        }
    }

    /// A process of the recorder's own user is read by the recorder: who withholds it only harms himself, and only an
    /// ancestor may read some of these files (Yama).
    fn process_file(&self, pid: Pid, tid: Option<Tid>, file: ProcessFile) -> io::Result<Vec<u8>> {
        if !self.may_withhold(pid) {
            return file.read_here(pid, tid);
        }
        self.try_bytes(pid, Work::Memory, &Request::ProcessFile { pid, tid, file })
    }

    fn command_line(&self, pid: Pid) -> Vec<u8> {
        self.bytes(pid, Work::Files, &Request::CommandLine(pid))
    }

    fn program_start(&self, pid: Pid) -> Vec<u8> {
        self.bytes(pid, Work::Files, &Request::ProgramStart(pid))
    }

    fn may_withhold(&self, pid: Pid) -> bool {
        real_user(pid) != Some(getuid().as_raw())
    }

    fn note_silence(&self, pid: Pid) {
        if !self.silences.have(pid, None) {
            self.silences.note(real_user(pid).unwrap_or(ALL_OTHERS), pid, None);
        }
    }

    fn sentences(&self) -> Vec<String> {
        self.silences.sentences()
    }

    fn give_up_rights(&self) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (.., delegate) in known {
            delegate.ask((Pid(0), None), &Request::GiveUpRights);
        }
    }

    fn end(&self) {
        for (.., delegate) in self.known.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            delegate.end();
        }
    }
}

/// The user who started a process. A program with the rights of its file's owner is still that user's.
fn real_user(pid: Pid) -> Option<u32> {
    let status = read_kernel_text(format!("/proc/{}/status", pid.0)).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    numbers.split_whitespace().next()?.parse().ok()
}

/// Whether the kernel lets only the ancestors of a process read its memory (Yama), of which a delegate is none.
fn only_parents_may_read() -> bool {
    const CAP_SYS_PTRACE: u64 = 1 << 19;
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let rights = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap_or_default();
    let rights = u64::from_str_radix(rights.trim(), 16).unwrap_or_default();
    scope.trim().parse().unwrap_or(0) >= 1 && rights & CAP_SYS_PTRACE == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    const PATIENCE: Duration = Duration::from_millis(100);

    /// Delegates that never answer.
    fn silent() -> Delegates {
        let program = || {
            let mut command = Command::new("sleep");
            command.arg("60");
            command
        };
        Delegates::noting((Box::new(program), Command::spawn), Silences::after(PATIENCE))
    }

    #[test]
    fn who_never_answers_is_left_and_not_asked_again() {
        let delegates = silent();
        let begun = Instant::now();
        let own = Pid(std::process::id());
        assert_eq!(delegates.view(own), None);
        assert!(begun.elapsed() >= PATIENCE);
        let known = delegates.known.lock().unwrap().clone();
        assert!(known.len() == 1 && known[0].2.is_left());
        assert_eq!((delegates.view(own), delegates.sentences().len()), (None, 1));
    }

    #[test]
    fn a_delegate_that_ends_does_not_answer() {
        let delegates = Delegates::new(Box::new(|| Command::new("true")), Command::spawn);
        assert!(delegates.command_line(Pid(std::process::id())).is_empty());
        let missing = Delegates::new(Box::new(|| Command::new("/no/such/program")), Command::spawn);
        assert!(missing.command_line(Pid(std::process::id())).is_empty());
        assert_eq!((delegates.sentences().len(), missing.sentences().len()), (1, 1));
    }
}
