//! Reads one ring of markers while its program writes it. The ring is a separate file, or a part of the
//! control file.
//!
//! Nothing is mapped: if the program truncates a file, the read returns an error instead of raising a signal.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use nyquist_convert::event::{Event, Pid, Tid, Timestamp};
use nyquist_convert::marker_file::{Decoder, FileHeader, OpenIntervals, Period};
use nyquist_convert::time_namespace;
use nyquist_tracing::protocol::header;

use super::ids::{IdOwner, Ids};
use crate::linux::{now, target_access};

/// A ring of markers.
#[derive(Debug)]
pub(super) struct Ring {
    file: Arc<File>,
    /// The offset of the header in the file.
    at: u64,
    pid: Pid,
    /// Whether its thread ids are those of another pid namespace.
    is_foreign: bool,
    /// How far the program's clock is ahead of this process's.
    ahead_ns: i64,
    capacity: u64,
    /// How far the ring has been read. The count in the file is for the program; it is not trusted.
    read: u64,
    pub(super) lost: u64,
    decoder: Decoder,
    pub(super) state: Readability,
}

/// Whether a ring can still be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readability {
    Readable,
    /// Its content is invalid.
    Unreadable,
    /// Its file was truncated.
    TruncatedStack,
}

/// Why a ring is not read.
#[derive(Debug)]
pub(super) enum RingDenied {
    /// It is not ready, or cannot be opened.
    NotYet,
    /// It is not a ring of markers, or the folder does not own it.
    NoMarkers,
    /// Its process is not known, or belongs to another user.
    UnknownProcess,
}

impl Ring {
    /// Opens the ring at an offset in a file, if its capacity is at most `most` bytes.
    pub(super) fn open(file: Arc<File>, at: u64, most: u64, ids: &mut Ids) -> Result<Self, RingDenied> {
        let header = read_header(&file, at).map_err(|_| RingDenied::NotYet)?;
        // Still empty: the program writes these bytes last.
        if header[..8] == [0; 8] {
            return Err(RingDenied::NotYet);
        }
        let header = FileHeader::parse(&header).ok_or(RingDenied::NoMarkers)?;
        if header.capacity > most {
            return Err(RingDenied::NoMarkers);
        }
        let pid = match ids.writer(&file, (header.pid, header.pid_namespace)) {
            IdOwner::Is(pid) => pid,
            IdOwner::No => return Err(RingDenied::UnknownProcess),
            IdOwner::NotYet => return Err(RingDenied::NotYet),
        };
        Ok(Self {
            file,
            at,
            pid,
            is_foreign: ids.is_foreign(header.pid_namespace),
            ahead_ns: time_namespace::ahead_ns(pid, &target_access::targets()),
            capacity: header.capacity,
            read: header.read,
            lost: header.lost,
            decoder: Decoder::new(pid),
            state: Readability::Readable,
        })
    }

    /// How many bytes of it were read since it was made.
    pub(super) fn position(&self) -> u64 {
        self.read
    }

    /// How many records could not be decoded.
    pub(super) fn unreadable(&self) -> u64 {
        self.decoder.unreadable() + u64::from(self.state == Readability::Unreadable)
    }

    /// Reads what was written since the last time. Costs one system call if nothing was written.
    pub(super) fn read(
        &mut self,
        since: Timestamp,
        ids: &mut Ids,
        open: &mut OpenIntervals,
        events: &mut Vec<Event>,
    ) {
        if self.state == Readability::Readable
            && let Err(error) = self.try_read(since, ids, open, events)
        {
            let is_cut = error.kind() == io::ErrorKind::UnexpectedEof;
            self.state = if is_cut { Readability::TruncatedStack } else { Readability::Unreadable };
        }
    }

    fn try_read(
        &mut self,
        since: Timestamp,
        ids: &mut Ids,
        open: &mut OpenIntervals,
        events: &mut Vec<Event>,
    ) -> io::Result<()> {
        let nonsense = || io::Error::from(io::ErrorKind::InvalidData);
        let header = FileHeader::parse(&read_header(&self.file, self.at)?).ok_or_else(nonsense)?;
        // The acquire fence makes everything visible that was written before the count.
        fence(Ordering::Acquire);
        self.lost = header.lost;
        let fresh = header.written.checked_sub(self.read).ok_or_else(nonsense)?;
        if header.capacity != self.capacity || fresh > self.capacity {
            return Err(nonsense());
        }
        if fresh == 0 {
            return Ok(());
        }
        let bytes = self.bytes(fresh)?;
        // Taken only now, because the program has continued to write.
        let period = Period { since, until: now(), ahead_ns: self.ahead_ns };
        let (pid, is_foreign, ids) = (self.pid, self.is_foreign, RefCell::new(ids));
        let thread = |tid| Tid(if is_foreign { ids.borrow_mut().thread(pid, tid) } else { tid });
        let readable = self.decoder.decode(&bytes, &thread, period, open, events);
        self.read = header.written;
        // Notifies the program that the ring has room again. An ended program ignores this.
        let _ = self.file.write_all_at(&self.read.to_le_bytes(), self.at + header::READ as u64);
        if readable { Ok(()) } else { Err(nonsense()) }
    }

    /// The bytes from `read` on. `len` is at most the capacity, which is bounded.
    fn bytes(&self, len: u64) -> io::Result<Vec<u8>> {
        let (start, at) = (self.at + header::LEN as u64, self.read % self.capacity);
        let first = len.min(self.capacity - at);
        let mut bytes = vec![0; len as usize];
        let (to_end, from_start) = bytes.split_at_mut(first as usize);
        self.file.read_exact_at(to_end, start + at)?;
        self.file.read_exact_at(from_start, start)?;
        Ok(bytes)
    }
}

fn read_header(file: &File, at: u64) -> io::Result<[u8; header::LEN]> {
    let mut bytes = [0; header::LEN];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}
