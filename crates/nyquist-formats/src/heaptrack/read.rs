//! Reads heaptrack's data: allocations with their stacks, as lines of hexadecimal numbers.
//!
//! `heaptrack` saves it compressed with gzip or zstd. The lines are documented by heaptrack's
//! `accumulatedtracedata.cpp` and `heaptrack_interpret.cpp` (<https://invent.kde.org/sdk/heaptrack>).

use nyquist_profile::{FrameId, LibId, StackId, StringId, Unit};

use crate::error::{ImportedProfile, ReadError};
use crate::import::{CodePosition, Importer, ThreadName};
use crate::values::{SampleQueue, SampleValueKind, choose};

const FORMAT: &str = "data of heaptrack";

/// From this version on, texts have their length before them.
const WITH_LENGTHS: u64 = 3;

/// The most functions at an address that are inlined into each other.
const MAX_INLINED: usize = 255;

/// The limit of stacks for each byte.
const STACKS_PER_BYTE: usize = 16;

/// Whether a file begins like heaptrack's: with its version, and then `X` with the command, perhaps after
/// other lines.
pub(crate) fn is_heaptrack(text: &str) -> bool {
    let mut lines = text.lines();
    let first = lines.next().and_then(|line| line.strip_prefix("v "));
    let is_version = first.is_some_and(|rest| {
        (1..=2).contains(&rest.split(' ').count())
            && rest.split(' ').all(|it| u64::from_str_radix(it, 16).is_ok())
    });
    is_version && lines.take(4).any(|line| line.starts_with("X "))
}

/// Reads the bytes in use at the peak.
///
/// # Errors
/// If it has no allocations.
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    read_value(bytes, None)
}

/// As [`read`], for the value with this name: `peak`, `leaked` (in use at the end) and `allocated` are bytes,
/// `allocations` and `temporary` are calls. Those of allocations (`live`, `total`) are other names of these.
///
/// # Errors
/// As there, and if there is no such value.
pub fn read_value(bytes: &[u8], name: Option<&str>) -> Result<ImportedProfile, ReadError> {
    let values = [
        SampleValueKind::new("peak", Unit::Bytes),
        SampleValueKind::new("leaked", Unit::Bytes),
        SampleValueKind::new("allocated", Unit::Bytes),
        SampleValueKind::new("allocations", Unit::Count),
        SampleValueKind::new("temporary", Unit::Count),
    ];
    let at = choose(&values, name, 0)?;
    let mut reader = HeaptrackReader::new(bytes.len());
    reader.importer.meta_mut().measure = values[at].measure();
    for line in bytes.split(|&byte| byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        if !line.is_empty()
            && !line.starts_with('#')
            && reader.read_line(line.trim_end_matches('\r')).is_none()
        {
            reader.unknown += 1;
        }
    }
    if reader.infos.is_empty() {
        return Err(ReadError::Malformed { format: FORMAT, problem: "it has no allocations".into() });
    }
    Ok(reader.finish(at))
}

/// Allocations of one size from one stack.
struct Info {
    size: u64,
    stack: Option<StackId>,
    count: u64,
    in_use: u64,
    /// How many were freed before anything else was allocated or freed.
    temporary: u64,
}

struct HeaptrackReader {
    importer: Importer,
    program: String,
    version: u64,
    strings: Vec<StringId>,
    libs: Vec<Option<LibId>>,
    /// The frames of each address, the outermost first.
    addresses: Vec<Vec<FrameId>>,
    traces: Vec<Option<StackId>>,
    infos: Vec<Info>,
    /// The allocations and frees in order, by the number of their info.
    events: Vec<(u32, bool)>,
    in_use: u64,
    /// The peak in bytes, and the number of events before it.
    peak: (u64, usize),
    unknown: u64,
    most_stacks: usize,
}

impl HeaptrackReader {
    fn new(length: usize) -> Self {
        Self {
            importer: Importer::new("heaptrack", "heaptrack"),
            program: "heaptrack".into(),
            version: 0,
            strings: Vec::new(),
            libs: Vec::new(),
            addresses: Vec::new(),
            traces: Vec::new(),
            infos: Vec::new(),
            events: Vec::new(),
            in_use: 0,
            peak: (0, 0),
            unknown: 0,
            most_stacks: length.saturating_mul(STACKS_PER_BYTE),
        }
    }

    fn read_line(&mut self, line: &str) -> Option<()> {
        let (kind, rest) = line.split_once(' ')?;
        match kind {
            "v" => self.version = rest.split(' ').nth(1).and_then(|it| hex(Some(it))).unwrap_or(1),
            "X" => self.read_command(rest),
            "s" => {
                let text = if self.version >= WITH_LENGTHS { rest.split_once(' ')?.1 } else { rest };
                self.strings.push(self.importer.builder().intern_string(text));
                self.libs.push(None);
            }
            "i" => {
                let frames = self.frames(rest);
                self.addresses.push(frames);
            }
            "t" => self.read_trace(rest)?,
            "a" => {
                let mut numbers = rest.split(' ');
                let (size, trace) = (hex(numbers.next())?, hex(numbers.next())?);
                let stack = self.traces.get(place(trace)?).copied().flatten();
                self.infos.push(Info { size, stack, count: 0, in_use: 0, temporary: 0 });
            }
            "+" | "-" => self.read_event(hex(Some(rest))?, kind == "+")?,
            // Times, memory of the process, pages, and whether heaptrack was attached or had suppressions.
            "c" | "R" | "I" | "A" | "S" => {}
            _ => return None,
        }
        Some(())
    }

    fn read_command(&mut self, command: &str) {
        let program = command.split_whitespace().next().unwrap_or_default();
        if let Some(name) = program.rsplit('/').next().filter(|name| !name.is_empty()) {
            name.clone_into(&mut self.program);
            name.clone_into(&mut self.importer.meta_mut().product);
        }
    }

    /// An address, its file, and its functions with files and lines, the innermost first. 0 means none.
    fn frames(&mut self, line: &str) -> Vec<FrameId> {
        let mut numbers = line.split(' ').map(|word| hex(Some(word)).unwrap_or(0));
        let address = numbers.next().unwrap_or(0);
        let lib = numbers.next().and_then(|number| self.lib(number));
        let places: Vec<u64> = numbers.take(3 * (MAX_INLINED + 1)).collect();
        if places.is_empty() {
            let name = format!("{address:#x}");
            return vec![self.importer.frame(&CodePosition { name: &name, lib, ..CodePosition::default() })];
        }
        let callers_first = places.chunks(3).rev().enumerate();
        let frames = callers_first.map(|(depth, place)| {
            let [name, file] = [0, 1].map(|at| place.get(at).and_then(|&number| self.string(number)));
            let line = place.get(2).and_then(|&line| u32::try_from(line).ok());
            let code = CodePosition {
                lib,
                line,
                inline_depth: u16::try_from(depth).unwrap_or(u16::MAX),
                ..CodePosition::default()
            };
            let name =
                name.unwrap_or_else(|| self.importer.builder().intern_string(&format!("{address:#x}")));
            self.importer.frame_of(Some(name), file, &code)
        });
        frames.collect()
    }

    fn string(&self, number: u64) -> Option<StringId> {
        self.strings.get(place(number)?).copied()
    }

    fn lib(&mut self, number: u64) -> Option<LibId> {
        let at = place(number)?;
        if let Some(lib) = *self.libs.get(at)? {
            return Some(lib);
        }
        let path = self.importer.builder().profile().string(self.strings[at]).to_owned();
        let lib = self.importer.lib(&path, None);
        self.libs[at] = Some(lib);
        Some(lib)
    }

    /// An address and the trace that called it.
    fn read_trace(&mut self, line: &str) -> Option<()> {
        let mut numbers = line.split(' ');
        let (address, parent) = (hex(numbers.next())?, hex(numbers.next())?);
        if self.importer.stack_count() > self.most_stacks {
            self.traces.push(None);
            return None;
        }
        let mut stack = place(parent).and_then(|parent| self.traces.get(parent).copied().flatten());
        for &frame in place(address).and_then(|address| self.addresses.get(address)).into_iter().flatten() {
            stack = Some(self.importer.stack(stack, frame));
        }
        self.traces.push(stack);
        Some(())
    }

    fn read_event(&mut self, number: u64, is_allocation: bool) -> Option<()> {
        let info = self.infos.get_mut(usize::try_from(number).ok()?)?;
        if is_allocation {
            info.count += 1;
            self.in_use = self.in_use.saturating_add(info.size);
        } else {
            self.in_use = self.in_use.saturating_sub(info.size);
            let is_last = self.events.last().is_some_and(|(last, was)| u64::from(*last) == number && *was);
            info.temporary += u64::from(is_last);
        }
        self.events.push((u32::try_from(number).ok()?, is_allocation));
        if self.in_use > self.peak.0 {
            self.peak = (self.in_use, self.events.len());
        }
        Some(())
    }

    /// Adds the value with this number.
    fn finish(mut self, value: usize) -> ImportedProfile {
        let until = if value == 0 { self.peak.1 } else { self.events.len() };
        for &(info, is_allocation) in &self.events[..until] {
            let in_use = &mut self.infos[info as usize].in_use;
            *in_use = if is_allocation { *in_use + 1 } else { in_use.saturating_sub(1) };
        }
        let name = ThreadName { pid: "0", process: &self.program, tid: "0", thread: &self.program };
        let mut queue = SampleQueue::new(self.importer.thread(name));
        for info in &self.infos {
            let amount = match value {
                0 | 1 => info.in_use.saturating_mul(info.size),
                2 => info.count.saturating_mul(info.size),
                3 => info.count,
                _ => info.temporary,
            };
            queue.add(&mut self.importer, info.stack, amount);
        }
        self.importer.note_left_out(self.unknown, "lines that are none of the format");
        self.importer.finish_allocations(None)
    }
}

fn hex(word: Option<&str>) -> Option<u64> {
    u64::from_str_radix(word?, 16).ok()
}

/// The index for a number that counts from 1.
fn place(number: u64) -> Option<usize> {
    usize::try_from(number.checked_sub(1)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::stacks_of;

    /// `main` calls `get`, inlined into `wrap`, and `leak`.
    const FILE: &str = "v 10400 3\nX ./dir/app 1\nI 1000 5e2922\ns 8 /bin/app\ns 4 main\ns 4 a b.c\ns 3 get\ns 4 wrap\ns 4 leak\n\
        i 1000 1 2 3 10\nt 1 0\ni 2000 1 4 3 7 5 3 9\nt 2 1\na 64 2\n+ 0\n- 0\n+ 0\n+ 0\ni 3000 1 6\nt 3 1\nt 4 0\na 1000 3\n+ 1\n- 1\n- 0\na 8 4\nc 5\nR 3a5\n+ 2\n\n# strings: 5\n";

    #[test]
    fn bytes_in_use_at_the_peak_are_read() {
        assert!(is_heaptrack(FILE) && !is_heaptrack("v 1\nmain;x 3\n"));
        let imported = read(FILE.as_bytes()).unwrap();
        assert_eq!(imported.notes, []);
        let profile = imported.profile;
        assert_eq!(stacks_of(&profile), ["main;leak 512", "main;wrap;get 25"]);
        assert_eq!(
            (profile.meta().interval, &*profile.meta().measure.name, &*profile.meta().product),
            (8, "peak", "app")
        );
        let get = profile.frames().iter().find(|frame| profile.func_name(frame.func) == "get").unwrap();
        let file = profile.string(profile.source(profile.frame_source(get).unwrap()).filename);
        assert_eq!((file, get.line, get.inline_depth), ("a b.c", Some(7), 1));
        assert_eq!(profile.lib(profile.func(get.func).lib.unwrap()).path, "/bin/app");
    }

    #[test]
    fn who_calls_an_allocator_is_the_site() {
        // `leak` calls C++'s operator, and that the allocator.
        let operator = "operator new(unsigned long)";
        let file =
            FILE.replace("s 4 leak\n", &format!("s 4 leak\ns {:x} {operator}\ns 6 malloc\n", operator.len()));
        let file = file.replace(
            "i 3000 1 6\nt 3 1\nt 4 0\na 1000 3\n",
            "i 3000 1 6\nt 3 1\nt 9 0\ni 4000 1 7\ni 5000 1 8\nt 4 3\nt 5 5\na 1000 6\n",
        );
        let profile = read(file.as_bytes()).unwrap().profile;
        assert_eq!(stacks_of(&profile), stacks_of(&read(FILE.as_bytes()).unwrap().profile));
        assert!(profile.funcs().len() > read(FILE.as_bytes()).unwrap().profile.funcs().len());
    }

    #[test]
    fn other_values_can_be_requested() {
        let of = |name: &str| stacks_of(&read_value(FILE.as_bytes(), Some(name)).unwrap().profile);
        // The stack of the last allocation has an unknown address.
        assert_eq!(of("leaked"), [" 2", "main;wrap;get 25"]);
        assert_eq!(of("allocations"), [" 1", "main;leak 1", "main;wrap;get 3"]);
        assert_eq!(of("allocated"), [" 2", "main;leak 1024", "main;wrap;get 75"]);
        assert_eq!(["live", "total"].map(of), ["leaked", "allocated"].map(of));
        assert_eq!(of("temporary"), ["main;leak 1", "main;wrap;get 1"]);
        assert!(read_value(FILE.as_bytes(), Some("cpu")).is_err());
        assert!(read(b"v 10400 3\nX a\n").is_err());
    }
}
