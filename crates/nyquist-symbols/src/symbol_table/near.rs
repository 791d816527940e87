//! Of a symbol table, what tells of a few addresses: a table of hundreds of thousands of symbols is passed over a few times for
//! them, which takes a fraction of the time and memory of putting it in order.

use super::Entry;

/// How many symbols a table has at least that is not put in order for a few addresses, and how many addresses are few.
const LARGE: u64 = 1 << 14;
const FEW: usize = 1 << 12;

/// Whether a table of so many symbols is better passed over for so many addresses.
pub(super) fn pays_off(symbols: u64, wanted: usize) -> bool {
    symbols >= LARGE && wanted <= FEW
}

/// Which of a table's entries tell of some addresses.
#[derive(Debug)]
pub(super) struct Near<'a> {
    /// Ascending.
    wanted: &'a [u64],
    slots: Vec<Slot>,
    /// Where entries begin that tell of an address.
    starts: Vec<u64>,
}

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

impl<'a> Near<'a> {
    /// Those that tell of addresses, which ascend. `each_entry` shows all entries of a table; it does so again where labels can only be
    /// told from functions by what is around them.
    pub(super) fn find(wanted: &'a [u64], each_entry: impl Fn(&mut dyn FnMut(&Entry))) -> Self {
        let slots = vec![Slot::default(); wanted.len()];
        let mut near = Self { wanted, slots, starts: Vec::new() };
        each_entry(&mut |entry| near.see(entry));
        let unsized_starts = near.settle();
        if !unsized_starts.is_empty() {
            each_entry(&mut |entry| {
                if entry.is_sized && contains_any(entry, &unsized_starts) {
                    near.starts.push(entry.start);
                }
            });
        }
        near.starts.sort_unstable();
        near.starts.dedup();
        near
    }

    fn see(&mut self, entry: &Entry) {
        let next = self.wanted.partition_point(|&wanted| wanted < entry.start);
        if let Some(slot) = next.checked_sub(1).and_then(|last| self.slots.get_mut(last)) {
            let after = &mut slot.of(entry).after;
            *after = Some(after.map_or(entry.start, |after| after.min(entry.start)));
        }
        if let Some(slot) = self.slots.get_mut(next) {
            let before = &mut slot.of(entry).before;
            *before = (*before).max(Some(entry.start));
        }
        if entry.is_sized && contains_any(entry, self.wanted.get(next..).unwrap_or_default()) {
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

    /// Whether an entry is one that tells of an address, or begins where one does: it may have the better name.
    pub(super) fn has(&self, entry: &Entry) -> bool {
        self.starts.binary_search(&entry.start).is_ok()
    }
}

/// Whether one of the addresses, which ascend, is in an entry.
fn contains_any(entry: &Entry, addresses: &[u64]) -> bool {
    let next = addresses.partition_point(|&address| address < entry.start);
    addresses.get(next).is_some_and(|&address| address < entry.end)
}
