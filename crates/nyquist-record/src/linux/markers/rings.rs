//! All rings and text files of markers, and the counts of their content.

use std::ffi::OsStr;
use std::fs::File;
use std::sync::Arc;

use nyquist_convert::event::{Event, Mapping, Timestamp};
use nyquist_convert::marker_file::OpenIntervals;

use super::folder_reader::{FolderReader, MAX_FILES, RingState};
use super::ids::Ids;
use super::ring::{Readability, Ring, RingDenied};
use super::summary::MarkerSummary;
use super::text::{self, TextFile};
use nyquist_perf::{Budget, Charge};
use nyquist_tracing::protocol::{EXTENSION, MAX_CAPACITY};

/// How much memory a marker uses in a profile, for each byte of its record: the factor is largest for small
/// records.
const MEMORY_PER_BYTE: u64 = 8;

/// The rings and text files that are read.
#[derive(Debug)]
pub(super) struct Rings {
    /// The memory for all markers. It is limited because a program can write markers as fast as memory can be
    /// written.
    charge: Charge,
    is_full: bool,
    read: Vec<Ring>,
    texts: Vec<TextFile>,
    open: OpenIntervals,
    ids: Ids,
    since: Timestamp,
    markers: u64,
    unknown_processes: u64,
    unreadable_files: u64,
    refused: u64,
}

impl FolderReader for Rings {
    const EXTENSION: &str = EXTENSION;

    fn take(&mut self, file: File, _: &OsStr) -> RingState {
        self.take(Arc::new(file), 0, MAX_CAPACITY)
    }

    fn refuse(&mut self) {
        self.refuse();
    }
}

impl Rings {
    pub(super) fn new(budget: &Budget) -> Self {
        Self {
            charge: budget.charge(),
            is_full: false,
            read: Vec::new(),
            texts: Vec::new(),
            open: OpenIntervals::default(),
            ids: Ids::new(),
            since: Timestamp(0),
            markers: 0,
            unknown_processes: 0,
            unreadable_files: 0,
            refused: 0,
        }
    }

    pub(super) fn begin_at(&mut self, since: Timestamp) {
        self.since = since;
    }

    /// Notes a mapping, which may be that of a text file.
    pub(super) fn notice(&mut self, mapping: &Mapping) {
        let Some(owner) = text::owner(mapping) else { return };
        let known = |file: &TextFile| file.path == mapping.path;
        if self.texts.len() >= MAX_FILES || self.texts.iter().any(known) {
            return;
        }
        match TextFile::of_mapping(mapping, owner, &mut self.ids) {
            Ok(file) => self.texts.extend(file),
            Err(text::FileMismatch) => self.refused += 1,
        }
    }

    /// Reads the ring at an offset in a file from now on, if its capacity is at most `most` bytes.
    pub(super) fn take(&mut self, file: Arc<File>, at: u64, most: u64) -> RingState {
        if self.read.len() >= MAX_FILES {
            return RingState::Settled;
        }
        match Ring::open(file, at, most, &mut self.ids) {
            Ok(ring) => self.read.push(ring),
            Err(RingDenied::NotYet) => return RingState::NotYet,
            Err(RingDenied::NoMarkers) => self.refuse(),
            Err(RingDenied::UnknownProcess) => self.unknown_processes += 1,
        }
        RingState::Settled
    }

    /// Counts a file without valid markers.
    pub(super) fn refuse(&mut self) {
        self.unreadable_files += 1;
    }

    /// Reads what was written since the last time.
    pub(super) fn read(&mut self, events: &mut Vec<Event>, last: bool) {
        let before = events.len();
        self.ids.begin_poll();
        for ring in &mut self.read {
            let start = ring.position();
            if !self.is_full {
                ring.read(self.since, &mut self.ids, &mut self.open, events);
            }
            self.is_full |= !self.charge.take((ring.position() - start).saturating_mul(MEMORY_PER_BYTE));
        }
        for text in &mut self.texts {
            let start = text.position();
            if !self.is_full {
                text.read(self.since, last, events);
            }
            self.is_full |= !self.charge.take((text.position() - start).saturating_mul(MEMORY_PER_BYTE));
        }
        self.markers += (events.len() - before) as u64;
    }

    /// Adds the intervals that have no end, and returns the counts.
    pub(super) fn finish(&mut self, events: &mut Vec<Event>) -> MarkerSummary {
        let before = events.len();
        std::mem::take(&mut self.open).finish(events);
        self.markers += (events.len() - before) as u64;
        let sum = |count: fn(&Ring) -> u64| self.read.iter().map(count).fold(0, u64::saturating_add);
        MarkerSummary {
            markers: self.markers,
            lost: sum(|ring| ring.lost),
            unreadable: sum(Ring::unreadable)
                + self.texts.iter().map(|text| text.unreadable).sum::<u64>()
                + self.unreadable_files,
            unknown_processes: self.unknown_processes,
            refused: self.refused,
            cut: sum(|ring| u64::from(ring.state == Readability::TruncatedStack)),
            is_full: self.is_full,
        }
    }
}
