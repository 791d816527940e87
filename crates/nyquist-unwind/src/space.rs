//! The mappings of code in one process.

use crate::Module;
use crate::rule::CfaKind;
use nyquist_object::{Avma, RelativeAddress};
use std::sync::Arc;

/// The executable memory of one process.
///
/// A clone shares everything until one of the two changes, so a fork is cheap. Changing costs O(n) in the
/// number of mappings.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    /// Sorted by start; none overlap.
    mappings: Arc<Vec<CodeMapping>>,
    address_mask: Option<u64>,
}

/// A range of executable memory.
#[derive(Clone, Debug)]
pub(crate) struct CodeMapping {
    start: u64,
    /// The address after the last byte.
    end: u64,
    base: Avma,
    module: Option<Arc<Module>>,
}

impl CodeMapping {
    /// The module of this code. `None` for code without tables.
    #[inline]
    pub(crate) fn module(&self) -> Option<&Module> {
        self.module.as_deref()
    }

    /// The address relative to the module's image base.
    #[inline]
    pub(crate) fn relative(&self, avma: u64) -> Option<RelativeAddress> {
        RelativeAddress::from_avma(Avma(avma), self.base)
    }

    #[inline]
    pub(crate) fn contains(&self, avma: u64) -> bool {
        self.start <= avma && avma < self.end
    }
}

impl AddressSpace {
    /// An address space without code.
    pub fn new() -> Self {
        Self::default()
    }

    /// Maps executable memory of a module whose image base is at `base`. Replaces earlier mappings in the
    /// range, as `mmap` does.
    pub fn map(&mut self, start: Avma, len: u64, base: Avma, module: Arc<Module>) {
        self.replace(start, len, Some((base, Some(module))));
    }

    /// Maps executable memory that has no tables: the code of a JIT compiler, or of a file that is missing.
    /// It is walked by frame pointers.
    pub fn map_code(&mut self, start: Avma, len: u64) {
        self.replace(start, len, Some((start, None)));
    }

    /// Sets which bits of a return address are the address, for machines that sign return addresses (pointer
    /// authentication of 64-bit ARM, whose mask Linux reports by `NT_ARM_PAC_MASK`). Without this call, they
    /// are as many as the highest mapping needs.
    pub fn set_address_mask(&mut self, mask: u64) {
        self.address_mask = Some(mask);
    }

    /// Which bits of a return address are the address, if that was set.
    #[inline]
    pub(crate) fn address_mask(&self) -> Option<u64> {
        self.address_mask
    }

    /// Removes whatever is mapped in the range.
    pub fn unmap(&mut self, start: Avma, len: u64) {
        self.replace(start, len, None);
    }

    /// The start of the function at an address, according to the unwind information. `None` if no unwind
    /// information describes the address. O(log n) in the number of mappings and of functions.
    pub fn function_at(&self, address: Avma) -> Option<Avma> {
        let mapping = find(self.mappings(), address.0)?;
        let (module, relative) = mapping.module().zip(mapping.relative(address.0))?;
        if module.rule(relative).kind() == CfaKind::Uncovered {
            return None;
        }
        Some(Avma(address.0.wrapping_sub(u64::from(module.offset_in_function(relative)?))))
    }

    fn replace(&mut self, start: Avma, len: u64, with: Option<(Avma, Option<Arc<Module>>)>) {
        let (start, end) = (start.0, start.0.saturating_add(len));
        if start == end {
            return;
        }
        let mappings = Arc::make_mut(&mut self.mappings);
        let first = mappings.partition_point(|mapping| mapping.end <= start);
        let last = mappings.partition_point(|mapping| mapping.start < end);
        let overlapped = mappings.get(first..last).unwrap_or_default();
        let before = overlapped.first().filter(|mapping| mapping.start < start);
        let before = before.map(|mapping| CodeMapping { end: start, ..mapping.clone() });
        let after = overlapped.last().filter(|mapping| end < mapping.end);
        let after = after.map(|mapping| CodeMapping { start: end, ..mapping.clone() });
        let new = with.map(|(base, module)| CodeMapping { start, end, base, module });
        mappings.splice(first..last.max(first), before.into_iter().chain(new).chain(after));
    }

    /// The end of the highest mapping.
    #[inline]
    pub(crate) fn code_end(&self) -> u64 {
        self.mappings.last().map_or(0, |mapping| mapping.end)
    }

    /// All mappings, by address.
    #[inline]
    pub(crate) fn mappings(&self) -> &[CodeMapping] {
        &self.mappings
    }
}

/// The mapping that contains the address.
#[inline]
pub(crate) fn find(mappings: &[CodeMapping], avma: u64) -> Option<&CodeMapping> {
    let after = mappings.partition_point(|mapping| mapping.start <= avma);
    mappings.get(after.wrapping_sub(1)).filter(|mapping| mapping.contains(avma))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(space: &AddressSpace) -> Vec<(u64, u64)> {
        space.mappings().iter().map(|mapping| (mapping.start, mapping.end)).collect()
    }

    #[test]
    fn a_new_mapping_replaces_what_it_covers() {
        let check = |start, len, expected: &[(u64, u64)]| {
            let mut space = AddressSpace::new();
            space.map_code(Avma(100), 50);
            space.map_code(Avma(200), 50);
            space.map_code(Avma(start), len);
            assert_eq!(ranges(&space), expected, "{start} + {len}");
        };
        check(0, 50, &[(0, 50), (100, 150), (200, 250)]);
        check(150, 50, &[(100, 150), (150, 200), (200, 250)]);
        check(110, 10, &[(100, 110), (110, 120), (120, 150), (200, 250)]);
        check(100, 50, &[(100, 150), (200, 250)]);
        check(140, 70, &[(100, 140), (140, 210), (210, 250)]);
        check(50, 500, &[(50, 550)]);
        check(120, 0, &[(100, 150), (200, 250)]);
        check(240, u64::MAX, &[(100, 150), (200, 240), (240, u64::MAX)]);
    }

    #[test]
    fn unmapping_leaves_the_rest() {
        let mut space = AddressSpace::new();
        space.map_code(Avma(100), 100);
        let parent = space.clone();
        space.unmap(Avma(120), 10);
        assert_eq!(ranges(&space), [(100, 120), (130, 200)]);
        assert_eq!(ranges(&parent), [(100, 200)]);
        assert!(find(space.mappings(), 125).is_none());
        assert!(find(space.mappings(), 130).is_some());
        assert!(find(space.mappings(), 200).is_none());
        assert!(find(space.mappings(), 0).is_none());
    }

    #[test]
    fn the_rest_of_a_mapping_keeps_its_base() {
        let mut space = AddressSpace::new();
        space.map_code(Avma(100), 100);
        space.unmap(Avma(100), 50);
        let rest = find(space.mappings(), 160).and_then(|mapping| mapping.relative(160));
        assert_eq!(rest, Some(RelativeAddress(60)));
    }
}
