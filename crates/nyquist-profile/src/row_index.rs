//! Finds the row of a table that equals a new one, by hashes, without a second copy of the rows.

use std::hash::{Hash, Hasher as _};

use rustc_hash::FxHasher;

/// The indexes of a table's rows by the rows' hashes.
///
/// A slot is the lower half of a hash and the row's index + 1, or 0 if it is empty. Rows that collide use
/// the next empty slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowIndex {
    slots: Vec<HashSlot>,
    len: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct HashSlot {
    hash: u32,
    row: u32,
}

/// The number of slots of the smallest non-empty index; a power of two.
const MIN_SLOTS: usize = 16;

/// The hash that is used to find a row.
pub(crate) fn hash_of(row: &(impl Hash + ?Sized)) -> u32 {
    let mut hasher = FxHasher::default();
    row.hash(&mut hasher);
    let hash = hasher.finish();
    (hash ^ (hash >> 32)) as u32
}

impl RowIndex {
    /// The index of the row with that hash that `is_equal` accepts. If there is none, `new` is stored as
    /// its index and returned. O(1).
    pub(crate) fn find_or_add(
        &mut self,
        hash: u32,
        new: usize,
        is_equal: impl FnMut(usize) -> bool,
    ) -> usize {
        if self.len >= self.slots.len() / 4 * 3 {
            self.grow();
        }
        match self.search(hash, is_equal) {
            Ok(place) => place,
            Err(empty) => {
                self.slots[empty] = HashSlot { hash, row: u32::try_from(new + 1).unwrap_or(u32::MAX) };
                self.len += 1;
                new
            }
        }
    }

    /// The index of the row with that hash that `is_equal` accepts. O(1).
    pub(crate) fn find(&self, hash: u32, is_equal: impl FnMut(usize) -> bool) -> Option<usize> {
        if self.slots.is_empty() { None } else { self.search(hash, is_equal).ok() }
    }

    /// The index of the row, or the slot for it. There must be an empty slot.
    fn search(&self, hash: u32, mut is_equal: impl FnMut(usize) -> bool) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.row == 0 {
                return Err(at);
            }
            let place = slot.row as usize - 1;
            if slot.hash == hash && is_equal(place) {
                return Ok(place);
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let len = (self.slots.len() * 2).max(MIN_SLOTS);
        let old = std::mem::replace(&mut self.slots, vec![HashSlot::default(); len]);
        for slot in old.into_iter().filter(|slot| slot.row != 0) {
            let mut at = slot.hash as usize & (len - 1);
            while self.slots[at].row != 0 {
                at = (at + 1) & (len - 1);
            }
            self.slots[at] = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interns numbers, each with its hash from `hash`.
    fn check(numbers: &[u32], hash: impl Fn(u32) -> u32) {
        let (mut index, mut table) = (RowIndex::default(), Vec::new());
        assert_eq!(index.find(0, |_| true), None);
        for &number in numbers {
            let place = index.find_or_add(hash(number), table.len(), |place| table[place] == number);
            if place == table.len() {
                table.push(number);
            }
            assert_eq!(table[place], number);
        }
        for (place, &number) in table.iter().enumerate() {
            assert_eq!(index.find(hash(number), |place| table[place] == number), Some(place));
        }
        let mut distinct = numbers.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(table.len(), distinct.len());
    }

    #[test]
    fn equal_rows_have_one_place() {
        let numbers: Vec<u32> = (0..10_000).map(|number| number * 7 % 3001).collect();
        check(&numbers, |number| hash_of(&number));
    }

    #[test]
    fn rows_of_one_hash_are_distinguished() {
        let numbers: Vec<u32> = (0..200).chain(0..200).collect();
        check(&numbers, |_| 5);
        check(&numbers, |number| u32::MAX - number % 3);
    }
}
