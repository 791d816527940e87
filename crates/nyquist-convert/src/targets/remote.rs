//! What a delegate holds open for this process.

use super::access::MapFolder;
use super::delegate::{Delegate, Received, Subject};
use super::message::{Answer, Handle, MAX_BYTES, Request};
use crate::event::Pid;
use crate::files::opened::FileDenied;
use nyquist_system::{FileFacts, HeldFile, RemoteFile, RemoteRoot};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Something that a delegate holds open for a process, until this is dropped.
#[derive(Debug)]
pub(super) struct RemoteHandle {
    delegate: Arc<Delegate>,
    pid: Pid,
    handle: Handle,
}

impl RemoteHandle {
    pub(super) fn new(delegate: Arc<Delegate>, pid: Pid, handle: Handle) -> Self {
        Self { delegate, pid, handle }
    }

    fn ask(&self, request: &Request) -> io::Result<Received> {
        let subject: Subject = (self.pid, None);
        let silent = || io::Error::new(io::ErrorKind::TimedOut, "its file system does not answer");
        self.delegate.ask(subject, request).ok_or_else(silent)
    }

    fn open(&self, request: &Request) -> Result<HeldFile, FileDenied> {
        let received = self.ask(request).map_err(FileDenied::Unreadable)?;
        held_file(received, &self.delegate, self.pid).map(|(file, _)| file)
    }
}

impl Drop for RemoteHandle {
    fn drop(&mut self) {
        self.delegate.close(self.handle);
    }
}

impl RemoteRoot for RemoteHandle {
    fn open_file(&self, inside: &Path) -> io::Result<HeldFile> {
        let opened = self.open(&Request::OpenInRoot { root: self.handle, path: inside.to_owned() });
        opened.map_err(|why| match why {
            FileDenied::Unreadable(error) => error,
            _ => io::ErrorKind::NotFound.into(),
        })
    }
}

impl MapFolder for RemoteHandle {
    fn open(&self, name: &Path, user: Option<u32>) -> Result<HeldFile, FileDenied> {
        RemoteHandle::open(self, &Request::OpenMapIn { folder: self.handle, name: name.to_owned(), user })
    }
}

/// A file that a delegate reads.
#[derive(Debug)]
struct DelegatedFile {
    handle: RemoteHandle,
    facts: FileFacts,
}

impl RemoteFile for DelegatedFile {
    fn facts(&self) -> FileFacts {
        self.facts
    }

    fn current_len(&self) -> io::Result<u64> {
        match self.handle.ask(&Request::Length(self.handle.handle))?.0 {
            Answer::Length(len) => Ok(len),
            answer => Err(failed(answer)),
        }
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let len = buffer.len().min(MAX_BYTES) as u64;
        match self.handle.ask(&Request::Read { file: self.handle.handle, offset, len })?.0 {
            Answer::Bytes(bytes) => {
                let read = bytes.len().min(buffer.len());
                buffer[..read].copy_from_slice(&bytes[..read]);
                Ok(read)
            }
            answer => Err(failed(answer)),
        }
    }
}

fn failed(answer: Answer) -> io::Error {
    match answer {
        Answer::Refused(FileDenied::Unreadable(error)) => error,
        _ => io::ErrorKind::InvalidData.into(),
    }
}

/// The file of an answer, and whether we see it at its path, too.
pub(super) fn held_file(
    (answer, open): Received,
    delegate: &Arc<Delegate>,
    pid: Pid,
) -> Result<(HeldFile, bool), FileDenied> {
    match (answer, open) {
        (Answer::File { is_here, held: None, .. }, Some(open)) => Ok((File::from(open).into(), is_here)),
        (Answer::File { facts, is_here, held: Some(handle) }, _) => {
            let handle = RemoteHandle::new(Arc::clone(delegate), pid, handle);
            Ok((HeldFile::Elsewhere(Arc::new(DelegatedFile { handle, facts })), is_here))
        }
        (Answer::Refused(why), _) => Err(why),
        _ => Err(FileDenied::Absent),
    }
}
