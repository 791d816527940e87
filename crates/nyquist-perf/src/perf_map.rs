//! Perf maps: `/tmp/perf-PID.map`, the text file in which a just-in-time compiler names its code.
//!
//! The source is the kernel's `tools/perf/Documentation/jit-interface.txt`: a line for each piece of code, `START SIZE
//! NAME`, both numbers in hexadecimal, the name to the end of the line.

use std::collections::BTreeMap;

/// The code that a map names.
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
    /// The name as the compiler wrote it.
    pub name: Box<str>,
}

impl PerfMap {
    /// Reads a map. Lines that cannot be read are left out; of code that overlaps, what stands later in the file counts:
    /// it was made later, where the other was. O(n log n).
    pub fn parse(text: &[u8]) -> Self {
        let mut map = Self::default();
        for entry in text.split(|&byte| byte == b'\n').filter_map(parse_line) {
            map.insert(entry);
        }
        map
    }

    /// The code that holds an address. O(log n).
    pub fn find(&self, address: u64) -> Option<&PerfMapEntry> {
        self.entries.range(..=address).next_back().map(|(_, entry)| entry).filter(|entry| address < entry.end)
    }

    /// All pieces of code, by address.
    pub fn entries(&self) -> impl Iterator<Item = &PerfMapEntry> {
        self.entries.values()
    }

    /// How many pieces of code there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a piece of code. It takes the place of those that it overlaps. O(log n) for each of them.
    pub fn insert(&mut self, new: PerfMapEntry) {
        let overlaps = self.entries.range(..new.end).rev().take_while(|(_, entry)| entry.end > new.start);
        let overlapped: Vec<u64> = overlaps.map(|(&start, _)| start).collect();
        for start in overlapped {
            self.entries.remove(&start);
        }
        self.entries.insert(new.start, new);
    }
}

fn parse_line(line: &[u8]) -> Option<PerfMapEntry> {
    let line = String::from_utf8_lossy(line);
    let mut words = line.trim_end_matches('\r').splitn(3, ' ');
    let start = parse_hex(words.next()?)?;
    let end = start.checked_add(parse_hex(words.next()?)?)?;
    let name = words.next()?.trim();
    (start < end && !name.is_empty()).then(|| PerfMapEntry { start, end, name: name.into() })
}

/// Some compilers write `0x`, some do not.
fn parse_hex(word: &str) -> Option<u64> {
    let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")).unwrap_or(word);
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_make_no_sense_are_left_out() {
        let text = b"7f00 10 JS:*f /x.js:1:2\n\nnonsense\n8000 0 empty\n0x9000 0x20 py::g:/y.py\r\nffffffffffffffff 2 far\n9100 8\n9200 8 \xff";
        let map = PerfMap::parse(text);
        let name = |address| map.find(address).map(|entry| &*entry.name);
        assert_eq!(map.len(), 3);
        assert_eq!(name(0x7f00), Some("JS:*f /x.js:1:2"));
        assert_eq!(name(0x7f0f), Some("JS:*f /x.js:1:2"));
        assert_eq!(name(0x7f10), None);
        assert_eq!(name(0x901f), Some("py::g:/y.py"));
        assert_eq!(name(0x9200), Some("\u{fffd}"));
        assert_eq!(name(0), None);
    }

    #[test]
    fn code_that_was_made_later_replaces_what_was_there() {
        let map = PerfMap::parse(b"1000 10 a\n1010 10 b\n1020 10 c\n1008 10 new\n1000 4 small\n");
        let name = |address| map.find(address).map(|entry| &*entry.name);
        assert_eq!(
            [0x1000, 0x1005, 0x1008, 0x1017, 0x1018, 0x1020].map(name),
            [Some("small"), None, Some("new"), Some("new"), None, Some("c")]
        );
    }
}
