//! `.gopclntab`: the header, the table of functions, and their tables of numbers by instruction (Go's `runtime/symtab.go`: `pcHeader`, `functab`,
//! `step`; `runtime/runtime2.go`: `_func`), as Go 1.18 and later write them.

use std::ops::Range;

/// The header's magic numbers, of Go 1.18 and 1.20.
const MAGIC_18: u32 = 0xffff_fff0;
const MAGIC_20: u32 = 0xffff_fff1;

/// Flags of a function (`funcFlag`).
const TOP_FRAME: u8 = 1;
const WRITES_STACK_POINTER: u8 = 2;

/// The table of functions.
pub(super) struct Functions<'a> {
    /// Where the code of all functions begins; 0 where the loader says so.
    pub(super) text: u64,
    /// Pairs of numbers: where a function begins from there on, and where its description is from this table on. Behind the last one is where
    /// its code ends.
    table: &'a [u8],
    count: usize,
    /// The tables of numbers by instruction.
    numbers: &'a [u8],
    /// Where a description's flags are.
    flags: usize,
}

/// What is said of a function.
pub(super) struct Entry<'a> {
    /// Its code, from the first function's on.
    pub(super) range: Range<u32>,
    /// Whether there is no caller.
    pub(super) is_top: bool,
    /// Whether it makes the stack pointer point elsewhere than to its own frame.
    pub(super) writes_stack_pointer: bool,
    /// The table of how many bytes the stack pointer is below the return address.
    depths: &'a [u8],
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?)).ok()
}

impl<'a> Functions<'a> {
    /// Reads the header; `None` for one that is of another form.
    pub(super) fn new(section: &'a [u8]) -> Option<Self> {
        let flags = match word(section, 0)? {
            MAGIC_18 => 37,
            // The line that a function begins at stands before them.
            MAGIC_20 => 41,
            _ => return None,
        };
        // Instructions of one byte and pointers of eight: 64-bit x86.
        if section.get(4..8)? != [0, 0, 1, 8] {
            return None;
        }
        let (count, text) = (long(section, 8)?, long(section, 24)? as u64);
        let (numbers, table) = (section.get(long(section, 56)?..)?, section.get(long(section, 64)?..)?);
        Some(Self { text, table, count: count.min(table.len() / 8), numbers, flags })
    }

    /// The functions by address. One whose description is not there is left out.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'a>> + '_ {
        (0..self.count).filter_map(|number| self.entry(number))
    }

    fn entry(&self, number: usize) -> Option<Entry<'a>> {
        let at = number * 8;
        let (start, end) = (word(self.table, at)?, word(self.table, at + 8)?);
        let description = self.table.get(word(self.table, at + 4)? as usize..)?;
        let flags = *description.get(self.flags)?;
        let depths = self.numbers.get(word(description, 16)? as usize..)?;
        Some(Entry {
            range: start..end,
            is_top: flags & TOP_FRAME != 0,
            writes_stack_pointer: flags & WRITES_STACK_POINTER != 0,
            depths,
        })
    }
}

impl Entry<'_> {
    /// How far into the function each depth begins to hold, and the depth; `None` for one that cannot be.
    pub(super) fn depths(&self) -> impl Iterator<Item = (u32, Option<u32>)> {
        let mut bytes = self.depths.iter().copied();
        let len = self.range.end.saturating_sub(self.range.start);
        let (mut at, mut depth) = (0_u32, -1_i32);
        std::iter::from_fn(move || {
            let change = number(&mut bytes)?;
            if at >= len || (change == 0 && at > 0) {
                return None;
            }
            // The lowest bit is the sign.
            depth = depth.wrapping_add((change >> 1) as i32 ^ -((change & 1) as i32));
            let start = at;
            at = at.checked_add(number(&mut bytes)?).filter(|end| *end > start)?;
            Some((start, u32::try_from(depth).ok()))
        })
    }
}

/// A number of seven bits a byte, the lowest ones first.
fn number(bytes: &mut impl Iterator<Item = u8>) -> Option<u32> {
    let mut value = 0_u32;
    for shift in (0..32).step_by(7) {
        let byte = bytes.next()?;
        value |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn entry(len: u32, depths: &[u8]) -> Vec<(u32, Option<u32>)> {
        Entry { range: 0..len, is_top: false, writes_stack_pointer: false, depths }.depths().collect()
    }

    #[test]
    fn depths_are_changes_from_the_one_before() {
        // + 1 from - 1 for 4 bytes, + 24 for 200, - 24 for 1.
        let depths = [2, 4, 48, 200, 1, 47, 1, 0];
        assert_eq!(entry(205, &depths), [(0, Some(0)), (4, Some(24)), (204, Some(0))]);
        assert_eq!(entry(4, &depths), [(0, Some(0))]);
        assert_eq!(entry(205, &depths[..4]), [(0, Some(0))]);
        assert_eq!(entry(9, &[0, 1, 0]), [(0, None)]);
        assert!(entry(9, &[2, 0, 2, 0]).is_empty());
        assert!(entry(9, &[0xff; 9]).is_empty());
    }

    /// A table of one function, and what it is made of by hand.
    pub(in crate::go) fn table(magic: u32, flags: u8, depths: &[u8]) -> Vec<u8> {
        let mut bytes = [magic, 0x0801_0000].map(u32::to_le_bytes).concat();
        let numbers = 72;
        let table = (numbers + depths.len()).next_multiple_of(8) as u64;
        for long in [1, 0, 0x40_1000, 0, 0, 0, numbers as u64, table] {
            bytes.extend(u64::to_le_bytes(long));
        }
        bytes.extend(depths);
        bytes.resize(table as usize, 0);
        bytes.extend([0x10_u32, 12, 0x40].map(u32::to_le_bytes).concat());
        let mut description = vec![0; 48];
        description[if magic == MAGIC_18 { 37 } else { 41 }] = flags;
        bytes.extend(description);
        bytes
    }

    #[test]
    fn both_forms_are_read_and_others_are_not() {
        for magic in [MAGIC_18, MAGIC_20] {
            let bytes = table(magic, 3, &[2, 4, 0]);
            let functions = Functions::new(&bytes).unwrap();
            let found: Vec<_> = functions.entries().collect();
            let [entry] = &*found else { panic!("{} functions", found.len()) };
            assert_eq!((functions.text, &entry.range), (0x40_1000, &(0x10..0x40)));
            assert!(entry.is_top && entry.writes_stack_pointer);
            assert_eq!(entry.depths().collect::<Vec<_>>(), [(0, Some(0))]);
            for len in 0..bytes.len() {
                let _ = Functions::new(&bytes[..len]).map(|functions| functions.entries().count());
            }
        }
        assert!(Functions::new(&table(0xffff_fffa, 0, &[2, 4, 0])).is_none());
    }
}
