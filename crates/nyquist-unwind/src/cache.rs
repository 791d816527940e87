//! A small cache from code to its rule.

use crate::rule::Rule;

/// The number of entries, as a power of two. A compiler's stacks have 30,000 different addresses.
const BITS: u32 = 14;
const ENTRIES: usize = 1 << BITS;

/// The rule of one address of one module. The key never changes, so no entry has to be invalidated when
/// modules come and go. Processes that map the same module share its entries.
#[derive(Clone, Copy, Debug)]
struct CachedRule {
    module: u32,
    address: u32,
    rule: Rule,
}

const _: () = assert!(size_of::<CachedRule>() == 16);

/// Direct-mapped: a new entry replaces the entry in its slot.
#[derive(Debug)]
pub(crate) struct RuleCache {
    entries: Box<[CachedRule]>,
}

impl RuleCache {
    pub(crate) fn new() -> Self {
        // No module has number 0.
        Self { entries: vec![CachedRule { module: 0, address: 0, rule: Rule::UNCOVERED }; ENTRIES].into() }
    }

    /// The rule of the address. `find` returns it if it is not cached.
    #[inline]
    pub(crate) fn rule(&mut self, module: u32, address: u32, find: impl FnOnce() -> Rule) -> Rule {
        let entry = &mut self.entries[slot(module, address)];
        if entry.module != module || entry.address != address {
            *entry = CachedRule { module, address, rule: find() };
        }
        entry.rule
    }
}

/// Return addresses differ in all but their highest bits, and module numbers in their lowest bits.
#[inline]
fn slot(module: u32, address: u32) -> usize {
    let mixed = (address ^ module.rotate_left(24)).wrapping_mul(0x9e37_79b1);
    (mixed >> (u32::BITS - BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_modules_leave_what_is_known_of_a_module() {
        let mut cache = RuleCache::new();
        for address in 0..64 {
            assert_eq!(cache.rule(1, address, || Rule::END), Rule::END);
        }
        // Each new module has a new number.
        for module in 2..200 {
            assert_eq!(cache.rule(module, 7, || Rule::SLOW), Rule::SLOW);
        }
        let mut found_again = 0;
        for address in 0..64 {
            let found = cache.rule(1, address, || Rule::UNCOVERED);
            found_again += usize::from(found == Rule::END);
        }
        // Some addresses share a slot by chance.
        assert!(found_again >= 56, "{found_again} of 64");
    }
}
