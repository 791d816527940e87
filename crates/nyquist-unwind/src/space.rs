//! The mappings of code in one process.

use crate::Module;
use crate::rule::CfaKind;
use nyquist_object::{Avma, MappedRange, RangeMap, RelativeAddress};
use nyquist_resources::Budget;
use std::sync::Arc;

/// The executable memory of one process.
///
/// A clone shares everything, and a change copies only what is around it. So a fork is cheap, and so is a
/// child that changes little. Changing costs O(log n) in the number of mappings.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    mappings: CodeMappings,
    address_mask: Option<u64>,
}

/// The ranges of executable memory.
pub(crate) type CodeMappings = RangeMap<MappedCode>;

/// A range of executable memory.
pub(crate) type CodeMapping = MappedRange<MappedCode>;

/// What is mapped in a range of executable memory.
#[derive(Clone, Debug)]
pub(crate) struct MappedCode {
    base: Avma,
    module: Option<Arc<Module>>,
}

impl MappedCode {
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
}

impl AddressSpace {
    /// An address space without code.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, whose memory is charged to a budget. What several clones share is charged once. The budget
    /// stops no change: its owner has to drop address spaces when it is exceeded.
    pub fn within(budget: &Budget) -> Self {
        Self { mappings: RangeMap::within(budget), address_mask: None }
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
        let end = Avma(start.0.saturating_add(len));
        let code = with.map(|(base, module)| MappedCode { base, module });
        self.mappings.replace((start, end), code, |_| {});
    }

    /// The end of the highest mapping.
    #[inline]
    pub(crate) fn code_end(&self) -> u64 {
        self.mappings.last().map_or(0, |mapping| mapping.end.0)
    }

    /// All mappings, by address.
    #[inline]
    pub(crate) fn mappings(&self) -> &CodeMappings {
        &self.mappings
    }
}

/// The mapping that contains the address. The search is not inlined, so that the functions that seldom need it are.
#[cold]
pub(crate) fn find(mappings: &CodeMappings, avma: u64) -> Option<&CodeMapping> {
    mappings.find(Avma(avma))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(space: &AddressSpace) -> Vec<(u64, u64)> {
        space.mappings().iter().map(|mapping| (mapping.start.0, mapping.end.0)).collect()
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
