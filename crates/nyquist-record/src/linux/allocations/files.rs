//! All files of allocations of a command and its children.

use std::fs::File;

use nyquist_alloc::protocol::EXTENSION;
use nyquist_convert::event::{Event, HeapId};

use super::file::{AllocationFile, FileDenied};
use crate::linux::markers::folder_reader::{FolderReader, MAX_FILES, RingState};
use crate::linux::markers::ids::Ids;

/// What was read, and what is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocationSummary {
    /// How many processes have written a file.
    pub processes: usize,
    /// How many sampled allocations were lost, because the ring or the table was full.
    pub lost_allocations: u64,
    /// How many records of frees were lost. The blocks are known to be freed nevertheless, but not when.
    pub lost_frees: u64,
    /// How many records or files could not be understood.
    pub unreadable: u64,
    /// How many processes had no space for their records.
    pub without_space: u64,
}

/// The files that are read.
#[derive(Debug)]
pub(super) struct AllocationFiles {
    files: Vec<AllocationFile>,
    ids: Ids,
    refused: u64,
    /// How many files had no space when the folder was last looked at.
    empty: u64,
}

impl AllocationFiles {
    pub(super) fn new() -> Self {
        Self { files: Vec::new(), ids: Ids::new(), refused: 0, empty: 0 }
    }

    /// Notes that the folder is looked at again.
    pub(super) fn begin_scan(&mut self) {
        self.empty = 0;
    }

    /// Reads what was written since the last time. Returns whether there was anything.
    pub(super) fn read(&mut self, events: &mut Vec<Event>, _last: bool) -> bool {
        self.ids.begin_poll();
        let mut read = 0;
        for file in &mut self.files {
            read += file.read(&mut self.ids, events);
        }
        read > 0
    }

    /// Adds what is left of each heap.
    pub(super) fn finish(&mut self, events: &mut Vec<Event>) -> AllocationSummary {
        events.extend(self.files.iter().filter_map(AllocationFile::contents));
        let sum =
            |count: fn(&AllocationFile) -> u64| self.files.iter().map(count).fold(0, u64::saturating_add);
        AllocationSummary {
            processes: self.files.len(),
            lost_allocations: sum(|file| file.lost_allocations),
            lost_frees: sum(|file| file.lost_frees),
            unreadable: sum(AllocationFile::unreadable).saturating_add(self.refused),
            without_space: self.empty,
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
