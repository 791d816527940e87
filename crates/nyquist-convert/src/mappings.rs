//! The mappings of files in one address space.

use crate::module_index::ModuleIndex;
use nyquist_object::{Avma, Change, MappedRange, RangeMap};
use nyquist_resources::Budget;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;

/// The keys of the hashes. Nobody can make an address space whose hash is that of another one.
static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The executable ranges of one address space. A clone shares everything, and a change costs O(log n).
#[derive(Clone, Debug, Default)]
pub(crate) struct Mappings {
    ranges: RangeMap<MappedCode>,
    /// The sum of the hashes of the ranges.
    hash: u64,
}

/// What is mapped in a range.
#[derive(Clone, Copy, Debug, Hash)]
struct MappedCode {
    module: Option<(ModuleIndex, Avma)>,
    /// What the module is in all stores, which have other indices for it.
    identity: usize,
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

impl From<&MappedRange<MappedCode>> for Range {
    fn from(range: &MappedRange<MappedCode>) -> Self {
        Self { start: range.start, end: range.end, module: range.value.module }
    }
}

impl Mappings {
    /// No mappings. The memory of those that are added is charged to this budget.
    pub(crate) fn within(budget: &Budget) -> Self {
        Self { ranges: RangeMap::within(budget), hash: 0 }
    }

    /// Inserts a range, and replaces overlapping ranges, as `mmap` does. O(log n) in the number of ranges.
    /// `identity` tells the module from others, whatever its index.
    pub(crate) fn insert(&mut self, new: Range, identity: usize) {
        self.replace(new.start, new.end, Some(MappedCode { module: new.module, identity }));
    }

    /// Removes everything between two addresses.
    pub(crate) fn remove(&mut self, start: Avma, end: Avma) {
        self.replace(start, end, None);
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
        self.hash = 0;
    }

    /// Whether nothing is mapped.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The number of ranges.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The range that holds an address. O(log n).
    pub(crate) fn find(&self, address: Avma) -> Option<Range> {
        self.ranges.find(address).map(Range::from)
    }

    /// The ranges that overlap the span between two addresses. O(log n) for each.
    pub(crate) fn within_span(&self, start: Avma, end: Avma) -> impl Iterator<Item = Range> {
        self.ranges.overlapping(start, end).map(Range::from)
    }

    /// A hash of the ranges and the identities of their modules, whatever their order. O(1).
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    fn replace(&mut self, start: Avma, end: Avma, with: Option<MappedCode>) {
        let hash = &mut self.hash;
        self.ranges.replace((start, end), with, |change| {
            *hash = match change {
                Change::Removed(range) => hash.wrapping_sub(hash_of(range)),
                Change::Added(range) => hash.wrapping_add(hash_of(range)),
            }
        });
    }
}

fn hash_of(range: &MappedRange<MappedCode>) -> u64 {
    let MappedCode { module, identity } = range.value;
    KEYS.hash_one((range.start, range.end, module.map(|(_, base)| base), identity))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> Range {
        Range { start: Avma(start), end: Avma(end), module: None }
    }

    fn ranges(mappings: &Mappings) -> Vec<(u64, u64)> {
        mappings.within_span(Avma(0), Avma(u64::MAX)).map(|range| (range.start.0, range.end.0)).collect()
    }

    #[test]
    fn a_new_range_replaces_what_it_covers() {
        let mut mappings = Mappings::default();
        mappings.insert(range(10, 20), 0);
        mappings.insert(range(30, 40), 0);
        mappings.insert(range(15, 35), 0);
        assert_eq!(ranges(&mappings), [(10, 15), (15, 35), (35, 40)]);
        mappings.insert(range(20, 22), 0);
        assert_eq!(ranges(&mappings), [(10, 15), (15, 20), (20, 22), (22, 35), (35, 40)]);
        mappings.remove(Avma(0), Avma(100));
        assert_eq!(ranges(&mappings), []);
    }

    #[test]
    fn an_address_is_found_in_its_range_only() {
        let mut mappings = Mappings::default();
        mappings.insert(range(10, 20), 0);
        for (address, found) in
            [(0, false), (9, false), (10, true), (19, true), (20, false), (u64::MAX, false)]
        {
            assert_eq!(mappings.find(Avma(address)).is_some(), found, "{address}");
        }
    }

    #[test]
    fn a_clone_is_independent() {
        let mut parent = Mappings::default();
        parent.insert(range(10, 20), 0);
        let mut child = parent.clone();
        child.remove(Avma(0), Avma(15));
        assert_eq!(ranges(&parent), [(10, 20)]);
        assert_eq!(ranges(&child), [(15, 20)]);
    }

    #[test]
    fn a_hash_is_of_what_is_mapped_in_any_order() {
        let mapped = |ranges: &[(u64, u64, usize)]| {
            let mut mappings = Mappings::default();
            for &(start, end, identity) in ranges {
                mappings.insert(range(start, end), identity);
            }
            mappings
        };
        let mut mappings = mapped(&[(10, 20, 1), (30, 40, 2), (12, 15, 3)]);
        assert_eq!(mappings.hash(), mapped(&[(30, 40, 2), (15, 20, 1), (12, 15, 3), (10, 12, 1)]).hash());
        for other in [[(10, 20, 2), (30, 40, 2)], [(10, 20, 1), (30, 41, 2)], [(10, 20, 2), (30, 40, 1)]] {
            assert_ne!(mapped(&[(10, 20, 1), (30, 40, 2)]).hash(), mapped(&other).hash(), "{other:?}");
        }
        mappings.remove(Avma(12), Avma(15));
        assert_ne!(mappings.hash(), mapped(&[(10, 20, 1), (30, 40, 2)]).hash());
        mappings.remove(Avma(0), Avma(50));
        assert_eq!(mappings.hash(), 0);
    }
}
