//! Of a symbol table, what tells of a few addresses: a table of hundreds of thousands of symbols is passed over a few times for
//! them, which takes a fraction of the time and memory of putting it in order.

use super::entry::Entry;
use std::ops::Range;

/// How many symbols a table has at least that is not put in order for a few addresses, and how many addresses are few.
const LARGE: u64 = 1 << 14;
const FEW: usize = 1 << 12;

/// Whether a table of so many symbols takes long to put in order.
pub(super) fn is_large(symbols: u64) -> bool {
    symbols >= LARGE
}

/// Whether a table of so many symbols is better passed over for so many addresses.
pub(super) fn pays_off(symbols: u64, wanted: usize) -> bool {
    is_large(symbols) && wanted <= FEW
}

/// Into how many stretches addresses are divided: an entry of each is looked for among the few addresses of its own.
const STRETCHES: u64 = 1 << 14;

/// Numbers in ascending order, among which the place of hundreds of thousands of others is looked for.
#[derive(Debug)]
struct Ascending<N> {
    numbers: N,
    /// Where the numbers of each stretch begin, and where those of the last one end.
    stretches: Vec<u32>,
    /// How many bits a number has below that of its stretch.
    shift: u32,
}

impl<N: AsRef<[u64]>> Ascending<N> {
    fn new(numbers: N) -> Self {
        let list = numbers.as_ref();
        let (first, last) = (list.first().map_or(0, |first| *first), list.last().map_or(0, |last| *last));
        let shift = u64::BITS - ((last - first) / STRETCHES).leading_zeros();
        let begin = |stretch: u64| list.partition_point(|number| (number - first) >> shift < stretch) as u32;
        let stretches = (0..=((last - first) >> shift) + 1).map(begin).collect();
        Self { numbers, stretches, shift }
    }

    /// How many numbers are less than another.
    fn below(&self, other: u64) -> usize {
        let numbers = self.numbers.as_ref();
        let Some(distance) = numbers.first().and_then(|first| other.checked_sub(*first)) else { return 0 };
        let stretch = (distance >> self.shift) as usize;
        let Some([begin, end]) = self.stretches.get(stretch..).and_then(<[u32]>::first_chunk) else {
            return numbers.len();
        };
        let inside = numbers.get(*begin as usize..*end as usize).unwrap_or_default();
        *begin as usize + inside.partition_point(|number| *number < other)
    }

    /// Whether one of them is in a range.
    fn has_any(&self, range: Range<u64>) -> bool {
        let next = self.numbers.as_ref().get(self.below(range.start));
        next.is_some_and(|next| *next < range.end)
    }
}

/// Looks for the entries of a table that tell of some addresses.
#[derive(Debug)]
struct Search<'a> {
    wanted: Ascending<&'a [u64]>,
    slots: Vec<Slot>,
    /// Where entries begin that tell of an address.
    starts: Vec<u64>,
}

/// Which of a table's entries tell of some addresses: where they begin.
#[derive(Debug)]
pub(super) struct Near(Ascending<Vec<u64>>);

/// Where the entries begin that are nearest to an address, of those that are not nearer to another one.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Entries with a size.
    with_size: Nearest,
    /// Entries without one, which may reach up to the address, if they are no labels within others.
    without_size: Nearest,
}

#[derive(Clone, Copy, Debug, Default)]
struct Nearest {
    /// The last start that is not behind the address.
    before: Option<u64>,
    /// The first start that is.
    after: Option<u64>,
}

impl Slot {
    fn of(&mut self, entry: &Entry) -> &mut Nearest {
        if entry.is_sized { &mut self.with_size } else { &mut self.without_size }
    }
}

impl Near {
    /// Those that tell of addresses, which ascend. `each_entry` shows all entries of a table; it does so again where labels can only be
    /// told from functions by what is around them.
    pub(super) fn find(wanted: &[u64], each_entry: impl Fn(&mut dyn FnMut(&Entry))) -> Self {
        let slots = vec![Slot::default(); wanted.len()];
        let mut search = Search { wanted: Ascending::new(wanted), slots, starts: Vec::new() };
        each_entry(&mut |entry| search.see(entry));
        let unsized_starts = Ascending::new(search.settle());
        let mut starts = search.starts;
        if !unsized_starts.numbers.is_empty() {
            each_entry(&mut |entry| {
                if entry.is_sized && unsized_starts.has_any(entry.start..entry.end) {
                    starts.push(entry.start);
                }
            });
        }
        starts.sort_unstable();
        starts.dedup();
        Self(Ascending::new(starts))
    }

    /// Whether an entry is one that tells of an address, or begins where one does: it may have the better name.
    pub(super) fn has(&self, entry: &Entry) -> bool {
        self.0.has_any(entry.start..entry.start.saturating_add(1))
    }
}

impl Search<'_> {
    fn see(&mut self, entry: &Entry) {
        let next = self.wanted.below(entry.start);
        if let Some(slot) = next.checked_sub(1).and_then(|last| self.slots.get_mut(last)) {
            let after = &mut slot.of(entry).after;
            *after = Some(after.map_or(entry.start, |after| after.min(entry.start)));
        }
        if let Some(slot) = self.slots.get_mut(next) {
            let before = &mut slot.of(entry).before;
            *before = (*before).max(Some(entry.start));
        }
        if entry.is_sized && self.wanted.numbers.get(next).is_some_and(|&wanted| wanted < entry.end) {
            self.starts.push(entry.start);
        }
    }

    /// Takes all entries for seen. Gives back where those begin that have no size and are nearest to an address, ascending.
    fn settle(&mut self) -> Vec<u64> {
        let (mut nearest, mut unsized_starts) = (Slot::default(), Vec::new());
        for slot in &self.slots {
            nearest.with_size.before = slot.with_size.before.or(nearest.with_size.before);
            nearest.without_size.before = slot.without_size.before.or(nearest.without_size.before);
            self.starts.extend(nearest.with_size.before);
            let unsized_start = nearest.without_size.before;
            unsized_starts.extend(unsized_start.filter(|&start| Some(start) >= nearest.with_size.before));
        }
        for slot in self.slots.iter().rev() {
            nearest.with_size.after = slot.with_size.after.or(nearest.with_size.after);
            nearest.without_size.after = slot.without_size.after.or(nearest.without_size.after);
            self.starts.extend(nearest.with_size.after);
            self.starts.extend(nearest.without_size.after);
        }
        self.starts.extend_from_slice(&unsized_starts);
        unsized_starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_placed_as_by_a_search_of_all() {
        let mut state = 1_u64;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 8) % limit
        };
        for limit in [1, 2, 5, 1000, 1 << 14, (1 << 14) + 1, 1 << 20, 1 << 33, 1 << 56] {
            for count in [0, 1, 2, 50] {
                let mut numbers: Vec<u64> = (0..count).map(|_| limit + below(limit)).collect();
                numbers.sort_unstable();
                let ascending = Ascending::new(&numbers);
                let around = numbers.iter().flat_map(|number| [number - 1, *number, number + 1]);
                let others: Vec<u64> =
                    around.chain([0, u64::MAX]).chain((0..100).map(|_| below(4 * limit))).collect();
                for other in others {
                    let expected = numbers.partition_point(|number| *number < other);
                    assert_eq!(ascending.below(other), expected, "{other} among {numbers:?}");
                }
            }
        }
    }
}
