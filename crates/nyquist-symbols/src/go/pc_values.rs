//! Tables of values by address: the file, line or inlined call of each instruction of a function.

use crate::section_contents::SectionContents;
use nyquist_object::go::PcValueReader;

/// The values of one function, each with the offset in the function at which it ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PcValues(Vec<(u64, i32)>);

impl PcValues {
    /// Reads the table at `offset`, as far as a function of `size` bytes needs it. It ends at damaged data.
    pub(super) fn read(table: &SectionContents, offset: u64, quantum: u8, size: u64) -> Self {
        let rest = table.len().saturating_sub(offset);
        // The end of the table is only known after it has been read.
        let mut want = 1 << 10;
        loop {
            let Some(bytes) = table.window(offset, want) else { return Self::default() };
            let mut list = PcValueReader::new(&bytes, quantum);
            let mut values = Self::default();
            while values.end() < size
                && let Some(value) = list.next()
            {
                values.0.push((value.end, value.value));
            }
            if list.is_whole() || values.end() >= size || want >= rest {
                return values;
            }
            want *= 4;
        }
    }

    /// The end of the last value.
    fn end(&self) -> u64 {
        self.0.last().map_or(0, |&(end, _)| end)
    }

    /// The value at an offset in the function. `None` if there is none, or if it is negative.
    pub(super) fn at(&self, distance: u64) -> Option<u32> {
        let index = self.0.partition_point(|&(end, _)| end <= distance);
        self.0.get(index).and_then(|&(_, value)| u32::try_from(value).ok())
    }

    /// All values, which may contain duplicates.
    pub(super) fn all(&self) -> impl Iterator<Item = u32> {
        self.0.iter().filter_map(|&(_, value)| u32::try_from(value).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], quantum: u8, size: u64) -> PcValues {
        let table = SectionContents::from([&[0xee; 3], bytes].concat());
        PcValues::read(&table, 3, quantum, size)
    }

    #[test]
    fn values_reach_from_one_address_to_the_next() {
        // -1 + 6 for 4 bytes, 5 - 3 for 2, 2 + 100 for 300.
        let values = read(&[12, 4, 5, 2, 200, 1, 172, 2, 0, 9, 9], 1, 1000);
        let found = [0, 3, 4, 5, 6, 305, 306].map(|distance| values.at(distance));
        assert_eq!(found, [Some(5), Some(5), Some(2), Some(2), Some(102), Some(102), None]);
        assert_eq!(values.all().collect::<Vec<_>>(), [5, 2, 102]);
        assert_eq!(read(&[12, 4, 0], 4, 1000).at(15), Some(5), "in instructions of four bytes");
    }

    #[test]
    fn no_value_is_no_value() {
        // The first difference may be 0: -1 for 4 bytes, then 0.
        let values = read(&[0, 4, 2, 4, 0], 1, 1000);
        assert_eq!([0, 4].map(|distance| values.at(distance)), [None, Some(0)]);
    }

    #[test]
    fn reading_ends_with_function_table_or_bytes() {
        let long = [[2_u8, 1]; 1000].concat();
        assert_eq!(read(&long, 1, 10).all().count(), 10);
        assert_eq!(read(&long, 1, u64::MAX).all().count(), 1000, "beyond the first window");
        assert_eq!(read(&[2, 0, 2, 0, 2, 0], 1, 10), PcValues::default(), "no progress");
        assert_eq!(read(&[2, 4, 2], 1, 10).at(0), Some(0));
        assert_eq!(PcValues::read(&SectionContents::default(), u64::MAX, 1, 10), PcValues::default());
    }
}
