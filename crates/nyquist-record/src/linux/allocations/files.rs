//! All files of allocations of a command and its children.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::time::{Duration, Instant};

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

/// How often to look for processes that are gone.
const LOOK_EVERY: Duration = Duration::from_millis(100);

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
    /// How many files were read so far.
    taken: usize,
    /// The sums of those that are over, whose names are to be removed.
    past: AllocationSummary,
    over: Vec<OsString>,
    next_look: Instant,
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
        Self {
            files: Vec::new(),
            ids: Ids::new(),
            refused: 0,
            taken: 0,
            past: AllocationSummary::default(),
            over: Vec::new(),
            next_look: Instant::now(),
            empty: 0,
            waiting: 0,
            max_waiting,
            next: 0,
        }
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
        if Instant::now() >= self.next_look {
            self.next_look = Instant::now() + LOOK_EVERY;
            self.release(events);
        }
        read > 0
    }

    /// Gives up the files of processes that are gone: their space is needed for those of others. Adds what is left of
    /// their heaps.
    fn release(&mut self, events: &mut Vec<Event>) {
        for mut file in self.files.extract_if(.., |file| file.is_over()) {
            // It has no more records, but what it has lost may not be known yet.
            file.read(&mut self.ids, events, 1);
            if let Some((event, count)) = file.contents() {
                self.waiting += (count * size_of::<u64>()) as u64;
                events.push(event);
            }
            let past = &mut self.past;
            past.lost_allocations = past.lost_allocations.saturating_add(file.lost_allocations);
            past.lost_frees = past.lost_frees.saturating_add(file.lost_frees);
            past.unreadable = past.unreadable.saturating_add(file.unreadable());
            past.without_operators += u64::from(file.operators_not_seen);
            self.over.push(file.name.clone());
        }
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
            processes: self.taken,
            lost_allocations: sum(|file| file.lost_allocations).saturating_add(self.past.lost_allocations),
            lost_frees: sum(|file| file.lost_frees).saturating_add(self.past.lost_frees),
            unreadable: sum(AllocationFile::unreadable)
                .saturating_add(self.past.unreadable + self.refused + left_out),
            without_space: self.empty,
            without_operators: sum(|file| u64::from(file.operators_not_seen))
                .saturating_add(self.past.without_operators),
        }
    }
}

impl FolderReader for AllocationFiles {
    const EXTENSION: &str = EXTENSION;

    fn take(&mut self, file: File, name: &OsStr) -> RingState {
        if self.files.len() >= MAX_FILES {
            return RingState::NotYet;
        }
        let heap = HeapId(self.taken as u64);
        let is_empty = file.metadata().is_ok_and(|status| status.len() == 0);
        self.empty += u64::from(is_empty);
        match AllocationFile::open((file, name), heap, &mut self.ids) {
            Ok(file) => {
                self.files.push(file);
                self.taken += 1;
            }
            Err(FileDenied::NotYet) => return RingState::NotYet,
            Err(FileDenied::NoAllocations) => self.refuse(),
        }
        RingState::Settled
    }

    fn refuse(&mut self) {
        self.refused += 1;
    }

    fn over(&mut self) -> Vec<OsString> {
        std::mem::take(&mut self.over)
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::tests::made;
    use super::*;
    use nyquist_alloc::protocol::{RING, RING_START, TABLE, flag, header};
    use nyquist_convert::event::EventKind;
    use std::os::unix::fs::FileExt as _;
    use std::process::Command;

    const RECORDS: u64 = (RING / 40) as u64;

    /// A file whose ring is full of records of frees.
    fn full() -> File {
        let file = made(RECORDS * 40);
        let record: Vec<u8> =
            [2 | 40_u64 << 32, 5, 6, 0x1000, 1].iter().flat_map(|word| word.to_le_bytes()).collect();
        file.write_all_at(&record.repeat(RECORDS as usize), RING_START as u64).unwrap();
        file
    }

    /// The file of a process that lives stays.
    #[test]
    fn files_of_processes_that_are_gone_are_given_up() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let (mut files, mut events) = (AllocationFiles::new(), Vec::new());
        for (name, pid) in [("1-0", child.id()), ("2-0", std::process::id())] {
            let file = made(0);
            file.write_all_at(&u64::from(pid).to_le_bytes(), header::PID as u64).unwrap();
            file.write_all_at(&0x3000_u64.to_le_bytes(), TABLE as u64).unwrap();
            file.write_all_at(&flag::OPERATORS_NOT_SEEN.to_le_bytes(), header::FLAGS as u64).unwrap();
            // It loses a free after it was read for the last time.
            let other = file.try_clone().unwrap();
            assert_eq!(files.take(file, name.as_ref()), RingState::Settled);
            other.write_all_at(&7_u64.to_le_bytes(), header::LOST_FREES as u64).unwrap();
        }
        files.read(&mut events);
        let left: Vec<_> = files.files.iter().map(|file| file.pid.0).collect();
        assert_eq!((left, files.over()), (vec![std::process::id()], vec!["1-0".into()]));
        // What the first one had not freed is known.
        assert!(matches!(&events[..], [Event { kind: EventKind::HeapContents(_), .. }]), "{events:?}");
        assert_eq!(
            files.finish(&mut events),
            AllocationSummary { processes: 2, lost_frees: 14, without_operators: 2, ..files.past }
        );
        assert!(files.over().is_empty());
        // Heaps have numbers of their own.
        files.take(made(0), "3-0".as_ref());
        files.finish(&mut events);
        let heaps = events.iter().filter_map(|event| match &event.kind {
            EventKind::HeapContents(contents) => Some(contents.heap.0),
            _ => None,
        });
        assert_eq!(heaps.collect::<Vec<_>>(), [0, 1, 1, 2]);
    }

    #[test]
    fn what_waits_for_the_converter_is_bounded() {
        let (mut files, mut events) = (AllocationFiles::within(3 * RING as u64), Vec::new());
        for _ in 0..3 {
            assert_eq!(files.take(full(), "1-0".as_ref()), RingState::Settled);
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
