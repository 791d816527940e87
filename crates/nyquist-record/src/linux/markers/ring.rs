//! Reading one marker file while its program writes it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{Ordering, fence};

use nyquist_convert::event::{Event, Pid, Tid, Timestamp};
use nyquist_convert::marker_file::{Decoder, FileHeader, OpenIntervals, Period};
use nyquist_tracing::protocol::header;

use super::ids;
use crate::linux::now;
use crate::linux::sys::clock;

/// A marker file.
#[derive(Debug)]
pub(super) struct Ring {
    file: File,
    pid: Pid,
    /// How far the program's clock is ahead of ours.
    ahead_ns: i64,
    capacity: u64,
    /// How far the file has been read. The file's own count is for the program; it is not believed.
    read: u64,
    pub(super) lost: u64,
    decoder: Decoder,
    readable: bool,
}

/// Why a file is not read.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It is not ready, or cannot be opened.
    NotYet,
    /// It is no marker file, or not one of the folder's own.
    NoMarkers,
    /// Its process is not known.
    Stranger,
}

impl Ring {
    /// Opens a file of the folder, which must be its owner's and no link to anything else: it is written to.
    pub(super) fn open(path: &Path, owner: u32) -> Result<Self, Refusal> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = options.open(path).map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP | libc::ENXIO) => Refusal::NoMarkers,
            _ => Refusal::NotYet,
        })?;
        let metadata = file.metadata().map_err(|_| Refusal::NotYet)?;
        if !metadata.is_file() || metadata.nlink() != 1 || metadata.uid() != owner {
            return Err(Refusal::NoMarkers);
        }
        let header = read_header(&file).map_err(|_| Refusal::NotYet)?;
        // Empty yet: the program writes these bytes last.
        if header[..8] == [0; 8] {
            return Err(Refusal::NotYet);
        }
        let header = FileHeader::parse(&header).ok_or(Refusal::NoMarkers)?;
        let pid = ids::process(header.pid, header.pid_namespace).ok_or(Refusal::Stranger)?;
        Ok(Self {
            file,
            pid,
            ahead_ns: clock::ahead_ns(pid.0),
            capacity: header.capacity,
            read: header.read,
            lost: header.lost,
            decoder: Decoder::new(pid),
            readable: true,
        })
    }

    /// How many records could not be understood.
    pub(super) fn unreadable(&self) -> u64 {
        self.decoder.unreadable() + u64::from(!self.readable)
    }

    /// Reads what was written since the last time. Costs one system call where that is nothing.
    pub(super) fn read(&mut self, since: Timestamp, open: &mut OpenIntervals, events: &mut Vec<Event>) {
        if self.readable && self.try_read(since, open, events).is_none() {
            self.readable = false;
        }
    }

    fn try_read(
        &mut self,
        since: Timestamp,
        open: &mut OpenIntervals,
        events: &mut Vec<Event>,
    ) -> Option<()> {
        let header = FileHeader::parse(&read_header(&self.file).ok()?)?;
        // What was written before the count was is there to be read after it.
        fence(Ordering::Acquire);
        self.lost = header.lost;
        let fresh = header.written.checked_sub(self.read)?;
        if header.capacity != self.capacity || fresh > self.capacity {
            return None;
        }
        if fresh == 0 {
            return Some(());
        }
        let bytes = self.bytes(fresh).ok()?;
        // Only now: the program has gone on writing.
        let period = Period { since, until: now(), ahead_ns: self.ahead_ns };
        let pid = self.pid;
        let thread = |tid| Tid(ids::thread(pid, tid));
        let readable = self.decoder.decode(&bytes, &thread, period, open, events);
        self.read = header.written;
        // The program is told that there is room again; one that has ended does not mind.
        let _ = self.file.write_all_at(&self.read.to_le_bytes(), header::READ as u64);
        readable.then_some(())
    }

    /// The bytes from `read` on. `len` is at most the capacity, which is bounded.
    fn bytes(&self, len: u64) -> io::Result<Vec<u8>> {
        let at = self.read % self.capacity;
        let first = len.min(self.capacity - at);
        let mut bytes = vec![0; len as usize];
        let (to_end, from_start) = bytes.split_at_mut(first as usize);
        self.file.read_exact_at(to_end, header::LEN as u64 + at)?;
        self.file.read_exact_at(from_start, header::LEN as u64)?;
        Ok(bytes)
    }
}

fn read_header(file: &File) -> io::Result<[u8; header::LEN]> {
    let mut bytes = [0; header::LEN];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}
