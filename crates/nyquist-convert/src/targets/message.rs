//! The requests to a delegate, and its answers.

use super::access::DumpAccess;
use super::process_file::ProcessFile;
use super::wire::{MessageReader, MessageWriter, known};
use crate::event::{Mapping, Pid, Tid};
use crate::files::opened::FileDenied;
use crate::files::view::MountView;
use nyquist_system::FileFacts;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// The most bytes of a file or of memory in an answer. The message must fit into a socket's buffer.
pub(super) const MAX_BYTES: usize = 64 << 10;

/// The most bytes of memory in an answer whose bytes are in a file of memory.
pub(super) const MAX_SHARED: usize = 2 << 20;

/// The largest request: a path of 4096 bytes, of which the kernel writes each as four at most, and some numbers.
pub(super) const MAX_REQUEST: usize = 20 << 10;

/// The number of something that a delegate holds open.
pub(super) type Handle = u32;

/// A request. All that are possible are here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    View(Pid),
    OpenMapping(Mapping, MountView),
    OpenDump(Mapping, DumpAccess),
    OpenMap { pid: Pid, user: Option<u32>, may_come: bool },
    OpenMapIn { folder: Handle, name: PathBuf, user: Option<u32> },
    Root(Pid),
    OpenInRoot { root: Handle, path: PathBuf },
    Length(Handle),
    Read { file: Handle, offset: u64, len: u64 },
    Memory { pid: Pid, address: u64, len: u64 },
    CommandLine(Pid),
    ProgramStart(Pid),
    Close(Handle),
    GiveUpRights,
    OpenMarkerFile(Mapping),
    Mappings { pid: Pid, most: u64 },
    WritableAt { pid: Pid, address: u64 },
    ProcessFile { pid: Pid, tid: Option<Tid>, file: ProcessFile },
    OpenMemoryFile { pid: Pid, name: String, index: u32 },
}

/// An answer.
#[derive(Debug)]
pub(super) enum Answer {
    Nothing,
    View(MountView),
    /// A file: its descriptor comes with the message, or it stays with the delegate.
    File {
        facts: FileFacts,
        is_here: bool,
        held: Option<Handle>,
    },
    /// A folder, or a root folder, that stays with the delegate.
    Held(Handle),
    Length(u64),
    Bytes(Vec<u8>),
    /// This many bytes, in a file of memory whose descriptor comes with the message.
    Shared(u64),
    Refused(FileDenied),
    /// Addresses.
    Range(Range<u64>),
}

impl Request {
    /// Whether it has an answer.
    pub(super) fn is_answered(&self) -> bool {
        !matches!(self, Self::Close(_))
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let kind = |kind: u8| MessageWriter::default().byte(kind);
        let path = |path: &PathBuf| path.as_os_str().as_bytes().to_vec();
        match self {
            Self::View(pid) => kind(0).number(pid.0),
            Self::OpenMapping(mapping, mounts) => {
                kind(1).number(mapping.pid.map_or(0, |pid| pid.0)).mapping(mapping).view(*mounts)
            }
            Self::OpenDump(mapping, DumpAccess { user, mounts, unlink }) => {
                let what = kind(2).number(mapping.pid.map_or(0, |pid| pid.0)).mapping(mapping);
                what.user(*user).view(*mounts).byte(u8::from(*unlink))
            }
            Self::OpenMap { pid, user, may_come } => {
                kind(3).number(pid.0).user(*user).byte(u8::from(*may_come))
            }
            Self::OpenMapIn { folder, name, user } => kind(4).number(*folder).bytes(&path(name)).user(*user),
            Self::Root(pid) => kind(5).number(pid.0),
            Self::OpenInRoot { root, path: inside } => kind(6).number(*root).bytes(&path(inside)),
            Self::Length(file) => kind(7).number(*file),
            Self::Read { file, offset, len } => kind(8).number(*file).number(*offset).number(*len),
            Self::Memory { pid, address, len } => kind(9).number(pid.0).number(*address).number(*len),
            Self::CommandLine(pid) => kind(10).number(pid.0),
            Self::ProgramStart(pid) => kind(11).number(pid.0),
            Self::Close(handle) => kind(12).number(*handle),
            Self::GiveUpRights => kind(13),
            Self::OpenMarkerFile(mapping) => {
                kind(14).number(mapping.pid.map_or(0, |pid| pid.0)).mapping(mapping)
            }
            Self::Mappings { pid, most } => kind(15).number(pid.0).number(*most),
            Self::WritableAt { pid, address } => kind(16).number(pid.0).number(*address),
            Self::OpenMemoryFile { pid, name, index } => {
                kind(18).number(pid.0).bytes(name.as_bytes()).number(*index)
            }
            Self::ProcessFile { pid, tid, file } => {
                process_file(kind(17).number(pid.0).user(tid.map(|tid| tid.0)), *file)
            }
        }
        .0
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut from = MessageReader(bytes);
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        Some(match from.byte()? {
            0 => Self::View(from.pid()?),
            1 => {
                let pid = from.pid()?;
                Self::OpenMapping(from.mapping(pid)?, from.view()?)
            }
            2 => {
                let pid = from.pid()?;
                let mapping = from.mapping(pid)?;
                let (user, mounts) = (known(from.user()?), from.view()?);
                Self::OpenDump(mapping, DumpAccess { user, mounts, unlink: from.byte()? == 1 })
            }
            3 => Self::OpenMap { pid: from.pid()?, user: known(from.user()?), may_come: from.byte()? == 1 },
            4 => Self::OpenMapIn {
                folder: from.short()?,
                name: path(from.bytes()?),
                user: known(from.user()?),
            },
            5 => Self::Root(from.pid()?),
            6 => Self::OpenInRoot { root: from.short()?, path: path(from.bytes()?) },
            7 => Self::Length(from.short()?),
            8 => Self::Read { file: from.short()?, offset: from.number()?, len: from.number()? },
            9 => Self::Memory { pid: from.pid()?, address: from.number()?, len: from.number()? },
            10 => Self::CommandLine(from.pid()?),
            11 => Self::ProgramStart(from.pid()?),
            12 => Self::Close(from.short()?),
            13 => Self::GiveUpRights,
            14 => {
                let pid = from.pid()?;
                Self::OpenMarkerFile(from.mapping(pid)?)
            }
            15 => Self::Mappings { pid: from.pid()?, most: from.number()? },
            16 => Self::WritableAt { pid: from.pid()?, address: from.number()? },
            17 => Self::ProcessFile {
                pid: from.pid()?,
                tid: known(from.user()?).map(Tid),
                file: read_process_file(&mut from)?,
            },
            18 => Self::OpenMemoryFile {
                pid: from.pid()?,
                name: String::from_utf8(from.bytes()?.to_vec()).ok()?,
                index: from.short()?,
            },
            _ => return None,
        })
    }
}

/// The number of the links of descriptors, among the files of a process.
const DESCRIPTOR: u8 = u8::MAX;

fn process_file(message: MessageWriter, file: ProcessFile) -> MessageWriter {
    match file {
        ProcessFile::Descriptor(number) => message.byte(DESCRIPTOR).number(number),
        fixed => {
            message.byte(ProcessFile::FIXED.iter().position(|it| *it == fixed).unwrap_or_default() as u8)
        }
    }
}

fn read_process_file(from: &mut MessageReader<'_>) -> Option<ProcessFile> {
    match from.byte()? {
        DESCRIPTOR => Some(ProcessFile::Descriptor(from.short()?)),
        fixed => ProcessFile::FIXED.get(usize::from(fixed)).copied(),
    }
}

impl Answer {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let kind = |kind: u8| MessageWriter::default().byte(kind);
        match self {
            Self::Nothing => kind(0),
            Self::View(view) => kind(1).view(*view),
            Self::File { facts, is_here, held } => kind(2).facts(facts).byte(u8::from(*is_here)).user(*held),
            Self::Held(handle) => kind(3).number(*handle),
            Self::Length(len) => kind(4).number(*len),
            Self::Bytes(bytes) => kind(5).bytes(bytes),
            Self::Refused(denied) => kind(6).denied(denied),
            Self::Shared(len) => kind(7).number(*len),
            Self::Range(range) => kind(8).number(range.start).number(range.end),
        }
        .0
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut from = MessageReader(bytes);
        Some(match from.byte()? {
            0 => Self::Nothing,
            1 => Self::View(from.view()?),
            2 => Self::File { facts: from.facts()?, is_here: from.byte()? == 1, held: known(from.user()?) },
            3 => Self::Held(from.short()?),
            4 => Self::Length(from.number()?),
            5 => Self::Bytes(from.bytes()?.to_vec()),
            6 => Self::Refused(from.denied()?),
            7 => Self::Shared(from.number()?),
            8 => Self::Range(from.number()?..from.number()?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::MappedFile;
    use nyquist_object::{Avma, BuildId, FileOffset};

    fn requests() -> Vec<Request> {
        let inode = MappedFile::Inode { major: 7, minor: 8, inode: 9, generation: u64::MAX };
        let id = MappedFile::BuildId(BuildId::new(&[5; 20]).unwrap());
        let mapping = |identity| Mapping {
            pid: Some(Pid(4)),
            start: Avma(0x1000),
            len: 0x2000,
            offset: FileOffset(3),
            path: "/lib/ü.so".into(),
            identity,
        };
        let other = MountView::Other { mount: 1 << 40, folder: 2 };
        let how = DumpAccess { user: Some(7), mounts: other, unlink: true };
        vec![
            Request::View(Pid(u32::MAX)),
            Request::OpenMapping(mapping(inode), MountView::Ours),
            Request::OpenMapping(mapping(MappedFile::Unknown), other),
            Request::OpenDump(mapping(id), how),
            Request::OpenMap { pid: Pid(1), user: None, may_come: true },
            Request::OpenMapIn { folder: 1, name: "perf-1.map".into(), user: Some(0) },
            Request::Root(Pid(2)),
            Request::OpenInRoot { root: 2, path: "usr/lib".into() },
            Request::Length(3),
            Request::Read { file: 1, offset: u64::MAX, len: 3 },
            Request::Memory { pid: Pid(3), address: 4, len: 5 },
            Request::CommandLine(Pid(6)),
            Request::Mappings { pid: Pid(6), most: 1 << 40 },
            Request::ProgramStart(Pid(7)),
            Request::Close(8),
            Request::GiveUpRights,
            Request::OpenMarkerFile(mapping(MappedFile::Unknown)),
            Request::OpenMemoryFile { pid: Pid(8), name: "nyquist-markers".to_owned(), index: 1 },
            Request::WritableAt { pid: Pid(8), address: u64::MAX },
            Request::ProcessFile { pid: Pid(8), tid: None, file: ProcessFile::Io },
            Request::ProcessFile { pid: Pid(8), tid: Some(Tid(9)), file: ProcessFile::ChildTimeNamespace },
            Request::ProcessFile { pid: Pid(8), tid: None, file: ProcessFile::Descriptor(1023) },
        ]
    }

    #[test]
    fn a_request_arrives_as_it_was_sent() {
        for request in requests() {
            let bytes = request.to_bytes();
            assert_eq!(Request::parse(&bytes), Some(request), "{bytes:?}");
        }
    }

    #[test]
    fn damage_is_no_request_and_no_answer() {
        for request in requests() {
            let bytes = request.to_bytes();
            for len in 0..bytes.len() {
                assert_eq!(Request::parse(&bytes[..len]), None, "{request:?} {len}");
            }
        }
        let huge = [&[5_u8][..], &u64::MAX.to_le_bytes()].concat();
        assert!(Answer::parse(&huge).is_none() && Answer::parse(&[]).is_none());
    }
}
