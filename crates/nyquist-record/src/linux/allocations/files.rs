//! All files of allocations of a command and its children.

use std::fs::File;

use nyquist_alloc::protocol::EXTENSION;
use nyquist_convert::event::{Event, HeapId};

use super::file::{AllocationFile, FileDenied};
use crate::linux::markers::folder_reader::{FolderReader, MAX_FILES, RingState};
use crate::linux::markers::ids::Ids;

/// The most memory of events that wait for the converter. What is beyond stays in the files: their programs then lose
/// allocations, which they count. A program can have thousands of files, and write faster than any converter reads.
const MAX_WAITING: u64 = 256 << 20;

/// The most addresses of blocks that were not freed, of all files together. The table of a file has room for 65,536.
const MAX_LIVE: usize = 8 << 20;

/// What was read, and what is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocationSummary {
    /// How many processes have written a file.
    pub processes: usize,
    /// How many sampled allocations were lost, because the ring or the table was full.
    pub lost_allocations: u64,
    /// How many records of frees were lost. The blocks are known to be freed nevertheless, but not when.
    pub lost_frees: u64,
    /// How many records or files could not be understood, or were too many to be read at the end.
    pub unreadable: u64,
    /// How many processes had no space for their records.
    pub without_space: u64,
    /// In how many processes C++'s operators were not seen, because they do not call `malloc`.
    pub without_operators: u64,
}

/// The files that are read.
#[derive(Debug)]
pub(super) struct AllocationFiles {
    files: Vec<AllocationFile>,
    ids: Ids,
    refused: u64,
    /// How many files had no space when the folder was last looked at.
    empty: u64,
    /// The memory of the events that were read and not yet taken, and the most that it may be.
    waiting: u64,
    max_waiting: u64,
    /// The file that is read next.
    next: usize,
}

impl AllocationFiles {
    pub(super) fn new() -> Self {
        Self::within(MAX_WAITING)
    }

    /// Files whose waiting events may take so much memory.
    fn within(max_waiting: u64) -> Self {
        let (files, ids) = (Vec::new(), Ids::new());
        Self { files, ids, refused: 0, empty: 0, waiting: 0, max_waiting, next: 0 }
    }

    /// Notes that the folder is looked at again.
    pub(super) fn begin_scan(&mut self) {
        self.empty = 0;
    }

    /// Reads what was written since the last time, in turns if not all may wait. Returns whether there was anything.
    pub(super) fn read(&mut self, events: &mut Vec<Event>) -> bool {
        self.ids.begin_poll();
        let mut read = 0;
        for _ in 0..self.files.len() {
            let room = self.max_waiting.saturating_sub(self.waiting);
            if room == 0 {
                break;
            }
            let turn = self.next % self.files.len();
            self.next = turn + 1;
            let memory = self.files[turn].read(&mut self.ids, events, room);
            self.waiting += memory;
            read += memory;
        }
        read > 0
    }

    /// Notes that the events were taken.
    pub(super) fn taken(&mut self) {
        self.waiting = 0;
    }

    /// Adds what is left of each heap of which records of frees were lost since the last call.
    pub(super) fn contents_after_losses(&mut self, events: &mut Vec<Event>) {
        let mut live = 0;
        for file in &mut self.files {
            if live <= MAX_LIVE
                && file.has_lost_frees()
                && let Some((event, count)) = file.contents()
            {
                live += count;
                events.push(event);
            }
        }
    }

    /// Adds what is left of each heap.
    pub(super) fn finish(&mut self, events: &mut Vec<Event>) -> AllocationSummary {
        let (mut live, mut left_out) = (0, 0);
        for file in &self.files {
            left_out += u64::from(file.has_more());
            if live > MAX_LIVE {
                left_out += 1;
            } else if let Some((event, count)) = file.contents() {
                live += count;
                events.push(event);
            }
        }
        let sum =
            |count: fn(&AllocationFile) -> u64| self.files.iter().map(count).fold(0, u64::saturating_add);
        AllocationSummary {
            processes: self.files.len(),
            lost_allocations: sum(|file| file.lost_allocations),
            lost_frees: sum(|file| file.lost_frees),
            unreadable: sum(AllocationFile::unreadable).saturating_add(self.refused + left_out),
            without_space: self.empty,
            without_operators: sum(|file| u64::from(file.operators_not_seen)),
        }
    }
}

impl FolderReader for AllocationFiles {
    const EXTENSION: &str = EXTENSION;

    fn take(&mut self, file: File) -> RingState {
        if self.files.len() >= MAX_FILES {
            return RingState::Settled;
        }
        let heap = HeapId(self.files.len() as u64);
        let is_empty = file.metadata().is_ok_and(|status| status.len() == 0);
        self.empty += u64::from(is_empty);
        match AllocationFile::open(file, heap, &mut self.ids) {
            Ok(file) => self.files.push(file),
            Err(FileDenied::NotYet) => return RingState::NotYet,
            Err(FileDenied::NoAllocations) => self.refuse(),
        }
        RingState::Settled
    }

    fn refuse(&mut self) {
        self.refused += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::tests::made;
    use super::*;
    use nyquist_alloc::protocol::{RING, RING_START};
    use std::os::unix::fs::FileExt as _;

    const RECORDS: u64 = (RING / 40) as u64;

    /// A file whose ring is full of records of frees.
    fn full() -> File {
        let file = made(RECORDS * 40);
        let record: Vec<u8> =
            [2 | 40_u64 << 32, 5, 6, 0x1000, 1].iter().flat_map(|word| word.to_le_bytes()).collect();
        file.write_all_at(&record.repeat(RECORDS as usize), RING_START as u64).unwrap();
        file
    }

    #[test]
    fn what_waits_for_the_converter_is_bounded() {
        let (mut files, mut events) = (AllocationFiles::within(3 * RING as u64), Vec::new());
        for _ in 0..3 {
            assert_eq!(files.take(full()), RingState::Settled);
        }
        // The events take more memory than their records. Until they are taken, nothing more is read.
        for unread in [2, 1, 0] {
            assert!(files.read(&mut events) && !files.read(&mut events));
            assert_eq!(files.finish(&mut Vec::new()).unreadable, unread);
            files.taken();
        }
        assert_eq!(events.len() as u64, 3 * RECORDS);
    }
}
