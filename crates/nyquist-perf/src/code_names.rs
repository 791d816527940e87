//! The names in a perf map, in compact form, because a large map has millions of them.

use crate::perf_map::parse_line;
use nyquist_resources::{Budget, Charge};
use std::collections::BinaryHeap;
use std::io::{self, BufRead, BufReader, Read};

/// The number of bytes that are read in one call.
const READ_SIZE: usize = 1 << 16;

/// The maximum length of a line; the rest of a longer line is ignored.
const MAX_LINE_LEN: usize = 1 << 16;

/// The minimum number of bytes that are reserved from a budget in one call.
const PORTION: usize = 1 << 18;

/// The code that a perf map names, as read once.
#[derive(Debug)]
pub struct CodeNames {
    /// By address; none overlap.
    rows: Vec<CodeRow>,
    /// All names, one after the other, in the order of the file.
    names: String,
    is_whole: bool,
    /// The charge of the budget.
    _charge: Charge,
}

/// One piece of code.
#[derive(Clone, Copy, Debug)]
struct CodeRow {
    start: u64,
    end: u64,
    /// The start of the name. Because no name is empty, that of a later line is greater.
    name_at: u32,
    name_len: u32,
}

/// One piece of code and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedCode<'a> {
    /// The first address.
    pub start: u64,
    /// The address after the last one.
    pub end: u64,
    /// The name that the compiler wrote.
    pub name: &'a str,
}

impl CodeNames {
    /// Reads a map in chunks. Invalid lines are left out. If code overlaps, the later line in the file
    /// wins, because that code was generated later at the same address. Lines beyond the budget are left
    /// out. O(n log n).
    ///
    /// # Errors
    /// If the input cannot be read.
    pub fn read(input: impl Read, budget: &Budget) -> io::Result<Self> {
        let mut input = BufReader::with_capacity(READ_SIZE, input);
        let mut room = BudgetedNames { charge: budget.charge(), rows: Vec::new(), names: String::new() };
        let (mut line, mut is_whole) = (Vec::new(), true);
        while is_whole {
            line.clear();
            if input.by_ref().take(MAX_LINE_LEN as u64).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            if line.len() == MAX_LINE_LEN && line.last() != Some(&b'\n') {
                input.skip_until(b'\n')?;
            }
            if let Some((start, end, name)) = parse_line(&String::from_utf8_lossy(&line)) {
                is_whole = room.add(start, end, name);
            }
        }
        let BudgetedNames { mut charge, mut rows, mut names } = room;
        rows.sort_unstable_by_key(|row| (row.start, row.name_at));
        keep_latest(&mut rows);
        rows.shrink_to_fit();
        names.shrink_to_fit();
        charge.keep((rows.len() * size_of::<CodeRow>() + names.len()) as u64);
        Ok(Self { rows, names, is_whole, _charge: charge })
    }

    /// Whether the whole file was read; otherwise its rest would have exceeded the budget.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The code at an address. O(log n).
    pub fn find(&self, address: u64) -> Option<NamedCode<'_>> {
        let after = self.rows.partition_point(|row| row.start <= address);
        let row = self.rows.get(after.checked_sub(1)?).filter(|row| address < row.end)?;
        Some(self.named(row))
    }

    /// All pieces of code, by address.
    pub fn iter(&self) -> impl Iterator<Item = NamedCode<'_>> {
        self.rows.iter().map(|row| self.named(row))
    }

    /// The number of pieces of code.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn named(&self, row: &CodeRow) -> NamedCode<'_> {
        let at = row.name_at as usize;
        let name = self.names.get(at..at + row.name_len as usize).unwrap_or_default();
        NamedCode { start: row.start, end: row.end, name }
    }
}

/// The data read so far, and its budget.
struct BudgetedNames {
    charge: Charge,
    rows: Vec<CodeRow>,
    names: String,
}

impl BudgetedNames {
    /// Adds a row. Returns whether the budget permitted it.
    fn add(&mut self, start: u64, end: u64, name: &str) -> bool {
        let (Ok(name_at), Ok(name_len)) = (u32::try_from(self.names.len()), u32::try_from(name.len())) else {
            return false;
        };
        if self.rows.len() == self.rows.capacity() {
            let Some(more) = self.more(self.rows.len(), 1, size_of::<CodeRow>()) else { return false };
            self.rows.reserve_exact(more);
        }
        if self.names.capacity() - self.names.len() < name.len() {
            let Some(more) = self.more(self.names.len(), name.len(), 1) else { return false };
            self.names.reserve_exact(more);
        }
        self.rows.push(CodeRow { start, end, name_at, name_len });
        self.names.push_str(name);
        true
    }

    /// The number of items of that width by which to grow a list of `len` items that needs `needed` more,
    /// if the budget permits it.
    fn more(&mut self, len: usize, needed: usize, width: usize) -> Option<usize> {
        let least = needed.max(PORTION / width);
        // Growing by a share of the length keeps copying linear. Near the budget's end, few steps remain.
        let steps = [least.max(len / 4), least];
        steps.into_iter().find(|more| self.charge.take((more * width) as u64))
    }
}

/// Of overlapping rows, keeps the last one in the file. Rows must be in the order of their addresses.
fn keep_latest(rows: &mut Vec<CodeRow>) {
    // For the rows so far that reach the current one, their name offsets and ends. A greater offset means
    // later in the file.
    let mut reaching: BinaryHeap<(u32, u64)> = BinaryHeap::new();
    let mut retained = 0;
    for at in 0..rows.len() {
        let row = rows[at];
        while reaching.peek().is_some_and(|(_, end)| *end <= row.start) {
            reaching.pop();
        }
        let latest = reaching.peek().copied();
        let is_replaced = latest.is_some_and(|(name_at, _)| name_at > row.name_at);
        if !is_replaced || latest.is_some_and(|(_, end)| end < row.end) {
            reaching.push((row.name_at, row.end));
        }
        if is_replaced {
            continue;
        }
        // Among the kept rows, only the last one can reach this far. It is older, because otherwise it
        // would be the latest.
        if retained > 0 && rows[retained - 1].end > row.start {
            retained -= 1;
        }
        rows[retained] = row;
        retained += 1;
    }
    rows.truncate(retained);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PerfMap, PerfMapEntry};
    use std::fmt::Write as _;

    fn read(text: &[u8]) -> CodeNames {
        CodeNames::read(text, &Budget::default()).unwrap()
    }

    #[test]
    fn lines_that_make_no_sense_are_left_out() {
        let text = b"7f00 10 JS:*f /x.js:1:2\n\nnonsense\n8000 0 empty\n0x9000 0x20 py::g:/y.py\r\nffffffffffffffff 2 far\n9100 8\n9200 8 \xff";
        let map = read(text);
        let name = |address| map.find(address).map(|code| code.name);
        assert_eq!(map.len(), 3);
        assert_eq!(name(0x7f00), Some("JS:*f /x.js:1:2"));
        assert_eq!(name(0x7f0f), Some("JS:*f /x.js:1:2"));
        assert_eq!(name(0x7f10), None);
        assert_eq!(name(0x901f), Some("py::g:/y.py"));
        assert_eq!(name(0x9200), Some("\u{fffd}"));
        assert_eq!(name(0), None);
    }

    #[test]
    fn code_made_later_replaces_what_was_there() {
        let map = read(b"1000 10 a\n1010 10 b\n1020 10 c\n1008 10 new\n1000 4 small\n");
        let name = |address| map.find(address).map(|code| code.name);
        assert_eq!(
            [0x1000, 0x1005, 0x1008, 0x1017, 0x1018, 0x1020].map(name),
            [Some("small"), None, Some("new"), Some("new"), None, Some("c")]
        );
    }

    #[test]
    fn overlaps_are_what_adding_in_turn_leaves() {
        // A Lehmer generator, so that each run tests the same.
        let mut state = 1_u64;
        let mut next = |below: u64| {
            state = state * 48_271 % 0x7fff_ffff;
            state % below
        };
        for round in 0..500 {
            let (mut text, mut one_by_one) = (String::new(), PerfMap::default());
            for number in 0..next(40) {
                let (start, size) = (next(60), 1 + next(1 + round % 30));
                writeln!(text, "{start:x} {size:x} n{number}").unwrap();
                let name = format!("n{number}").into();
                one_by_one.insert(PerfMapEntry { start, end: start + size, name });
            }
            let all = |code: NamedCode<'_>| (code.start, code.end, code.name.to_owned());
            let expected = one_by_one.entries().map(|entry| (entry.start, entry.end, entry.name.to_string()));
            let map = read(text.as_bytes());
            assert_eq!(map.iter().map(all).collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{text}");
        }
    }

    #[test]
    fn what_is_beyond_the_budget_is_left_out() {
        let line = |number: u64| format!("{:x} 10 function_{number}\n", 0x1000 + number * 16);
        let text: String = (0..100_000).map(line).collect();
        let budget = Budget::new(1 << 20);
        let map = CodeNames::read(text.as_bytes(), &budget).unwrap();
        assert!(!map.is_whole());
        assert!((10_000..30_000).contains(&map.len()), "{}", map.len());
        assert_eq!(map.find(0x1000).map(|code| code.name), Some("function_0"));
        assert_eq!(map.find(0x1000 + 99_999 * 16), None);
        drop(map);
        // The charge was returned.
        assert!(budget.charge().take(1 << 20));
    }

    #[test]
    fn an_endless_line_takes_no_memory_of_its_size() {
        let endless = b"1000 10 ".chain(io::repeat(b'x').take(64 << 20)).chain(&b"\n2000 10 after\n"[..]);
        let map = CodeNames::read(endless, &Budget::new(1 << 20)).unwrap();
        assert!(map.is_whole());
        assert_eq!(map.find(0x1000).map(|code| code.name.len()), Some(MAX_LINE_LEN - 8));
        assert_eq!(map.find(0x2000).map(|code| code.name), Some("after"));
    }
}
