//! Profiles as text: heap profiles and contention of gperftools, Go and Java, goroutines and threads of Go
//! (`debug=1`).

use nyquist_profile::{Measure, Unit};
use rustc_hash::FxHashMap;

use super::maps::Maps;
use super::stacks::{LegacySamples, LegacyStack, NamedFunction, named};
use super::{java, threads};
use crate::error::{ImportedProfile, ReadError};
use crate::import::Importer;
use crate::pprof::factor_of;

const FORMAT: &str = "a profile as text";

/// The kind of a text, by its first line.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ProfileKind<'a> {
    /// Objects and bytes, in use and in total: `2: 512 [4: 1024] @ 0x1 0x2`.
    Heap(Rate),
    /// Bytes and objects in use: `512 2 @ 0x1 0x2`.
    JavaHeap,
    /// Cycles and the number of events: `1769 3 @ 0x1 0x2`.
    Contention,
    /// A count of things with this name: `3 @ 0x1 0x2`.
    Count(&'a str),
}

/// The meaning of the numbers of a heap profile.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rate {
    /// All allocations.
    All,
    /// A sample of them: on average, one per this many bytes.
    OneIn(f64),
}

/// The kind of a text that begins with this line.
fn kind(first: &str) -> Option<ProfileKind<'_>> {
    let first = first.trim_end();
    if first == "--- contention:" || first == "--- mutex:" || first.starts_with("--- contentionz ") {
        return Some(ProfileKind::Contention);
    }
    if first.starts_with("--- heapz ") {
        return Some(ProfileKind::JavaHeap);
    }
    if let Some(totals) = first.strip_prefix("heap profile:") {
        let (numbers, how) = totals.rsplit_once('@')?;
        heap_numbers(numbers)?;
        return Some(ProfileKind::Heap(rate(how.trim())));
    }
    let (name, total) = first.split_once(" profile: total ")?;
    let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
    (is_name && total.parse::<u64>().is_ok()).then_some(ProfileKind::Count(name))
}

/// Whether a text that begins with this line is supported.
pub(crate) fn is_text(first: &str) -> bool {
    kind(first).is_some() || threads::is_threads(first)
}

/// The sampling rate of `heap/2048` (Go, which writes twice its rate), `heap_v2/524288`, or `heapprofile`.
fn rate(how: &str) -> Rate {
    let (name, period) = how.split_once('/').unwrap_or((how, ""));
    let period = period.trim().parse::<f64>().ok().filter(|period| *period > 1.0);
    match (name, period) {
        ("heap", Some(period)) => Rate::OneIn(period / 2.0),
        ("heap_v2" | "heapz_v2", Some(period)) => Rate::OneIn(period),
        _ => Rate::All,
    }
}

/// The four numbers of `2: 512 [4: 1024]`.
fn heap_numbers(text: &str) -> Option<[u64; 4]> {
    let (in_use, all) = text.trim().split_once('[')?;
    let pair = |text: &str| {
        let (count, bytes) = text.trim().split_once(':')?;
        Some((count.trim().parse().ok()?, bytes.trim().parse().ok()?))
    };
    let ((objects, bytes), (all_objects, all_bytes)) = (pair(in_use)?, pair(all.strip_suffix(']')?)?);
    Some([objects, bytes, all_objects, all_bytes])
}

/// Go's names of the numbers of a heap profile. The second one is read by default.
const HEAP: [&str; 4] = ["inuse_objects", "inuse_space", "alloc_objects", "alloc_space"];
/// How many bytes are allocated for each of Java's samples, which is not in the file.
const JAVA_RATE: Rate = Rate::OneIn(524_288.0);
/// The names of the numbers of contention.
const CONTENTION: [&str; 2] = ["contentions", "delay"];

/// Reads a profile as text: the value with this name, or by default `inuse_space`, `delay`, or the only
/// value. If only a part of all allocations was sampled, samples are scaled up as in pprof. Names, files and
/// lines are those that Go writes. Without them, addresses are relative to the mapped files. There are no
/// times and no threads. O(bytes).
///
/// # Errors
/// If it is none, or has no value of that name.
pub fn read_text(bytes: &[u8], requested: Option<&str>) -> Result<ImportedProfile, ReadError> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines().skip_while(|line| line.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    if threads::is_threads(first) {
        return threads::read(&text);
    }
    let kind = kind(first);
    let malformed = || ReadError::Malformed { format: FORMAT, problem: "it does not begin as one".into() };
    let kind = kind.ok_or_else(malformed)?;
    let names: &[&str] = match &kind {
        ProfileKind::Heap(_) => &HEAP,
        ProfileKind::JavaHeap => &HEAP[..2],
        ProfileKind::Contention => &CONTENTION,
        ProfileKind::Count(name) => std::slice::from_ref(name),
    };
    let place = match requested {
        None => names.len().min(2) - 1,
        Some(name) => names.iter().position(|it| *it == name).ok_or_else(|| {
            ReadError::Unsupported(format!("it has no value `{name}`, but {}", names.join(", ")))
        })?,
    };
    let mut reader = LegacyTextReader::new(kind, place);
    lines.for_each(|line| reader.read_line(line));
    Ok(reader.finish(names[place]))
}

/// A number of a heap profile, scaled up if only a part of the allocations was sampled.
fn scaled(numbers: [u64; 4], place: usize, rate: Rate) -> u64 {
    let Rate::OneIn(rate) = rate else { return numbers[place] };
    let first = place & 2;
    let (objects, bytes) = (numbers[first] as f64, numbers[first + 1] as f64);
    if objects == 0.0 || bytes == 0.0 {
        return 0;
    }
    // The probability that an allocation of the mean size is sampled.
    let likely = 1.0 - (-bytes / objects / rate).exp();
    (numbers[place] as f64 / likely) as u64
}

/// A stack with its numbers.
struct StackRecord<'a> {
    numbers: [u64; 4],
    stack: LegacyStack<'a>,
}

struct LegacyTextReader<'a> {
    kind: ProfileKind<'a>,
    /// The index of the number that is read.
    place: usize,
    records: Vec<StackRecord<'a>>,
    maps: Maps,
    is_in_maps: bool,
    /// For contention: cycles per second, and how many events each record stands for.
    cycles_per_second: u64,
    period: u64,
    /// The number of ns in one unit of Java's contention.
    factor: u64,
    /// Java's names, which are behind its stacks.
    names: FxHashMap<u64, NamedFunction<'a>>,
    is_java: bool,
    left_out: u64,
}

impl<'a> LegacyTextReader<'a> {
    fn new(kind: ProfileKind<'a>, place: usize) -> Self {
        Self {
            kind,
            place,
            records: Vec::new(),
            maps: Maps::default(),
            is_in_maps: false,
            cycles_per_second: 0,
            period: 1,
            factor: 1,
            names: FxHashMap::default(),
            is_java: false,
            left_out: 0,
        }
    }

    fn read_line(&mut self, line: &'a str) {
        if self.is_in_maps {
            return self.maps.add(line);
        }
        let line = line.trim_end();
        if line.is_empty() {
            return;
        }
        if line.starts_with('#') {
            if let (Some(frame), Some(record)) = (named(line), self.records.last_mut()) {
                record.stack.named.push(frame);
            }
            return;
        }
        if line.starts_with("MAPPED_LIBRARIES:") || line == "--- Memory map: ---" {
            self.is_in_maps = true;
            return;
        }
        if self.is_java && line.trim_start().starts_with("0x") {
            self.names.extend(java::location(line));
            return;
        }
        if let Some((key, value)) = line.split_once('=') {
            return self.set(key.trim(), value.trim());
        }
        match self.record(line) {
            Some(record) => self.records.push(record),
            None => self.left_out += 1,
        }
    }

    fn set(&mut self, key: &str, value: &str) {
        let number = value.parse().ok().filter(|&number: &u64| number > 0);
        match key {
            "cycles/second" => self.cycles_per_second = number.unwrap_or(0),
            "sampling period" => self.period = number.unwrap_or(1),
            "format" => self.is_java = value == "java",
            "resolution" => self.factor = factor_of(value).0,
            _ => {}
        }
    }

    fn record(&self, line: &str) -> Option<StackRecord<'a>> {
        let (numbers, addresses) = line.split_once('@')?;
        let mut words = numbers.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
        let numbers = match self.kind {
            ProfileKind::Heap(_) => heap_numbers(numbers)?,
            ProfileKind::Contention | ProfileKind::JavaHeap => {
                let (cycles, count) = (words.next()??, words.next()??);
                [count, cycles, 0, 0]
            }
            ProfileKind::Count(_) => [words.next()??, 0, 0, 0],
        };
        let address = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
        let addresses = addresses.split_ascii_whitespace().map_while(address).collect();
        // The innermost function executes the call of the allocator, or of the function that waits.
        Some(StackRecord {
            numbers,
            stack: LegacyStack { addresses, is_interrupted: false, named: Vec::new() },
        })
    }

    /// The amount of a record.
    fn amount(&self, numbers: [u64; 4]) -> u64 {
        let number = numbers[self.place];
        match self.kind {
            ProfileKind::JavaHeap => scaled(numbers, self.place, JAVA_RATE),
            ProfileKind::Heap(rate) => scaled(numbers, self.place, rate),
            ProfileKind::Count(_) => number,
            ProfileKind::Contention if self.place == 0 => number.saturating_mul(self.period),
            ProfileKind::Contention => {
                let cycles = u128::from(number) * u128::from(self.period) * u128::from(self.factor);
                let nanoseconds = match self.cycles_per_second {
                    0 => cycles,
                    cycles_per_second => cycles * 1_000_000_000 / u128::from(cycles_per_second),
                };
                u64::try_from(nanoseconds).unwrap_or(u64::MAX)
            }
        }
    }

    fn finish(mut self, name: &str) -> ImportedProfile {
        let unit = match self.kind {
            ProfileKind::Heap(_) | ProfileKind::JavaHeap if self.place % 2 == 1 => Unit::Bytes,
            ProfileKind::Contention if self.place == 1 => Unit::Time,
            _ => Unit::Count,
        };
        let product = match self.kind {
            ProfileKind::Heap(_) | ProfileKind::JavaHeap => "heap",
            ProfileKind::Contention => "contention",
            ProfileKind::Count(name) => name,
        };
        let mut importer = Importer::new(&format!("{product} profile"), "pprof text");
        importer.meta_mut().measure = Measure { name: name.to_owned(), unit };
        importer.note_left_out(self.left_out, "lines that are not stacks");
        let mut samples = LegacySamples::new(importer, std::mem::take(&mut self.maps));
        samples.names = std::mem::take(&mut self.names);
        for record in &self.records {
            samples.add(&record.stack, self.amount(record.numbers));
        }
        samples.importer.finish(None)
    }
}
