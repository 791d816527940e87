//! Perf maps: `/tmp/perf-PID.map`, the text file in which a just-in-time compiler names its code.
//!
//! The source is the kernel's `tools/perf/Documentation/jit-interface.txt`: a line for each piece of code,
//! `START SIZE NAME`, both numbers in hexadecimal, the name to the end of the line.

use std::collections::BTreeMap;

/// The code that a map names, if pieces are added one by one. [`CodeNames`](crate::CodeNames) is the
/// contents of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerfMap {
    /// By first address; none overlap.
    entries: BTreeMap<u64, PerfMapEntry>,
}

/// One piece of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfMapEntry {
    /// The first address.
    pub start: u64,
    /// The address after the last one.
    pub end: u64,
    /// The name that the compiler wrote.
    pub name: Box<str>,
}

impl PerfMap {
    /// The code at an address. O(log n).
    pub fn find(&self, address: u64) -> Option<&PerfMapEntry> {
        self.entries.range(..=address).next_back().map(|(_, entry)| entry).filter(|entry| address < entry.end)
    }

    /// All pieces of code, by address.
    pub fn entries(&self) -> impl Iterator<Item = &PerfMapEntry> {
        self.entries.values()
    }

    /// The number of pieces of code.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a piece of code. It replaces those that it overlaps. O(log n) for each of them.
    pub fn insert(&mut self, new: PerfMapEntry) {
        let overlaps = self.entries.range(..new.end).rev().take_while(|(_, entry)| entry.end > new.start);
        let overlapped: Vec<u64> = overlaps.map(|(&start, _)| start).collect();
        for start in overlapped {
            self.entries.remove(&start);
        }
        self.entries.insert(new.start, new);
    }
}

/// The addresses of a line's code, from the first to the one after the last, and its name.
pub(crate) fn parse_line(line: &str) -> Option<(u64, u64, &str)> {
    let mut words = line.trim_end_matches(['\r', '\n']).splitn(3, ' ');
    let start = parse_hex(words.next()?)?;
    let end = start.checked_add(parse_hex(words.next()?)?)?;
    let name = words.next()?.trim();
    (start < end && !name.is_empty()).then_some((start, end, name))
}

/// Some compilers write `0x`, some do not.
fn parse_hex(word: &str) -> Option<u64> {
    let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")).unwrap_or(word);
    u64::from_str_radix(digits, 16).ok()
}
