//! One jitdump: read while it is written, and asked for the code at an address at a time.

use crate::event::Timestamp;
use crate::mappings::Range;
use crate::modules::ModuleIndex;
use nyquist_object::Avma;
use nyquist_perf::{JitDumpBody, JitDumpHeader, JitDumpLines, JitDumpRecord};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

/// How many bytes are read at once, unless a record is larger.
const CHUNK: usize = 1 << 20;

/// A jitdump.
#[derive(Debug)]
pub(crate) struct Dump {
    file: Arc<File>,
    module: ModuleIndex,
    header: Option<JitDumpHeader>,
    /// Where the next record begins.
    offset: u64,
    /// Whether the file can be read no further.
    is_ended: bool,
    /// The time of the last record.
    last_time: Timestamp,
    codes: Vec<Code>,
    /// The place in `codes` of each number that the compiler gave.
    by_number: FxHashMap<u64, usize>,
    /// The lines of code that is yet to come, by its address.
    lines: FxHashMap<u64, Vec<Line>>,
    /// What is not yet in `ranges`, by time.
    upcoming: VecDeque<(Timestamp, Change)>,
    /// Which code is where: first address to the one after the last, and the code. None overlap.
    ranges: BTreeMap<u64, (u64, usize)>,
}

/// A piece of code.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    /// The name as the compiler wrote it.
    pub(crate) name: Box<str>,
    /// Where its bytes are in the file: its relative address.
    pub(crate) offset: u32,
    /// Its size in bytes.
    pub(crate) size: u32,
    /// Its lines, by offset.
    pub(crate) lines: Vec<Line>,
}

/// From an offset on, a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// The offset in the code.
    pub(crate) offset: u32,
    /// The number of the line, from 1.
    pub(crate) number: u32,
    /// The file.
    pub(crate) file: Arc<str>,
}

/// Code appears at an address.
#[derive(Clone, Copy, Debug)]
struct Change {
    start: u64,
    end: u64,
    /// The code's place in the list of all.
    place: usize,
    /// Where it was before.
    moved_from: Option<u64>,
}

impl Dump {
    /// The jitdump that `file` is, of which nothing is read yet.
    pub(crate) fn new(file: Arc<File>, module: ModuleIndex) -> Self {
        Self {
            file,
            module,
            header: None,
            offset: 0,
            is_ended: false,
            last_time: Timestamp::default(),
            codes: Vec::new(),
            by_number: FxHashMap::default(),
            lines: FxHashMap::default(),
            upcoming: VecDeque::new(),
            ranges: BTreeMap::new(),
        }
    }

    /// The module whose addresses are places in this file.
    pub(crate) fn module(&self) -> ModuleIndex {
        self.module
    }

    /// All code that was read, in the file's order.
    pub(crate) fn codes(&self) -> &[Code] {
        &self.codes
    }

    /// Whether everything made by `time` was read. Where the times are those of another clock nobody can tell before the
    /// recording ends.
    pub(crate) fn is_read_up_to(&self, time: Timestamp) -> bool {
        self.is_ended || (self.has_clock_times() && time < self.last_time)
    }

    fn has_clock_times(&self) -> bool {
        self.header.is_some_and(|header| header.has_clock_times)
    }

    /// Reads what was written since the last call. A damaged record ends the file: nothing behind it can be found.
    pub(crate) fn read_on(&mut self) {
        while !self.is_ended {
            let mut size = CHUNK;
            let Some(mut bytes) = self.read(size) else { return };
            // A record larger than a chunk is read as a whole, if the file really has it.
            if let Ok(Some(record)) = JitDumpRecord::size(&bytes)
                && self.header.is_some()
                && record as usize > bytes.len()
            {
                size = record as usize;
                match self.read(size) {
                    Some(whole) => bytes = whole,
                    None => return,
                }
            }
            let taken = self.take_records(&bytes);
            self.offset += taken as u64;
            if taken == 0 {
                return;
            }
        }
    }

    /// Reads up to `size` bytes at the place of the next record, but no more than the file has.
    fn read(&mut self, size: usize) -> Option<Vec<u8>> {
        let len = self.file.metadata().ok()?.len().saturating_sub(self.offset);
        let mut bytes = vec![0; size.min(usize::try_from(len).ok()?)];
        let read = self.file.read_at(&mut bytes, self.offset).ok()?;
        bytes.truncate(read);
        Some(bytes)
    }

    /// Takes the whole records that `bytes` begins with, and says how many bytes they are.
    fn take_records(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        if self.header.is_none() {
            match JitDumpHeader::parse(bytes) {
                Ok(Some(header)) if header.size as usize <= bytes.len() => {
                    at = header.size as usize;
                    self.header = Some(header);
                }
                Ok(_) => return 0,
                Err(_) => {
                    self.is_ended = true;
                    return 0;
                }
            }
        }
        loop {
            match JitDumpRecord::parse(&bytes[at..]) {
                Ok(Some(record)) => {
                    self.take(&record, self.offset + at as u64);
                    at += record.size as usize;
                }
                Ok(None) => return at,
                Err(_) => {
                    self.is_ended = true;
                    return at;
                }
            }
        }
    }

    fn take(&mut self, record: &JitDumpRecord<'_>, offset: u64) {
        let time = if self.has_clock_times() { Timestamp(record.time) } else { Timestamp::default() };
        self.last_time = self.last_time.max(time);
        match record.body {
            JitDumpBody::Load { address, index, name, code_offset, code } => {
                let Ok(offset) = u32::try_from(offset + u64::from(code_offset)) else { return };
                let lines = self.lines.remove(&address).unwrap_or_default();
                let name = String::from_utf8_lossy(name).into();
                let place = self.codes.len();
                self.by_number.insert(index, place);
                self.codes.push(Code { name, offset, size: code.len() as u32, lines });
                let end = address.saturating_add(code.len() as u64);
                self.add_change(time, Change { start: address, end, place, moved_from: None });
            }
            JitDumpBody::Move { index, from, to, size } => {
                let Some(&place) = self.by_number.get(&index) else { return };
                let end = to.saturating_add(size);
                self.add_change(time, Change { start: to, end, place, moved_from: Some(from) });
            }
            JitDumpBody::DebugInfo { address, lines } => {
                self.lines.insert(address, read_lines(address, lines));
            }
            JitDumpBody::Close => self.is_ended = true,
            JitDumpBody::UnwindingInfo { .. } | JitDumpBody::Other(_) => {}
        }
    }

    /// Compilers write from several threads, so that times may go back a little.
    fn add_change(&mut self, time: Timestamp, change: Change) {
        let at = self.upcoming.partition_point(|(other, _)| *other <= time);
        self.upcoming.insert(at, (time, change));
    }

    /// The code that is at an address at a time, as a range of the module. Times must not go back.
    pub(crate) fn find(&mut self, address: Avma, time: Timestamp) -> Option<Range> {
        while let Some((_, change)) = self.upcoming.pop_front_if(|(at, _)| *at <= time) {
            self.apply(change);
        }
        let (&start, &(end, code)) = self.ranges.range(..=address.0).next_back()?;
        let base = Avma(start.checked_sub(u64::from(self.codes[code].offset))?);
        (address.0 < end).then_some(Range {
            start: Avma(start),
            end: Avma(end),
            module: Some((self.module, base)),
        })
    }

    fn apply(&mut self, change: Change) {
        if let Some(from) = change.moved_from {
            self.ranges.remove(&from);
        }
        let overlaps = self.ranges.range(..change.end).rev();
        let overlaps = overlaps.take_while(|(_, (end, _))| *end > change.start);
        let overlapped: Vec<u64> = overlaps.map(|(&start, _)| start).collect();
        for start in overlapped {
            self.ranges.remove(&start);
        }
        if change.start < change.end {
            self.ranges.insert(change.start, (change.end, change.place));
        }
    }
}

fn read_lines(start: u64, lines: JitDumpLines<'_>) -> Vec<Line> {
    let mut file: Arc<str> = Arc::from("");
    let lines = lines.iter().filter_map(|line| {
        if !line.is_same_file() {
            let name = String::from_utf8_lossy(line.file);
            if *name != *file {
                file = Arc::from(&*name);
            }
        }
        let offset = u32::try_from(line.address.checked_sub(start)?).ok()?;
        Some(Line { offset, number: line.line, file: Arc::clone(&file) })
    });
    let mut lines: Vec<_> = lines.collect();
    lines.sort_by_key(|line| line.offset);
    lines
}
