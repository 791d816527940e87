//! One jitdump. It is read while it is written, and finds the code at an address at a time.

use crate::event::{Pid, Timestamp};
use crate::jit::id;
use crate::jit::id::DumpId;
use crate::jit::unwindable_code::UnwindableCodes;
use crate::mappings::Range;
use crate::module_index::ModuleIndex;
use nyquist_object::{Architecture, Avma};
use nyquist_perf::{Charge, JitDumpBody, JitDumpHeader, JitDumpLines, JitDumpRecord};
use nyquist_system::HeldFile;
use nyquist_unwind::Module;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many bytes are read at once, unless a record is larger.
const CHUNK: usize = 1 << 20;

/// The largest record that is read as a whole. Of the record of a piece of code, the beginning is enough.
const MAX_RECORD_BYTES: usize = 16 << 20;

/// The most memory that a record takes beside its contents: its code in two lists, its place, and its number.
const RECORD_OVERHEAD: u64 = 320;

/// How often a record's contents may be kept: names in two lists, lines and unwind information in a form for
/// look-ups.
const MAX_COPIES: u64 = 4;

/// A jitdump.
#[derive(Debug)]
pub(crate) struct Dump {
    file: HeldFile,
    module: ModuleIndex,
    /// The first process that was seen to map it.
    owner: Option<Pid>,
    header: Option<JitDumpHeader>,
    /// The id of the lib, which is set when the header is read.
    id: DumpId,
    /// Where the next record begins.
    offset: u64,
    /// Whether the file can be read no further.
    is_ended: bool,
    /// How far its clock is ahead of the clock of the samples, in nanoseconds.
    ahead_ns: i64,
    /// The time of the last record.
    last_time: Timestamp,
    codes: Vec<Code>,
    /// How many of the pieces in `codes` were returned as new functions.
    reported: usize,
    /// The place in `codes` of each number that the compiler gave.
    by_number: FxHashMap<u64, usize>,
    /// The lines of code whose record has not been read yet, by its address.
    lines: FxHashMap<u64, Vec<Line>>,
    /// The unwind information of the next piece of code.
    unwinding: Option<Vec<u8>>,
    /// The code that has unwind information.
    unwindable: UnwindableCodes,
    /// The architecture of the process that writes it.
    process: Architecture,
    /// Changes that are not yet in `ranges`, by time. Those of one time are in the file's order.
    upcoming: BTreeMap<(Timestamp, u64), Change>,
    /// How many changes there were.
    changes: u64,
    /// The ranges of code: each first address, with the address after the last one and the code. None
    /// overlap.
    ranges: BTreeMap<u64, (u64, usize)>,
    /// The memory that all of these take.
    charge: Charge,
    /// Whether something was left out, because it would have taken too much memory.
    is_too_large: bool,
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
    /// When it was made.
    pub(crate) made: Timestamp,
}

/// The line of the code from an offset on.
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
    /// The index of the code in `codes`.
    place: usize,
    /// The address that it was moved from.
    moved_from: Option<u64>,
}

impl Dump {
    /// A jitdump in `file`. Nothing of it is read yet.
    pub(crate) fn new(file: HeldFile, module: ModuleIndex, owner: Option<Pid>, charge: Charge) -> Self {
        Self {
            file,
            module,
            owner,
            header: None,
            id: DumpId::default(),
            offset: 0,
            is_ended: false,
            ahead_ns: 0,
            last_time: Timestamp::default(),
            codes: Vec::new(),
            reported: 0,
            by_number: FxHashMap::default(),
            lines: FxHashMap::default(),
            unwinding: None,
            unwindable: UnwindableCodes::default(),
            process: Architecture::own(),
            upcoming: BTreeMap::new(),
            changes: 0,
            ranges: BTreeMap::new(),
            charge,
            is_too_large: false,
        }
    }

    /// Sets by how many nanoseconds the dump's clock is ahead of that of the samples. A program in a time
    /// namespace has such a clock.
    pub(crate) fn with_clock_ahead(self, ahead_ns: i64) -> Self {
        Self { ahead_ns, ..self }
    }

    /// Sets the architecture of the process that writes it, which is that of code whose machine is not stated.
    /// Without this call, it is the architecture of this machine.
    pub(crate) fn of_process(self, process: Architecture) -> Self {
        Self { process, ..self }
    }

    /// Sets where the id of the lib is written.
    pub(crate) fn with_id(self, id: DumpId) -> Self {
        Self { id, ..self }
    }

    /// The file's header, if it was read.
    pub(crate) fn header(&self) -> Option<&JitDumpHeader> {
        self.header.as_ref()
    }

    /// The module whose relative addresses are offsets in this file.
    pub(crate) fn module(&self) -> ModuleIndex {
        self.module
    }

    /// Whether something was left out, because it would have taken too much memory.
    pub(crate) fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// The code that has unwind information.
    pub(crate) fn unwindable(&self) -> &UnwindableCodes {
        &self.unwindable
    }

    /// All code that was read, in the file's order.
    pub(crate) fn codes(&self) -> &[Code] {
        &self.codes
    }

    /// The functions that were made before a time and were not returned yet, if their times are known.
    pub(crate) fn take_new_functions(&mut self, before: Timestamp) -> Vec<(Pid, Timestamp, String)> {
        let Some(owner) = self.owner.filter(|_| self.has_clock_times()) else { return Vec::new() };
        let new = self.codes.get(self.reported..).unwrap_or_default();
        let new = &new[..new.iter().take_while(|code| code.made < before).count()];
        self.reported += new.len();
        new.iter().map(|code| (owner, code.made, code.name.to_string())).collect()
    }

    /// Whether all code that was made by `time` was read. If the dump has another clock, this is not known
    /// before the recording ends.
    pub(crate) fn is_read_up_to(&self, time: Timestamp) -> bool {
        self.is_ended || (self.has_clock_times() && time < self.last_time)
    }

    fn has_clock_times(&self) -> bool {
        self.header.is_some_and(|header| header.has_clock_times)
    }

    /// Reads the records that were written since the last call. A damaged record ends the file, because no
    /// record behind it can be found.
    pub(crate) fn read_on(&mut self) {
        while !self.is_ended {
            let Some(bytes) = self.read(CHUNK) else { return };
            let taken = match JitDumpRecord::size(&bytes) {
                Ok(Some(size)) if self.header.is_some() && size as usize > bytes.len() => {
                    self.take_large(&bytes, size)
                }
                _ => self.take_records(&bytes) as u64,
            };
            self.offset += taken;
            if taken == 0 {
                return;
            }
            // Relative addresses cannot express an offset behind this one.
            self.is_ended |= self.offset > u64::from(u32::MAX);
        }
    }

    /// Handles a record that is not complete in `start`, if the file really has it. No memory is allocated
    /// for the size that it claims.
    fn take_large(&mut self, start: &[u8], size: u32) -> u64 {
        let end = self.offset.saturating_add(u64::from(size));
        if self.file.current_len().unwrap_or(0) < end {
            return 0;
        }
        if let Some(record) = JitDumpRecord::parse_start(start, size) {
            self.take(&record, self.offset);
        } else if size as usize <= MAX_RECORD_BYTES {
            return self.read(size as usize).map_or(0, |bytes| self.take_records(&bytes) as u64);
        } else {
            self.is_too_large = true;
        }
        u64::from(size)
    }

    /// Reads up to `size` bytes at the offset of the next record, but no more than the file has.
    fn read(&mut self, size: usize) -> Option<Vec<u8>> {
        let len = self.file.current_len().ok()?.saturating_sub(self.offset);
        let mut bytes = vec![0; size.min(usize::try_from(len).ok()?)];
        let read = self.file.read_at(&mut bytes, self.offset).ok()?;
        bytes.truncate(read);
        Some(bytes)
    }

    /// Handles the complete records that `bytes` begins with, and returns their size in bytes.
    fn take_records(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        if self.header.is_none() {
            match JitDumpHeader::parse(bytes) {
                Ok(Some(header)) if header.size as usize <= bytes.len() => {
                    at = header.size as usize;
                    self.header = Some(header);
                    let _ = self.id.set(id::of_dump(&header));
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

    /// The architecture of the code. CPython 3.13 writes no machine.
    pub(crate) fn architecture(&self) -> Architecture {
        match self.header.map_or(0, |header| header.machine) {
            0 => self.process,
            machine => Architecture::of_elf_machine(u16::try_from(machine).unwrap_or_default()),
        }
    }

    fn take(&mut self, record: &JitDumpRecord<'_>, offset: u64) {
        let retained = match record.body {
            JitDumpBody::Load { code_offset, .. } => code_offset,
            _ => record.size,
        };
        if !self.charge.take(RECORD_OVERHEAD + MAX_COPIES * u64::from(retained)) {
            (self.is_too_large, self.is_ended) = (true, true);
            return;
        }
        let time = if self.has_clock_times() {
            Timestamp(record.time.saturating_add_signed(self.ahead_ns.saturating_neg()))
        } else {
            Timestamp::default()
        };
        self.last_time = self.last_time.max(time);
        match record.body {
            JitDumpBody::Load { address, index, name, code_offset, code_size } => {
                let Ok(offset) = u32::try_from(offset + u64::from(code_offset)) else { return };
                let lines = self.lines.remove(&address).unwrap_or_default();
                let name = String::from_utf8_lossy(name).into();
                let code = Code { name, offset, size: code_size, lines, made: time };
                self.add_code(Avma(address), index, code);
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
            JitDumpBody::UnwindingInfo { data, header_size } => {
                // The table at the end of the data only speeds up searches.
                let len = data.len().saturating_sub(usize::try_from(header_size).unwrap_or(usize::MAX));
                self.unwinding = data.get(..len).filter(|section| !section.is_empty()).map(<[u8]>::to_vec);
            }
            JitDumpBody::Other(_) => {}
        }
    }

    /// Adds code that was loaded at an address, with the number that the compiler gave it.
    fn add_code(&mut self, start: Avma, number: u64, code: Code) {
        let place = self.codes.len();
        let (time, size) = (code.made, code.size);
        self.by_number.insert(number, place);
        self.codes.push(code);
        let section = self.unwinding.take();
        let module = section.map(|section| Module::from_made_code(self.architecture(), size, section));
        self.unwindable.add(start, size.into(), module.map(Arc::new));
        let end = start.0.saturating_add(size.into());
        self.add_change(time, Change { start: start.0, end, place, moved_from: None });
    }

    /// Compilers write from several threads, so times may go back a little.
    fn add_change(&mut self, time: Timestamp, change: Change) {
        self.upcoming.insert((time, self.changes), change);
        self.changes += 1;
    }

    /// The code that is at an address at a time, as a range of the module. Times must not go back.
    pub(crate) fn find(&mut self, address: Avma, time: Timestamp) -> Option<Range> {
        while let Some(next) = self.upcoming.first_entry().filter(|next| next.key().0 <= time) {
            let change = next.remove();
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

#[cfg(all(test, target_os = "linux"))]
mod tests;
