//! Captures of sysprof (`.syscap`): the samples of its sampler, with the mapped files and the names that are in the
//! file.
//!
//! The layout is that of `sysprof-capture-types.h`, and names are packed as its `__symbols__` file is (an array of
//! addresses, process and place of the name, which ends with zeros).

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use nyquist_profile::{FrameId, LibId, Measure, StackId, StringId, ThreadIndex, Unit};
use rustc_hash::FxHashMap;

use crate::error::{ImportedProfile, Note, ReadError};
use crate::import::{CodePosition, Importer, ThreadName};
use crate::le_cursor::LeCursor;

const FORMAT: &str = "a capture of sysprof";

/// The first bytes, and the length of the header.
const MAGIC: [u8; 4] = 0xfdca_975e_u32.to_le_bytes();
const HEADER: usize = 256;

/// The length of what each record begins with.
const RECORD: usize = 24;

/// Kinds of records.
const SAMPLE: u8 = 2;
const MAP: u8 = 3;
const PROCESS: u8 = 4;
const FORK: u8 = 5;
const JITMAP: u8 = 7;
const FILE_CHUNK: u8 = 13;

/// The file with the names of functions.
const SYMBOLS: &[u8] = b"__symbols__";

/// Addresses from here on are no code: they say whether the kernel's or the program's addresses follow.
const FIRST_CONTEXT: u64 = (-4095_i64) as u64;
const CONTEXT_KERNEL: u64 = (-128_i64) as u64;

/// What sysprof writes for the name of a function that it does not know, before the file's path.
const UNKNOWN_IN_FILE: &[u8] = b"In file ";

/// The most parents whose mapped files and names are searched.
const MAX_PARENTS: usize = 16;

/// Whether a file begins like a capture.
pub(crate) fn is_capture(start: &[u8]) -> bool {
    start.starts_with(&MAGIC) && start.get(4) == Some(&1)
}

/// Reads the samples. The file does not say how long a sample stands for, so they are counted.
///
/// # Errors
/// If it is no capture, or has no samples.
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    let malformed = |problem: &str| ReadError::Malformed { format: FORMAT, problem: problem.into() };
    if !is_capture(bytes) {
        return Err(malformed("it does not begin as one"));
    }
    if bytes.get(5).is_none_or(|flags| flags & 1 == 0) {
        return Err(ReadError::Unsupported(format!("it is {FORMAT} of a big-endian machine")));
    }
    let mut capture = Capture::default();
    let is_whole = capture.read(bytes.get(HEADER..).unwrap_or_default());
    if capture.samples.is_empty() {
        return Err(ReadError::Unsupported(format!(
            "it is {FORMAT} without samples: record without --no-perf"
        )));
    }
    let mut importer = Importer::new("sysprof", "sysprof");
    importer.meta_mut().measure = Measure { name: "samples".into(), unit: Unit::Count };
    capture.add_to(&mut importer);
    if !is_whole {
        importer.note(Note::Cut { place: "its last record".into() });
    }
    Ok(importer.finish(Some(1)))
}

/// A sample: addresses, the innermost first.
struct CapturedSample<'a> {
    pid: i32,
    tid: i32,
    time: u64,
    addresses: &'a [u8],
}

/// A mapped file, up to its end.
#[derive(Clone, Copy)]
struct MappedFile<'a> {
    end: u64,
    /// Where the file's first byte would be.
    base: u64,
    path: &'a [u8],
}

/// A range of addresses with a name, by the place of the name in the names. Code of the kernel, too, has the process
/// that executed it.
struct NamedRange {
    pid: u32,
    start: u64,
    /// Its last address. That of a function whose bounds are not known is the first one.
    last: u64,
    name: u32,
}

/// What a capture has.
#[derive(Default)]
struct Capture<'a> {
    samples: Vec<CapturedSample<'a>>,
    /// By process and first address.
    maps: BTreeMap<(i32, u64), MappedFile<'a>>,
    /// Their first commands, with their times. Later ones are also those of other threads.
    commands: FxHashMap<i32, (u64, &'a [u8])>,
    parents: FxHashMap<i32, i32>,
    /// Names of code that was made while programs ran.
    jit: FxHashMap<u64, &'a [u8]>,
    /// The contents of [`SYMBOLS`].
    symbols: Vec<u8>,
}

impl<'a> Capture<'a> {
    /// Reads all records. Returns whether the last one is whole.
    fn read(&mut self, bytes: &'a [u8]) -> bool {
        let mut rest = LeCursor::new(bytes);
        while rest.remaining() > 0 {
            let length = { rest }.u16().map(usize::from).filter(|&length| length >= RECORD);
            let Some(record) = length.and_then(|length| rest.take(length)) else { return false };
            let mut cursor = LeCursor::new(record);
            // A record that is too short for its kind is passed over.
            let _ = self.read_record(&mut cursor);
        }
        true
    }

    fn read_record(&mut self, cursor: &mut LeCursor<'a>) -> Option<()> {
        let (_length, _cpu, pid) = (cursor.u16()?, cursor.u16()?, cursor.u32()?.cast_signed());
        let time = cursor.u64()?;
        let kind = cursor.u8()?;
        cursor.take(7)?;
        match kind {
            SAMPLE => {
                let (count, _, tid) = (cursor.u16()?, cursor.u16()?, cursor.u32()?.cast_signed());
                let addresses = cursor.take(usize::from(count) * 8)?;
                self.samples.push(CapturedSample { pid, tid, time, addresses });
            }
            MAP => {
                let (start, end, offset, _inode) =
                    (cursor.u64()?, cursor.u64()?, cursor.u64()?, cursor.u64()?);
                let file = MappedFile { end, base: start.saturating_sub(offset), path: text(cursor) };
                self.maps.insert((pid, start), file);
            }
            PROCESS => {
                let command = (time, text(cursor));
                let known = self.commands.entry(pid).or_insert(command);
                if time < known.0 {
                    *known = command;
                }
            }
            FORK => {
                self.parents.insert(cursor.u32()?.cast_signed(), pid);
            }
            JITMAP => {
                for _ in 0..cursor.u32()? {
                    let address = cursor.u64()?;
                    self.jit.insert(address, text(cursor));
                }
            }
            FILE_CHUNK => {
                let length = usize::from(u16::try_from(cursor.u32()? >> 16).ok()?);
                if until_zero(cursor.take(256)?) == SYMBOLS {
                    self.symbols.extend(cursor.take(length)?);
                }
            }
            _ => {}
        }
        Some(())
    }

    /// The packed names, by process and address.
    fn named_ranges(&self) -> Vec<NamedRange> {
        let mut cursor = LeCursor::new(&self.symbols);
        let mut next = || {
            let (start, last) = (cursor.u64()?, cursor.u64()?);
            let (pid, name, _tag, _padding) = (cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u32()?);
            (last > 0).then_some(NamedRange { pid, start, last, name })
        };
        let mut ranges: Vec<_> = std::iter::from_fn(&mut next).collect();
        ranges.sort_by_key(|range| (range.pid, range.start));
        ranges
    }

    fn add_to(&self, importer: &mut Importer) {
        let ranges = self.named_ranges();
        let mut code = Code::new(self, ranges);
        let mut threads: FxHashMap<(i32, i32), ThreadIndex> = FxHashMap::default();
        for sample in &self.samples {
            let thread = *threads
                .entry((sample.pid, sample.tid))
                .or_insert_with(|| self.thread(importer, sample.pid, sample.tid));
            let stack = code.stack(importer, sample);
            importer.sample(thread, sample.time, stack, 1);
        }
    }

    fn thread(&self, importer: &mut Importer, pid: i32, tid: i32) -> ThreadIndex {
        let name = self.program(pid);
        let (pid, tid) = (pid.to_string(), tid.to_string());
        let name = if name.is_empty() { &pid } else { &name };
        importer.thread(ThreadName { pid: &pid, process: name, tid: &tid, thread: name })
    }

    /// The name of a process's program, or else of its nearest parent's that has one.
    fn program(&self, pid: i32) -> String {
        let command = self.lineage(pid).find_map(|pid| Some((pid, self.commands.get(&pid)?.1)));
        let Some((pid, command)) = command else { return String::new() };
        let command = String::from_utf8_lossy(command);
        let program = command.split(' ').next().unwrap_or_default();
        // `kworker/0:1` is no path. Threads of the kernel map no files.
        let maps_files = self.maps.range((pid, 0)..=(pid, u64::MAX)).next().is_some();
        let is_path = maps_files || program.starts_with('/');
        program.rsplit('/').next().filter(|_| is_path).unwrap_or(program).to_owned()
    }

    /// The file that is mapped at an address of a process, or was by one of its parents.
    fn mapped(&self, pid: i32, address: u64) -> Option<MappedFile<'a>> {
        self.lineage(pid).find_map(|pid| {
            let below = self.maps.range((pid, 0)..=(pid, address)).next_back();
            below.filter(|(_, file)| address < file.end).map(|(_, file)| *file)
        })
    }

    /// A process, its parent, and so on.
    fn lineage(&self, pid: i32) -> impl Iterator<Item = i32> + '_ {
        std::iter::successors(Some(pid), |pid| self.parents.get(pid).copied()).take(MAX_PARENTS)
    }
}

/// The frames of addresses.
struct Code<'c> {
    capture: &'c Capture<'c>,
    ranges: Vec<NamedRange>,
    /// Packed names by their places, and those of [`Capture::jit`] by address. Each is processed once, because many
    /// frames may have the same long one. `None` where sysprof knows none.
    names: FxHashMap<u32, Option<StringId>>,
    jit_names: FxHashMap<u64, StringId>,
    /// How many bytes names may still have. No byte belongs to two names, so together they are no longer than the
    /// packed names; without this, a text without zeros would be copied for each address.
    left: usize,
    /// By process, address, lookup address, and whether it is the kernel's.
    frames: FxHashMap<(i32, u64, u64, bool), FrameId>,
    /// By where their paths are in the file.
    libs: FxHashMap<*const u8, LibId>,
}

impl<'c> Code<'c> {
    fn new(capture: &'c Capture<'c>, ranges: Vec<NamedRange>) -> Self {
        Self {
            capture,
            ranges,
            names: FxHashMap::default(),
            jit_names: FxHashMap::default(),
            left: capture.symbols.len(),
            frames: FxHashMap::default(),
            libs: FxHashMap::default(),
        }
    }

    fn stack(&mut self, importer: &mut Importer, sample: &CapturedSample<'_>) -> Option<StackId> {
        let (addresses, _) = sample.addresses.as_chunks::<8>();
        let mut is_kernel = false;
        let mut frames = Vec::with_capacity(addresses.len());
        for address in addresses.iter().map(|bytes| u64::from_le_bytes(*bytes)) {
            if address >= FIRST_CONTEXT {
                is_kernel = address == CONTEXT_KERNEL;
                continue;
            }
            // All but the first one are return addresses.
            let lookup = if frames.is_empty() { address } else { address.saturating_sub(1) };
            frames.push(self.frame(importer, sample.pid, (address, lookup), is_kernel));
        }
        let mut stack = None;
        for frame in frames.into_iter().rev() {
            stack = Some(importer.stack(stack, frame));
        }
        stack
    }

    fn frame(
        &mut self,
        importer: &mut Importer,
        pid: i32,
        (address, lookup): (u64, u64),
        is_kernel: bool,
    ) -> FrameId {
        if let Some(&frame) = self.frames.get(&(pid, address, lookup, is_kernel)) {
            return frame;
        }
        let jit = self.jit_name(importer, address);
        let name = jit.or_else(|| self.name(importer, pid, address));
        let file = if is_kernel { None } else { self.capture.mapped(pid, lookup) };
        let lib = file.map(|file| {
            let new = || importer.lib(&String::from_utf8_lossy(file.path), None);
            *self.libs.entry(file.path.as_ptr()).or_insert_with(new)
        });
        let relative = file.and_then(|file| u32::try_from(lookup.saturating_sub(file.base)).ok());
        if name.is_none() && lib.is_some() {
            // The mapped files may have the name.
            importer.meta_mut().symbolicated = false;
        }
        let mut alone = || Some(importer.builder().intern_string(&format!("{lookup:#x}")));
        let name = name.or_else(|| if lib.is_none() { alone() } else { None });
        let code = CodePosition {
            lib,
            address: relative,
            is_kernel,
            is_jit: jit.is_some(),
            ..CodePosition::default()
        };
        let frame = importer.frame_of(name, None, &code);
        self.frames.insert((pid, address, lookup, is_kernel), frame);
        frame
    }

    /// The packed name of an address. sysprof packs names by the addresses that samples have, also by return addresses.
    fn name(&mut self, importer: &mut Importer, pid: i32, address: u64) -> Option<StringId> {
        let key = (pid.cast_unsigned(), address);
        let after = self.ranges.partition_point(|range| (range.pid, range.start) <= key);
        let range = self.ranges.get(after.checked_sub(1)?)?;
        if range.pid != key.0 || address > range.last {
            return None;
        }
        let (capture, left, place) = (self.capture, &mut self.left, range.name);
        *self.names.entry(place).or_insert_with(|| {
            let text = capture.symbols.get(place as usize..).unwrap_or_default();
            let name = until_zero(text.get(..*left).unwrap_or(text));
            *left -= name.len();
            let is_known = !name.is_empty() && !name.starts_with(UNKNOWN_IN_FILE);
            is_known.then(|| importer.builder().intern_string(&String::from_utf8_lossy(name)))
        })
    }

    fn jit_name(&mut self, importer: &mut Importer, address: u64) -> Option<StringId> {
        let name = self.capture.jit.get(&address)?;
        let new = || importer.builder().intern_string(&String::from_utf8_lossy(name));
        Some(*self.jit_names.entry(address).or_insert_with(new))
    }
}

/// A text up to its zero, which is passed over.
fn text<'a>(cursor: &mut LeCursor<'a>) -> &'a [u8] {
    let mut rest = *cursor;
    let text = rest.take(rest.remaining()).map(until_zero).unwrap_or_default();
    let _ = cursor.take((text.len() + 1).min(cursor.remaining()));
    text
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}
