//! The mappings of files in one address space.

use crate::module_index::ModuleIndex;
use nyquist_object::Avma;
use std::sync::Arc;

/// The executable ranges of one address space. A clone shares everything until one of the two changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mappings {
    /// Sorted by start; none overlap.
    ranges: Arc<Vec<Range>>,
}

/// One range of executable memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// The first address.
    pub(crate) start: Avma,
    /// The address after the last one.
    pub(crate) end: Avma,
    /// The mapped module, and the address of its image base. `None` for code that is in no file.
    pub(crate) module: Option<(ModuleIndex, Avma)>,
}

impl Range {
    /// Whether an address is in the range.
    pub(crate) fn contains(&self, address: Avma) -> bool {
        self.start <= address && address < self.end
    }
}

impl Mappings {
    /// Inserts a range, and replaces overlapping ranges, as `mmap` does. O(n) in the number of ranges.
    pub(crate) fn insert(&mut self, new: Range) {
        self.replace(new.start, new.end, Some(new));
    }

    /// Removes everything between two addresses.
    pub(crate) fn remove(&mut self, start: Avma, end: Avma) {
        self.replace(start, end, None);
    }

    /// Whether nothing is mapped.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges, by address.
    pub(crate) fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// The range that holds an address. O(log n).
    pub(crate) fn find(&self, address: Avma) -> Option<&Range> {
        let after = self.ranges.partition_point(|range| range.start <= address);
        self.ranges.get(after.checked_sub(1)?).filter(|range| range.contains(address))
    }

    /// The ranges that overlap the span between two addresses. O(log n).
    pub(crate) fn within(&self, start: Avma, end: Avma) -> &[Range] {
        let first = self.ranges.partition_point(|range| range.end <= start);
        let last = self.ranges.partition_point(|range| range.start < end);
        self.ranges.get(first..last).unwrap_or_default()
    }

    fn replace(&mut self, start: Avma, end: Avma, with: Option<Range>) {
        if start >= end {
            return;
        }
        let ranges = Arc::make_mut(&mut self.ranges);
        let first = ranges.partition_point(|range| range.end <= start);
        let last = ranges.partition_point(|range| range.start < end);
        let before = ranges[first..last].first().filter(|range| range.start < start);
        let before = before.map(|range| Range { end: start, ..*range });
        let after = ranges[first..last].last().filter(|range| end < range.end);
        let after = after.map(|range| Range { start: end, ..*range });
        ranges.splice(first..last, before.into_iter().chain(with).chain(after));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> Range {
        Range { start: Avma(start), end: Avma(end), module: None }
    }

    fn ranges(mappings: &Mappings) -> Vec<(u64, u64)> {
        mappings.ranges.iter().map(|range| (range.start.0, range.end.0)).collect()
    }

    #[test]
    fn a_new_range_replaces_what_it_covers() {
        let mut mappings = Mappings::default();
        mappings.insert(range(10, 20));
        mappings.insert(range(30, 40));
        mappings.insert(range(15, 35));
        assert_eq!(ranges(&mappings), [(10, 15), (15, 35), (35, 40)]);
        mappings.insert(range(20, 22));
        assert_eq!(ranges(&mappings), [(10, 15), (15, 20), (20, 22), (22, 35), (35, 40)]);
        mappings.remove(Avma(0), Avma(100));
        assert_eq!(ranges(&mappings), []);
    }

    #[test]
    fn an_address_is_found_in_its_range_only() {
        let mut mappings = Mappings::default();
        mappings.insert(range(10, 20));
        for (address, found) in
            [(0, false), (9, false), (10, true), (19, true), (20, false), (u64::MAX, false)]
        {
            assert_eq!(mappings.find(Avma(address)).is_some(), found, "{address}");
        }
    }

    #[test]
    fn a_clone_is_independent() {
        let mut parent = Mappings::default();
        parent.insert(range(10, 20));
        let mut child = parent.clone();
        child.remove(Avma(0), Avma(15));
        assert_eq!(ranges(&parent), [(10, 20)]);
        assert_eq!(ranges(&child), [(15, 20)]);
    }
}
