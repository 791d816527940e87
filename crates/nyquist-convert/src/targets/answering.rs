//! A delegate's side: answers the requests of a recorder, one after the other, until the recorder is gone.

use super::access::{FoundFile, FoundMap, MapFolder, TargetAccess};
use super::channel;
use super::in_process::{InProcess, MemoryCalls};
use super::message::{Answer, Handle, MAX_BYTES, MAX_REQUEST, MAX_SHARED, Request};
use super::own_mounts::OwnMounts;
use crate::event::Pid;
use crate::files::opened::FileDenied;
use nyquist_system::{FileExt as _, HeldFile, OpenRoot};
use rustc_hash::FxHashMap;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Answers the requests that come through a socket, until the other end is gone. `give_up_rights` is called when the
/// recorder has given up its own. `memory` is how memory is read.
///
/// # Errors
/// If the socket is none.
pub fn answer_requests(socket: impl AsFd, give_up_rights: impl Fn(), memory: MemoryCalls) -> io::Result<()> {
    let mut delegate = Answering::new(InProcess::reading(memory));
    let mut buffer = vec![0; MAX_REQUEST];
    loop {
        let (len, _) = channel::receive(&socket, &mut buffer)?;
        let Some(request) = Request::parse(&buffer[..len]).filter(|_| len > 0) else { return Ok(()) };
        if request == Request::GiveUpRights {
            give_up_rights();
        }
        let (answer, file) = delegate.answer(&request);
        if request.is_answered() {
            let file = file.as_ref().and_then(HeldFile::here).map(AsFd::as_fd);
            send(&socket, &answer, file)?;
        }
    }
}

fn send(socket: &impl AsFd, answer: &Answer, file: Option<BorrowedFd<'_>>) -> io::Result<()> {
    channel::send(socket, &answer.to_bytes(), file, true)
}

/// What a delegate holds open for its recorder.
#[derive(Debug)]
enum Held {
    File(Arc<File>),
    Folder(Arc<dyn MapFolder>),
    Root(OpenRoot),
}

#[derive(Debug)]
struct Answering {
    access: InProcess,
    own: OwnMounts,
    held: FxHashMap<Handle, Held>,
    next: Handle,
    /// The room for memory that is read, and the file in which the recorder gets it.
    memory: Vec<u8>,
    shared: Option<HeldFile>,
}

/// An answer, and the file whose descriptor comes with it.
type Reply = (Answer, Option<HeldFile>);

impl Answering {
    fn new(access: InProcess) -> Self {
        let (own, held) = (OwnMounts::new(), FxHashMap::default());
        Self { access, own, held, next: 0, memory: Vec::new(), shared: None }
    }

    fn answer(&mut self, request: &Request) -> Reply {
        let reply = match request {
            Request::OpenMapping(mapping, mounts) => {
                let pid = mapping.pid.unwrap_or(Pid(0));
                let found = self.access.open_mapping(mapping, pid, *mounts);
                found.map(|FoundFile { file, is_here }| self.file(file, is_here))
            }
            Request::OpenDump(mapping, how) => {
                let pid = mapping.pid.unwrap_or(Pid(0));
                let opened = self.access.open_dump(mapping, pid, *how);
                Some(self.opened(opened))
            }
            Request::OpenMarkerFile(mapping) => {
                let opened = self.access.open_marker_file(mapping, mapping.pid.unwrap_or(Pid(0)));
                Some(self.opened(opened))
            }
            Request::OpenMap { pid, user, may_come } => {
                Some(match self.access.open_map(*pid, *user, *may_come) {
                    Ok(FoundMap::Expected(folder)) => (self.hold(Held::Folder(folder)), None),
                    Ok(FoundMap::Open(file)) => self.opened(Ok(file)),
                    Err(why) => self.opened(Err(why)),
                })
            }
            Request::OpenMapIn { folder, name, user } => {
                let folder = self.folder(*folder);
                let opened = folder.map(|folder| folder.open(name, *user));
                opened.map(|opened| self.opened(opened))
            }
            Request::OpenInRoot { root, path } => {
                let root = self.root(*root);
                let opened = root.map(|root| root.open_file(path).map_err(FileDenied::Unreadable));
                opened.map(|opened| self.opened(opened))
            }
            Request::OpenMemoryFile { pid, name, index } => {
                self.access.open_memory_file(*pid, name, *index).and_then(handed_over)
            }
            Request::Memory { pid, address, len } => self.memory(*pid, *address, *len),
            Request::ProcessFile { pid, tid, file } => match self.access.process_file(*pid, *tid, *file) {
                Ok(bytes) => shared(bytes, "process file"),
                Err(error) => Some((refused(error), None)),
            },
            Request::Mappings { pid, most } => shared(self.access.mappings(*pid, *most), "mappings"),
            other => self.plain(other).map(|answer| (answer, None)),
        };
        reply.unwrap_or((Answer::Nothing, None))
    }

    /// The answers without a file.
    fn plain(&mut self, request: &Request) -> Option<Answer> {
        match request {
            Request::View(pid) => self.access.view(*pid).map(Answer::View),
            Request::Root(pid) => self.access.root(*pid).map(|root| self.hold(Held::Root(root))),
            Request::Length(file) => {
                let len = self.file_of(*file)?.metadata().map(|metadata| metadata.len());
                Some(len.map_or_else(refused, Answer::Length))
            }
            Request::Read { file, offset, len } => {
                let file = HeldFile::Here(self.file_of(*file)?);
                let mut bytes = room(*len);
                let read = file.read_at(&mut bytes, *offset);
                Some(read.map_or_else(refused, |read| part(bytes, read)))
            }
            Request::WritableAt { pid, address } => {
                self.access.writable_at(*pid, *address).map(Answer::Range)
            }
            Request::CommandLine(pid) => Some(Answer::Bytes(self.access.command_line(*pid))),
            Request::ProgramStart(pid) => Some(Answer::Bytes(self.access.program_start(*pid))),
            Request::Close(handle) => {
                self.held.remove(handle);
                None
            }
            _ => None,
        }
    }

    /// Memory that is too large for a message comes in a file.
    fn memory(&mut self, pid: Pid, address: u64, len: u64) -> Option<Reply> {
        let len = usize::try_from(len).unwrap_or(MAX_SHARED).min(MAX_SHARED);
        self.memory.resize(len.max(self.memory.len()), 0);
        let room = self.memory.get_mut(..len)?;
        let read = self.access.read_memory(pid, address, room);
        let bytes = room.get(..read)?;
        if read <= MAX_BYTES {
            return Some((Answer::Bytes(bytes.to_vec()), None));
        }
        let make = || Some(HeldFile::from(File::from(memfd_create("memory", MemfdFlags::CLOEXEC).ok()?)));
        self.shared = self.shared.take().or_else(make);
        self.shared.as_ref()?.here()?.write_all_at(bytes, 0).ok()?;
        Some((Answer::Shared(read as u64), self.shared.clone()))
    }

    fn opened(&mut self, opened: Result<HeldFile, FileDenied>) -> Reply {
        match opened {
            Ok(file) => self.file(file, true),
            Err(why) => (Answer::Refused(why), None),
        }
    }

    /// A file is handed over if its file system is one of ours. Of all others, even closing a file can take for ever.
    fn file(&mut self, file: HeldFile, is_here: bool) -> Reply {
        let (Ok(facts), HeldFile::Here(open)) = (file.facts(), &file) else { return (Answer::Nothing, None) };
        if self.own.have(open, &facts) {
            return (Answer::File { facts, is_here, held: None }, Some(file));
        }
        let held = match self.hold(Held::File(Arc::clone(open))) {
            Answer::Held(handle) => Some(handle),
            _ => None,
        };
        (Answer::File { facts, is_here, held }, None)
    }

    fn hold(&mut self, what: Held) -> Answer {
        let handle = self.next;
        self.next = self.next.wrapping_add(1);
        self.held.insert(handle, what);
        Answer::Held(handle)
    }

    fn file_of(&self, handle: Handle) -> Option<Arc<File>> {
        match self.held.get(&handle)? {
            Held::File(file) => Some(Arc::clone(file)),
            _ => None,
        }
    }

    fn folder(&self, handle: Handle) -> Option<Arc<dyn MapFolder>> {
        match self.held.get(&handle)? {
            Held::Folder(folder) => Some(Arc::clone(folder)),
            _ => None,
        }
    }

    fn root(&self, handle: Handle) -> Option<OpenRoot> {
        match self.held.get(&handle)? {
            Held::Root(root) => Some(root.clone()),
            _ => None,
        }
    }
}

/// Bytes, in a file of their own if they are too large for a message.
fn shared(bytes: Vec<u8>, name: &str) -> Option<Reply> {
    if bytes.len() <= MAX_BYTES {
        return Some((Answer::Bytes(bytes), None));
    }
    let file = HeldFile::from(File::from(memfd_create(name, MemfdFlags::CLOEXEC).ok()?));
    file.here()?.write_all_at(&bytes, 0).ok()?;
    Some((Answer::Shared(bytes.len() as u64), Some(file)))
}

/// A file that is the kernel's own, whoever has made it.
fn handed_over(file: File) -> Option<Reply> {
    let file = HeldFile::from(file);
    let facts = file.facts().ok()?;
    Some((Answer::File { facts, is_here: true, held: None }, Some(file)))
}

fn refused(error: io::Error) -> Answer {
    Answer::Refused(FileDenied::Unreadable(error))
}

fn room(len: u64) -> Vec<u8> {
    vec![0; usize::try_from(len).unwrap_or(MAX_BYTES).min(MAX_BYTES)]
}

fn part(mut bytes: Vec<u8>, len: usize) -> Answer {
    bytes.truncate(len);
    Answer::Bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{MappedFile, Mapping};
    use crate::files::view::MountView;
    use nyquist_object::{Avma, FileOffset};
    use std::os::unix::fs::MetadataExt as _;

    /// A request for the file of this program.
    fn request() -> Request {
        let path = std::env::current_exe().unwrap();
        let inode = path.metadata().unwrap().ino();
        let mapping = Mapping {
            pid: Some(Pid(std::process::id())),
            start: Avma(0x1000),
            len: 0x1000,
            offset: FileOffset(0),
            path: path.to_str().unwrap().to_owned(),
            identity: MappedFile::Inode { major: 0, minor: 0, inode, generation: 0 },
        };
        Request::OpenMapping(mapping, MountView::Ours)
    }

    #[test]
    fn a_file_of_our_own_mounts_is_handed_over() {
        let (answer, file) = Answering::new(InProcess::default()).answer(&request());
        assert!(matches!(answer, Answer::File { held: None, is_here: true, .. }), "{answer:?}");
        let inode = file.unwrap().facts().unwrap().id.number;
        assert_eq!(inode, std::env::current_exe().unwrap().metadata().unwrap().ino());
    }

    #[test]
    fn a_file_of_other_mounts_is_read_by_ranges() {
        let mut delegate = Answering::new(InProcess::default());
        delegate.own = OwnMounts::none();
        let (answer, file) = delegate.answer(&request());
        let Answer::File { facts, held: Some(held), .. } = answer else { panic!("{answer:?}") };
        assert!(file.is_none());
        let mut answer = |request| delegate.answer(&request).0;
        assert!(matches!(answer(Request::Length(held)), Answer::Length(len) if len == facts.len));
        let read = |offset, len| Request::Read { file: held, offset, len };
        assert!(matches!(answer(read(1, 3)), Answer::Bytes(bytes) if bytes == b"ELF"));
        let all = answer(read(0, u64::MAX));
        assert!(matches!(all, Answer::Bytes(bytes) if bytes.len() == MAX_BYTES), "a bounded part");
        answer(Request::Close(held));
        assert!(matches!(answer(read(1, 3)), Answer::Nothing), "it is closed");
    }

    #[test]
    fn much_memory_comes_in_a_file() {
        let own = vec![7_u8; MAX_BYTES + 5];
        let (pid, address) = (Pid(std::process::id()), own.as_ptr() as u64);
        let mut delegate = Answering::new(InProcess::default());
        let mut read = |len| delegate.answer(&Request::Memory { pid, address, len });
        assert!(matches!(read(3), (Answer::Bytes(bytes), None) if bytes == [7; 3]));
        let (answer, file) = read(own.len() as u64);
        assert!(matches!(answer, Answer::Shared(len) if len == own.len() as u64), "{answer:?}");
        let mut found = vec![0; own.len()];
        file.unwrap().read_exact_at(&mut found, 0).unwrap();
        assert!(found == own);
    }

    #[test]
    fn mappings_come_as_bytes_or_in_a_file() {
        let pid = Pid(std::process::id());
        let mut delegate = Answering::new(InProcess::default());
        let (answer, _) = delegate.answer(&Request::Mappings { pid, most: 10 });
        assert!(matches!(answer, Answer::Bytes(bytes) if bytes.len() == 10));
        let much = vec![b'x'; MAX_BYTES + 1];
        let (answer, file) = shared(much.clone(), "much").unwrap();
        assert!(matches!(answer, Answer::Shared(len) if len == much.len() as u64), "{answer:?}");
        let mut found = vec![0; much.len()];
        file.unwrap().read_exact_at(&mut found, 0).unwrap();
        assert!(found == much);
    }

    #[test]
    fn a_view_that_has_changed_is_refused() {
        let Request::OpenMapping(mapping, _) = request() else { panic!() };
        let other = MountView::Other { mount: u64::MAX, folder: 1 };
        let (answer, file) =
            Answering::new(InProcess::default()).answer(&Request::OpenMapping(mapping, other));
        assert!(matches!(answer, Answer::Nothing) && file.is_none());
    }
}
