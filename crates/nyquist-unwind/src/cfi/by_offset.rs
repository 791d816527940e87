//! Parsed entries of a few offsets of a section, because descriptions refer to a handful of CIEs in turn.

use rustc_hash::FxHashMap;

/// The number of slots for recent offsets.
const PLACES: usize = 16;

/// A value for each offset that was used.
#[derive(Debug)]
pub(super) struct ByOffset<T> {
    /// The most recent offsets, so that hardly any look-up needs a hash.
    recent: Box<[(usize, T); PLACES]>,
    all: FxHashMap<usize, T>,
}

impl<T: Copy> ByOffset<T> {
    /// `none` marks slots without an offset.
    pub(super) fn new(none: T) -> Self {
        Self { recent: Box::new([(usize::MAX, none); PLACES]), all: FxHashMap::default() }
    }

    /// The value for the offset, which is made once.
    #[inline]
    pub(super) fn get_or_make(&mut self, offset: usize, make: impl FnOnce() -> T) -> &T {
        // Entries begin at multiples of four bytes.
        let recent = &mut self.recent[offset / 4 % PLACES];
        if recent.0 != offset {
            *recent = (offset, *self.all.entry(offset).or_insert_with(make));
        }
        &recent.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_made_once() {
        let (mut made, mut values) = (Vec::new(), ByOffset::new(0));
        for offset in [0, 0x18, 0, 4 * PLACES, 0, 4 * PLACES, 0x18] {
            let value = *values.get_or_make(offset, || {
                made.push(offset);
                offset + 1
            });
            assert_eq!(value, offset + 1);
        }
        assert_eq!(made, [0, 0x18, 4 * PLACES]);
    }
}
