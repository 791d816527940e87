//! CPU profiles of gperftools (`CPUPROFILE=FILE`): words of the machine's size and byte order, then the list
//! of mapped files. Those of Java have the names of functions in its place.

use super::java;
use super::maps::Maps;
use super::stacks::{LegacySamples, LegacyStack};
use crate::error::{ImportedProfile, Note, ReadError};
use crate::import::Importer;

const FORMAT: &str = "a CPU profile of gperftools";

/// The words of the smallest header: 0, the number of words that follow it, the version, the period and
/// another 0.
const HEADER: usize = 5;

/// The versions.
const GPERFTOOLS: u64 = 0;
const JAVA: u64 = 1;

/// The storage of words in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WordFormat {
    size: usize,
    is_big_endian: bool,
}

impl WordFormat {
    const ALL: [Self; 4] = [
        Self { size: 8, is_big_endian: false },
        Self { size: 4, is_big_endian: false },
        Self { size: 8, is_big_endian: true },
        Self { size: 4, is_big_endian: true },
    ];

    /// The word with this index.
    fn get(self, bytes: &[u8], number: usize) -> Option<u64> {
        let start = number.checked_mul(self.size)?;
        let word = bytes.get(start..start.checked_add(self.size)?)?;
        let add = |value: u64, &byte: &u8| value << 8 | u64::from(byte);
        Some(if self.is_big_endian { word.iter().fold(0, add) } else { word.iter().rev().fold(0, add) })
    }

    /// Detects the storage of words from a file's header. Also returns the period in µs, and whether it is Java's.
    fn of(bytes: &[u8]) -> Option<(Self, u64, bool)> {
        Self::ALL.into_iter().find_map(|words| {
            let word = |number| words.get(bytes, number);
            let (zero, length, version, period, padding) = (word(0)?, word(1)?, word(2)?, word(3)?, word(4)?);
            let is_header = zero == 0
                && (3..256).contains(&length)
                && matches!(version, GPERFTOOLS | JAVA)
                && padding == 0;
            let has_period = (1..=u64::from(u32::MAX)).contains(&period);
            (is_header && has_period).then_some((words, period, version == JAVA))
        })
    }
}

/// Whether a file begins like a CPU profile.
pub(crate) fn is_cpu(start: &[u8]) -> bool {
    WordFormat::of(start).is_some()
}

/// Reads a CPU profile: each record has a number of periods of CPU time. The file has no times and no
/// threads. Addresses that are in a mapped file are relative to it, and have no names yet. O(bytes).
///
/// # Errors
/// The file does not begin like a CPU profile.
pub fn read_cpu(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    let malformed = || ReadError::Malformed { format: FORMAT, problem: "it does not begin as one".into() };
    let (words, period, is_java) = WordFormat::of(bytes).ok_or_else(malformed)?;
    let first = words.get(bytes, 1).and_then(|length| usize::try_from(length).ok()).unwrap_or(0) + 2;
    let (records, end) = records(words, bytes, first.max(HEADER));
    let mut maps = Maps::default();
    let list = end.and_then(|end| bytes.get(end..)).unwrap_or_default();
    let list = String::from_utf8_lossy(list);
    if !is_java {
        list.lines().for_each(|line| maps.add(line));
    }
    let nanoseconds = period.saturating_mul(1000);
    let mut samples = LegacySamples::new(Importer::new("CPU profile", "gperftools"), maps);
    if is_java {
        samples.names = list.lines().filter_map(java::location).collect();
    }
    for (count, addresses) in records {
        let stack = LegacyStack { addresses, is_interrupted: true, named: Vec::new() };
        samples.add(&stack, count.saturating_mul(nanoseconds));
    }
    if end.is_none() {
        samples.importer.note(Note::Cut { place: "its end".into() });
    }
    Ok(samples.importer.finish(Some(nanoseconds)))
}

/// The counts and addresses of the records, and where the list of mapped files begins, if the file is not
/// truncated.
fn records(words: WordFormat, bytes: &[u8], mut at: usize) -> (Vec<(u64, Vec<u64>)>, Option<usize>) {
    let mut records = Vec::new();
    loop {
        let (Some(count), Some(length)) = (words.get(bytes, at), words.get(bytes, at + 1)) else {
            return (records, None);
        };
        // The trailer: no samples, and one address, which is 0.
        if count == 0 && length == 1 && words.get(bytes, at + 2) == Some(0) {
            return (records, Some((at + 3) * words.size));
        }
        let left = (bytes.len() / words.size).saturating_sub(at + 2);
        let Some(length) = usize::try_from(length).ok().filter(|length| (1..=left).contains(length)) else {
            return (records, None);
        };
        let addresses = (0..length).filter_map(|place| words.get(bytes, at + 2 + place)).collect();
        records.push((count, addresses));
        at += 2 + length;
    }
}
