//! Reads one file of allocations while its program writes it.
//!
//! Nothing is mapped: if the program truncates a file, the read returns an error instead of raising a signal.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{Ordering, fence};

use nyquist_alloc::protocol::{CLOSED, FREED, NEVER_USED, RING_START, TABLE, TABLE_ENTRIES, header};
use nyquist_convert::allocation_file::{AllocationDecoder, AllocationHeader};
use nyquist_convert::event::{Event, EventKind, HeapContents, HeapId, Pid, Tid, Timestamp};
use nyquist_convert::marker_file::Period;
use nyquist_convert::time_namespace;

use crate::linux::markers::ids::{IdOwner, Ids};
use crate::linux::sys::process::signal;
use crate::linux::{now, target_access};

/// The most bytes that are read of a file at a time.
const MAX_PIECE: u64 = 4 << 20;

/// A file of allocations.
#[derive(Debug)]
pub(super) struct AllocationFile {
    file: File,
    pub(super) name: OsString,
    pub(super) pid: Pid,
    heap: HeapId,
    is_foreign: bool,
    ahead_ns: i64,
    capacity: u64,
    distance: u64,
    /// How far the ring has been read. The place in the file is for the program; it is not trusted.
    read: u64,
    decoder: AllocationDecoder,
    is_readable: bool,
    /// Whether C++'s operators of the program are not seen.
    pub(super) operators_not_seen: bool,
    pub(super) lost_allocations: u64,
    pub(super) lost_frees: u64,
    /// How many of them were lost when it was last asked.
    noted_lost_frees: u64,
}

/// The program waits no more for room.
impl Drop for AllocationFile {
    fn drop(&mut self) {
        // A program that has ended ignores this.
        let _ = self.file.write_all_at(&CLOSED.to_le_bytes(), header::READ as u64);
    }
}

/// Why a file is not read.
#[derive(Debug)]
pub(super) enum FileDenied {
    /// It is not ready.
    NotYet,
    /// It has no allocations, or is another user's.
    NoAllocations,
}

impl AllocationFile {
    /// Opens a file.
    pub(super) fn open(
        (file, name): (File, &OsStr),
        heap: HeapId,
        ids: &mut Ids,
    ) -> Result<Self, FileDenied> {
        let bytes = read_header(&file).map_err(|_| FileDenied::NotYet)?;
        // The program writes these bytes last.
        if bytes[..8] == [0; 8] {
            return Err(FileDenied::NotYet);
        }
        let header = AllocationHeader::parse(&bytes).ok_or(FileDenied::NoAllocations)?;
        let pid = match ids.writer(&file, (header.pid, header.pid_namespace)) {
            IdOwner::Is(pid) => pid,
            IdOwner::No => return Err(FileDenied::NoAllocations),
            IdOwner::NotYet => return Err(FileDenied::NotYet),
        };
        Ok(Self {
            file,
            name: name.to_owned(),
            pid,
            heap,
            is_foreign: ids.is_foreign(header.pid_namespace),
            ahead_ns: time_namespace::ahead_ns(pid, &target_access::targets()),
            capacity: header.capacity,
            distance: header.distance,
            read: 0,
            decoder: AllocationDecoder::new(pid, heap, header.distance),
            is_readable: true,
            operators_not_seen: header.operators_not_seen,
            lost_allocations: 0,
            lost_frees: 0,
            noted_lost_frees: 0,
        })
    }

    /// How many records could not be understood.
    pub(super) fn unreadable(&self) -> u64 {
        self.decoder.unreadable() + u64::from(!self.is_readable)
    }

    /// Reads what was written since the last time, until its events take this much memory. Returns how much they take.
    pub(super) fn read(&mut self, ids: &mut Ids, events: &mut Vec<Event>, most: u64) -> u64 {
        if !self.is_readable {
            return 0;
        }
        self.try_read(ids, events, most).unwrap_or_else(|_| {
            self.is_readable = false;
            0
        })
    }

    fn try_read(&mut self, ids: &mut Ids, events: &mut Vec<Event>, most: u64) -> io::Result<u64> {
        let nonsense = || io::Error::from(io::ErrorKind::InvalidData);
        let header = AllocationHeader::parse(&read_header(&self.file)?).ok_or_else(nonsense)?;
        // The acquire fence makes everything visible that was written before the count.
        fence(Ordering::Acquire);
        (self.lost_allocations, self.lost_frees) = (header.lost_allocations, header.lost_frees);
        let fresh = header.written.checked_sub(self.read).ok_or_else(nonsense)?;
        if header.capacity != self.capacity || fresh > self.capacity {
            return Err(nonsense());
        }
        let (mut left, before, mut memory) = (fresh, events.len(), 0);
        while left > 0 && memory < most {
            left -= self.take_piece(left, ids, events)?;
            memory = memory_of(fresh - left, events.len() - before);
        }
        Ok(memory)
    }

    /// Whether records of frees were lost since the last call.
    pub(super) fn has_lost_frees(&mut self) -> bool {
        std::mem::replace(&mut self.noted_lost_frees, self.lost_frees) != self.lost_frees
    }

    /// Whether nothing is left to read, and its process is gone. The number can be another process's by now: then this
    /// is found out later.
    pub(super) fn is_over(&self) -> bool {
        let is_gone = || signal(self.pid.0, 0).is_err_and(|error| error.raw_os_error() == Some(libc::ESRCH));
        // In this order: what was written before the end is read first.
        is_gone() && !self.has_more()
    }

    /// Whether records were not read.
    pub(super) fn has_more(&self) -> bool {
        let header = read_header(&self.file).ok().and_then(|bytes| AllocationHeader::parse(&bytes));
        self.is_readable && header.is_some_and(|header| header.written > self.read)
    }

    /// Decodes whole records of the next bytes, and gives their room back. Returns how many bytes they had.
    fn take_piece(&mut self, left: u64, ids: &mut Ids, events: &mut Vec<Event>) -> io::Result<u64> {
        let nonsense = || io::Error::from(io::ErrorKind::InvalidData);
        let bytes = self.bytes(left.min(MAX_PIECE))?;
        let whole = whole_records(&bytes);
        if whole == 0 {
            return Err(nonsense());
        }
        let bytes = bytes::Bytes::from(bytes).slice(..whole);
        // Taken only now, because the program has continued to write.
        let period = Period { since: Timestamp(0), until: now(), ahead_ns: self.ahead_ns };
        let (pid, is_foreign, ids) = (self.pid, self.is_foreign, RefCell::new(ids));
        let thread = |tid| Tid(if is_foreign { ids.borrow_mut().thread(pid, tid) } else { tid });
        let is_readable = self.decoder.decode(&bytes, &thread, period, events);
        self.read += whole as u64;
        // A program that has ended ignores this.
        let _ = self.file.write_all_at(&self.read.to_le_bytes(), header::READ as u64);
        if is_readable { Ok(whole as u64) } else { Err(nonsense()) }
    }

    /// The bytes from `read` on. `len` is bounded.
    fn bytes(&self, len: u64) -> io::Result<Vec<u8>> {
        let (start, at) = (RING_START as u64, self.read % self.capacity);
        let first = len.min(self.capacity - at);
        let mut bytes = vec![0; len as usize];
        let (to_end, from_start) = bytes.split_at_mut(first as usize);
        self.file.read_exact_at(to_end, start + at)?;
        self.file.read_exact_at(from_start, start)?;
        Ok(bytes)
    }

    /// What the table says: the blocks that were not freed, and their number. `None` where each allocation is recorded.
    pub(super) fn contents(&self) -> Option<(Event, usize)> {
        if self.distance <= 1 || !self.is_readable {
            return None;
        }
        // An address is in the table before its record has a time. What comes while the table is read is later.
        let time = now();
        let mut table = vec![0; TABLE_ENTRIES * 8];
        self.file.read_exact_at(&mut table, TABLE as u64).ok()?;
        let words = table.chunks_exact(8).filter_map(|word| word.try_into().ok()).map(u64::from_le_bytes);
        let mut addresses: Vec<u64> = words.filter(|word| ![NEVER_USED, FREED].contains(word)).collect();
        addresses.sort_unstable();
        addresses.shrink_to_fit();
        let count = addresses.len();
        let contents = HeapContents { heap: self.heap, addresses };
        Some((Event { time, cpu: None, kind: EventKind::HeapContents(Box::new(contents)) }, count))
    }
}

/// The memory of events and the bytes of their records. A list has twice as much room while it grows.
fn memory_of(bytes: u64, events: usize) -> u64 {
    bytes + (2 * events * size_of::<Event>()) as u64
}

/// The length of the whole records at the start of these bytes.
fn whole_records(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let len = (u64::from_le_bytes(*word) >> 32) as usize;
        if len == 0 || len > bytes.len() - at {
            break;
        }
        at += len;
    }
    at
}

fn read_header(file: &File) -> io::Result<[u8; AllocationHeader::LEN]> {
    let mut bytes = [0; AllocationHeader::LEN];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::linux::sys::beneath::memory_file;
    use nyquist_alloc::protocol::{MAGIC, RING};

    fn put(file: &File, at: usize, word: u64) {
        file.write_all_at(&word.to_le_bytes(), at as u64).unwrap();
    }

    pub(in super::super) fn made(written: u64) -> File {
        let file = memory_file(c"nyquist-test").unwrap();
        file.set_len((RING_START + RING) as u64).unwrap();
        file.write_all_at(&MAGIC, 0).unwrap();
        put(&file, header::PID, std::process::id().into());
        put(&file, header::RATE, 512);
        put(&file, header::CAPACITY, RING as u64);
        put(&file, header::WRITTEN, written);
        file
    }

    fn opened(file: &File) -> AllocationFile {
        AllocationFile::open((file.try_clone().unwrap(), "1-0".as_ref()), HeapId(1), &mut Ids::new()).unwrap()
    }

    #[test]
    fn records_around_the_end_of_the_ring_are_whole() {
        let file = made(80);
        for (word, at) in [2 | 40 << 32, 5, 6, 0x1000, 1].into_iter().cycle().zip((0..80).step_by(8)) {
            put(&file, RING_START + at, word);
        }
        let (mut reader, mut events) = (opened(&file), Vec::new());
        assert_eq!((reader.read(&mut Ids::new(), &mut events, 1) > 80, events.len()), (true, 2));
        // The place that the program sees.
        let mut read = [0; 8];
        file.read_exact_at(&mut read, header::READ as u64).unwrap();
        assert_eq!(u64::from_le_bytes(read), 80);
        assert_eq!((reader.read(&mut Ids::new(), &mut events, 80), reader.unreadable()), (0, 0));
    }

    #[test]
    fn a_program_learns_that_nobody_reads() {
        let file = made(0);
        let read = || {
            let mut read = [0; 8];
            file.read_exact_at(&mut read, header::READ as u64).unwrap();
            u64::from_le_bytes(read)
        };
        let reader = opened(&file);
        assert_eq!(read(), 0);
        drop(reader);
        assert_eq!(read(), CLOSED);
    }

    #[test]
    fn what_makes_no_sense_is_read_no_further() {
        for (written, first) in [(40, 0), (40, 2 | 64 << 32), (40, 2 | 12 << 32), (1 << 40, 2 | 40 << 32)] {
            let file = made(written);
            put(&file, RING_START, first);
            let (mut reader, mut events) = (opened(&file), Vec::new());
            assert_eq!(reader.read(&mut Ids::new(), &mut events, 1 << 40), 0, "{written} {first:#x}");
            assert!(reader.unreadable() > 0 && events.is_empty() && reader.contents().is_none());
        }
        let shorter = made(40);
        let mut reader = opened(&shorter);
        shorter.set_len(100).unwrap();
        assert_eq!(reader.read(&mut Ids::new(), &mut Vec::new(), 80), 0);
    }

    #[test]
    fn lost_frees_are_noted_once() {
        let file = made(0);
        let mut reader = opened(&file);
        assert!(!reader.has_lost_frees());
        put(&file, header::LOST_FREES, 3);
        reader.read(&mut Ids::new(), &mut Vec::new(), 1);
        assert!(reader.has_lost_frees() && !reader.has_lost_frees());
    }

    #[test]
    fn the_table_has_the_blocks_that_were_not_freed() {
        let file = made(0);
        for (place, word) in [(3, 0x3000), (9, FREED), (11, 0x2000)] {
            put(&file, TABLE + place * 8, word);
        }
        let Some((Event { kind: EventKind::HeapContents(contents), .. }, 2)) = opened(&file).contents()
        else {
            panic!()
        };
        assert_eq!(contents.addresses, [0x2000, 0x3000]);
    }
}
