//! The functions of Go's own table, each with how deep its stack is at each instruction, as Go 1.18 and later write them.

use nyquist_object::go::{Header, ListEntry, Record, Values, Version};
use std::ops::Range;

/// The table of functions.
pub(super) struct Functions<'a> {
    /// Where the code of all functions begins; 0 where the loader says so.
    pub(super) text: u64,
    header: Header,
    table: &'a [u8],
}

/// What is said of a function.
pub(super) struct Entry<'a> {
    /// Its code, from the first function's on.
    pub(super) range: Range<u32>,
    /// Whether there is no caller.
    pub(super) is_top: bool,
    /// Whether it makes the stack pointer point elsewhere than to its own frame.
    pub(super) writes_stack_pointer: bool,
    /// The values of how many bytes the stack pointer is below the return address.
    depths: Values<'a>,
}

impl<'a> Functions<'a> {
    /// Reads the header; `None` for one that is of another form.
    pub(super) fn new(table: &'a [u8]) -> Option<Self> {
        let header = Header::parse(table)?;
        // Instructions of one byte and pointers of eight: 64-bit x86.
        let is_known = header.version >= Version::Eighteen && (header.quantum, header.pointer_size) == (1, 8);
        (is_known && header.little_endian).then_some(Self { text: header.text, header, table })
    }

    /// The functions by address. One whose description is not there is left out.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'a>> + '_ {
        let list = self.list().unwrap_or_default();
        let ends = self.header.entries(list).skip(1);
        self.header.entries(list).zip(ends).filter_map(|(function, next)| self.entry(function, next))
    }

    /// The bytes of the list of functions.
    fn list(&self) -> Option<&'a [u8]> {
        let start = self.header.list;
        let end = start.checked_add(self.header.list_size()?)?;
        self.table.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    fn entry(&self, function: ListEntry, next: ListEntry) -> Option<Entry<'a>> {
        let record = Record::parse(self.from(function.record?)?, &self.header)?;
        let more = record.more?;
        let depths = self.from(self.header.values.checked_add(record.depths.into())?)?;
        Some(Entry {
            range: u32::try_from(function.start).ok()?..u32::try_from(next.start).ok()?,
            is_top: more.is_top,
            writes_stack_pointer: more.writes_stack_pointer,
            depths: Values::new(depths, self.header.quantum),
        })
    }

    fn from(&self, position: u64) -> Option<&'a [u8]> {
        self.table.get(usize::try_from(position).ok()?..)
    }
}

impl Entry<'_> {
    /// How far into the function each depth begins to hold, and the depth; `None` for one that cannot be.
    pub(super) fn depths(&self) -> impl Iterator<Item = (u32, Option<u32>)> {
        let len = u64::from(self.range.end.saturating_sub(self.range.start));
        let held = self.depths.clone().take_while(move |value| value.start < len);
        held.map(|value| (value.start as u32, u32::try_from(value.value).ok()))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const MAGIC_18: u32 = 0xffff_fff0;
    const MAGIC_20: u32 = 0xffff_fff1;

    fn entry(len: u32, depths: &[u8]) -> Vec<(u32, Option<u32>)> {
        let depths = Values::new(depths, 1);
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
