//! Windows of time: what was allocated before is forgotten, and what is live stays until it is freed.

use super::heap::{Group, Heaps, SLICE_NS};
use crate::event::{Pid, Timestamp};
use nyquist_profile::StackId;

/// The place of a group that is gone.
const GONE: u32 = u32::MAX;

impl Heaps {
    /// A program has ended: its process has, or has become another program. Its blocks are live until the window's end.
    pub(crate) fn end_program(&mut self, pid: Pid) {
        for id in self.running.remove(&pid).unwrap_or_default() {
            if let Some(heap) = self.by_id.get_mut(&id) {
                heap.is_over = true;
            }
        }
    }

    /// Whether a program that runs has allocated something.
    pub(crate) fn has_heap_of(&self, pid: Pid) -> bool {
        self.running.contains_key(&pid)
    }

    /// Begins to count allocations at a time. Earlier ones are forgotten; blocks of programs that run stay live. Linear
    /// in the groups and live blocks.
    pub(crate) fn count_from(&mut self, since: Timestamp) {
        self.since = since;
        self.slice_ns = SLICE_NS;
        self.by_id.retain(|_, heap| !heap.is_over);
        for heap in self.by_id.values_mut() {
            (heap.peak, heap.most_shown) = (heap.level, heap.level);
        }
        let heaps = &self.by_id;
        self.blocks.retain(|(heap, _), _| heaps.contains_key(heap));
        self.stacks.retain(|(heap, _), _| heaps.contains_key(heap));
        let mut has_blocks = vec![false; self.groups.len()];
        for block in self.blocks.values() {
            has_blocks[block.group as usize] = true;
        }
        self.by_key.clear();
        let old = std::mem::take(&mut self.groups);
        let places: Vec<u32> = old
            .into_iter()
            .zip(has_blocks)
            .map(|(group, has_blocks)| self.regroup(group, has_blocks))
            .collect();
        for block in self.blocks.values_mut() {
            block.group = places[block.group as usize];
        }
    }

    /// Adds what stays of a group to the groups, and returns its place.
    fn regroup(&mut self, mut group: Group, has_blocks: bool) -> u32 {
        let since = self.since;
        let Some(heap) = self.by_id.get(&group.key.heap) else { return GONE };
        group.sums.settle(heap.peaks);
        if group.first < since {
            if !has_blocks {
                return GONE;
            }
            group.sums.forget_past();
            (group.first, group.last) = (since, since);
        }
        group.key.slice = group.first.0 / SLICE_NS;
        group.key.end = group.key.end.map(|_| group.last.0 / SLICE_NS);
        let place = *self.by_key.entry(group.key).or_insert(self.groups.len() as u32);
        match self.groups.get_mut(place as usize) {
            Some(known) => known.merge(&group),
            None => self.groups.push(group),
        }
        place
    }

    /// The stacks of live blocks and groups, and those that later allocations may name.
    pub(crate) fn used_stacks(&self) -> impl Iterator<Item = StackId> {
        let of_groups = self.groups.iter().filter_map(|group| group.key.stack);
        of_groups.chain(self.stacks.values().copied().flatten())
    }

    /// Gives all stacks their new ids. Ids of stacks that differ stay different.
    pub(crate) fn remap_stacks(&mut self, map: impl Fn(StackId) -> Option<StackId>) {
        for group in &mut self.groups {
            group.key.stack = group.key.stack.and_then(&map);
        }
        for stack in self.stacks.values_mut() {
            *stack = stack.and_then(&map);
        }
        self.by_key = (0..).zip(&self.groups).map(|(place, group)| (group.key, place)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::super::heap::HeapLimits;
    use super::super::heap::tests::{allocation, at, free, sums};
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn time(seconds: u64) -> Timestamp {
        Timestamp(seconds * SECOND)
    }

    #[test]
    fn what_is_live_outlives_its_window() {
        let mut heaps = Heaps::default();
        heaps.allocate(time(1), &allocation(1, 100, (1, 0)), at(0));
        heaps.allocate(time(2), &allocation(2, 50, (1, 0)), at(1));
        heaps.allocate(time(3), &allocation(3, 7, (1, 0)), at(2));
        assert!(heaps.free(time(4), &free(3, 0)));
        assert_eq!(sums(&heaps), [[100.0, 100.0, 100.0, 0.0], [50.0, 50.0, 50.0, 0.0], [7.0, 0.0, 7.0, 0.0]]);
        heaps.count_from(time(10));
        assert_eq!(sums(&heaps), [[0.0, 100.0, 100.0, 0.0], [0.0, 50.0, 50.0, 0.0]]);
        // The first is freed in the second window, in which more is allocated at its stack.
        assert!(heaps.free(time(11), &free(1, 0)));
        heaps.allocate(time(12), &allocation(4, 30, (1, 0)), at(0));
        assert_eq!(sums(&heaps), [[30.0, 30.0, 100.0, 0.0], [0.0, 50.0, 50.0, 0.0]]);
        heaps.count_from(time(20));
        assert!(heaps.free(time(21), &free(2, 0)) && heaps.free(time(22), &free(4, 0)));
        assert!(!heaps.free(time(23), &free(1, 0)));
        assert_eq!(sums(&heaps), [[0.0, 0.0, 50.0, 0.0], [0.0, 0.0, 30.0, 0.0]]);
        heaps.count_from(time(30));
        assert!(heaps.groups.is_empty() && heaps.blocks.is_empty());
    }

    #[test]
    fn old_blocks_beside_new_ones_count_apart() {
        let mut heaps = Heaps::default();
        heaps.allocate(time(9), &allocation(1, 100, (1, 0)), at(0));
        heaps.count_from(time(10));
        // In the slice of what was live before.
        heaps.allocate(Timestamp(10 * SECOND + 1), &allocation(2, 40, (1, 0)), at(0));
        assert_eq!(sums(&heaps), [[40.0, 140.0, 140.0, 0.0]]);
        assert!(heaps.free(time(11), &free(1, 0)));
        assert_eq!(sums(&heaps), [[40.0, 40.0, 140.0, 0.0]]);
        assert!(heaps.free(time(12), &free(2, 0)));
        assert_eq!(sums(&heaps), [[40.0, 0.0, 140.0, 0.0]]);
    }

    #[test]
    fn sampled_blocks_weigh_the_same_in_each_window() {
        let mut heaps = Heaps::default();
        heaps.allocate(time(1), &allocation(1, 100, (50, 400)), at(0));
        let whole = sums(&heaps)[0][1];
        assert!(whole > 100.0);
        for window in 1..5 {
            heaps.count_from(time(window * 10));
            let [total, live, ..] = sums(&heaps)[0];
            assert!(total == 0.0 && (live - whole).abs() < 1e-9);
        }
        assert!(heaps.free(time(60), &free(1, 0)) && sums(&heaps)[0][1] == 0.0);
    }

    #[test]
    fn a_program_that_ends_takes_its_blocks_along() {
        let mut heaps = Heaps::default();
        heaps.allocate(time(1), &allocation(1, 100, (1, 0)), at(0));
        heaps.end_program(Pid(2));
        heaps.count_from(time(10));
        let is_live = |heaps: &Heaps| (sums(heaps)[0][1] - 100.0).abs() < 1e-9;
        assert!(is_live(&heaps));
        heaps.end_program(Pid(1));
        assert!(is_live(&heaps), "until the window's end");
        heaps.count_from(time(20));
        assert!(sums(&heaps).is_empty() && heaps.by_id.is_empty() && heaps.blocks.is_empty());
    }

    #[test]
    fn stacks_of_live_blocks_get_new_ids() {
        let mut heaps = Heaps::default();
        let stack = StackId::from_index;
        heaps.allocate(time(1), &allocation(1, 100, (1, 0)), at(7));
        heaps.allocate(time(1), &allocation(2, 20, (1, 0)), at(8));
        assert!(heaps.free(time(2), &free(2, 0)));
        heaps.count_from(time(10));
        assert_eq!(heaps.used_stacks().collect::<Vec<_>>(), [stack(7)]);
        heaps.remap_stacks(|old| (old == stack(7)).then_some(stack(0)));
        heaps.allocate(Timestamp(10 * SECOND + 1), &allocation(3, 1, (1, 0)), at(0));
        assert_eq!((heaps.groups.len(), sums(&heaps)), (1, vec![[1.0, 101.0, 101.0, 0.0]]));
    }

    #[test]
    fn too_many_blocks_are_counted_as_allocated() {
        let mut heaps = Heaps::within(HeapLimits { blocks: 2, stacks: 2 });
        for address in 1..=3 {
            heaps.allocate(time(1), &allocation(address, 10, (1, 0)), at(0));
        }
        assert_eq!((heaps.left_out, sums(&heaps)), (1, vec![[30.0, 20.0, 20.0, 0.0]]));
        assert!(!heaps.free(time(2), &free(3, 0)) && heaps.free(time(2), &free(2, 0)));
    }
}
