//! Allocations and frees to sums by stack: what was allocated, what is live, and what was live at the peak.
//!
//! A block that was sampled stands for 1/p blocks of its size, if a block of this size is sampled with the
//! probability p.

pub(crate) use super::heap_sums::AllocatedGroup;
use super::heap_sums::{Amount, HeapSums};
use crate::event::{Allocation, Free, HeapContents, HeapId, Pid, Tid, Timestamp, UserStack};
use nyquist_profile::{StackId, ThreadIndex};
use rustc_hash::FxHashMap;

/// How much time the allocations of a group span at first, in nanoseconds.
pub(super) const SLICE_NS: u64 = 10_000_000;

/// The size of a heap is shown when it exceeds the largest that was shown by more than this part of it.
const PEAK_PART: i64 = 64;

/// The most groups. When there are more, groups span twice the time.
const MAX_GROUPS: usize = 1 << 17;

/// The most blocks that are live at a time, and the most stacks that are named by numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeapLimits {
    pub(crate) blocks: usize,
    pub(crate) stacks: usize,
}

impl Default for HeapLimits {
    fn default() -> Self {
        Self { blocks: 1 << 24, stacks: 1 << 22 }
    }
}

/// Blocks that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct GroupKey {
    pub(super) heap: HeapId,
    row: ThreadIndex,
    pub(super) stack: Option<StackId>,
    pub(super) slice: u64,
    /// The slice in which they were freed; `None` while they are allocated.
    pub(super) end: Option<u64>,
}

#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) key: GroupKey,
    /// The time of its first allocation.
    pub(super) first: Timestamp,
    /// The time of its last free.
    pub(super) last: Timestamp,
    distance: u64,
    pub(super) sums: HeapSums,
}

impl Group {
    /// Adds a group of the same key, with both settled.
    pub(super) fn merge(&mut self, other: &Self) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.sums.merge(&other.sums);
    }
}

/// A block that is allocated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) group: u32,
    tid: Tid,
    size: u64,
    number: u64,
    time: Timestamp,
    /// How many peaks the heap had had before it.
    peaks: u64,
}

/// What all blocks of a heap are together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heap {
    /// Whether its program has ended.
    pub(super) is_over: bool,
    /// The bytes that are live, of those that were recorded.
    live: u64,
    /// About how many bytes are live, as far as that is known.
    pub(super) level: i64,
    /// The most bytes that were live.
    pub(super) peak: i64,
    /// When its size was last shown.
    shown: Timestamp,
    /// The largest size that was shown.
    pub(super) most_shown: i64,
    /// The number of the peak: it counts the moments at which more was live than ever before.
    pub(super) peaks: u64,
}

impl Heap {
    const EMPTY: Self =
        Self { is_over: false, live: 0, level: 0, peak: 0, shown: Timestamp(0), most_shown: 0, peaks: 0 };
}

/// The blocks of all recorded heaps.
#[derive(Debug)]
pub(crate) struct Heaps {
    pub(super) by_id: FxHashMap<HeapId, Heap>,
    /// The heaps of programs that run.
    pub(super) running: FxHashMap<Pid, Vec<HeapId>>,
    pub(super) blocks: FxHashMap<(HeapId, u64), Block>,
    pub(super) groups: Vec<Group>,
    pub(super) by_key: FxHashMap<GroupKey, u32>,
    pub(super) slice_ns: u64,
    /// The stacks that allocations name by numbers.
    pub(super) stacks: FxHashMap<(HeapId, u64), Option<StackId>>,
    limits: HeapLimits,
    /// The time from which allocations count. What was live then is live until it is freed.
    pub(super) since: Timestamp,
    /// How many blocks are not live, because there were too many; only their allocations are counted. And how many
    /// allocations have no stack, because there were too many that are named by numbers.
    pub(crate) left_out: u64,
}

/// Where the stack of an allocation is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NamedStack {
    /// The allocation has it.
    Own,
    /// It is that of an earlier one with the same number, if that was recorded.
    Known(Option<StackId>),
}

impl Default for Heaps {
    fn default() -> Self {
        Self::within(HeapLimits::default())
    }
}

impl Heaps {
    /// No heap, with limited memory.
    pub(crate) fn within(limits: HeapLimits) -> Self {
        Self {
            by_id: FxHashMap::default(),
            running: FxHashMap::default(),
            blocks: FxHashMap::default(),
            groups: Vec::new(),
            by_key: FxHashMap::default(),
            slice_ns: SLICE_NS,
            stacks: FxHashMap::default(),
            limits,
            since: Timestamp(0),
            left_out: 0,
        }
    }

    /// Adds a block, which was allocated at a stack. Returns the bytes of the whole heap, if it is time to show them
    /// again.
    pub(crate) fn allocate(
        &mut self,
        now: Timestamp,
        allocation: &Allocation,
        (row, stack): (ThreadIndex, Option<StackId>),
    ) -> Option<i64> {
        let id = (allocation.heap, allocation.address);
        // The record of its free was lost, or is late.
        self.end(id, now, None);
        let heap = self.by_id.entry(allocation.heap).or_insert_with(|| {
            self.running.entry(allocation.sample.pid).or_default().push(allocation.heap);
            Heap::EMPTY
        });
        let peaks = heap.peaks;
        let key = GroupKey { heap: allocation.heap, row, stack, slice: 0, end: None };
        let amount = Amount::of_block(allocation.size, allocation.distance);
        if self.blocks.len() >= self.limits.blocks {
            self.left_out += 1;
            let group = self.group(key, (now, None), allocation.distance, peaks);
            self.groups[group as usize].sums.add_unfollowed(amount, peaks);
            return None;
        }
        heap.live = heap.live.saturating_add(allocation.size);
        // The program's own count has all blocks, and not only the sampled ones.
        let level = if allocation.distance > 1 { allocation.live } else { heap.live.cast_signed() };
        heap.level = level;
        let is_peak = level > heap.peak;
        if is_peak {
            heap.peak = level;
            heap.peaks += 1;
        }
        // A short peak is shown, too, if not to the last byte.
        let is_peak_due = level.saturating_sub(heap.most_shown) > heap.most_shown / PEAK_PART;
        let is_due = is_peak_due || now.0.saturating_sub(heap.shown.0) >= SLICE_NS;
        if is_due {
            (heap.shown, heap.most_shown) = (now, heap.most_shown.max(level));
        }
        let group = self.group(key, (now, None), allocation.distance, peaks);
        self.groups[group as usize].sums.add(amount, peaks);
        let (size, number) = (allocation.size, allocation.number);
        self.blocks.insert(id, Block { group, tid: allocation.sample.tid, size, number, time: now, peaks });
        is_due.then_some(level)
    }

    /// Where the stack of an allocation is, which it may name by a number.
    pub(crate) fn named_stack(&self, allocation: &Allocation) -> NamedStack {
        match allocation.stack.filter(|_| allocation.sample.user == UserStack::None) {
            Some(number) => NamedStack::Known(self.stacks.get(&(allocation.heap, number)).copied().flatten()),
            None => NamedStack::Own,
        }
    }

    /// Notes the stack of an allocation for later ones that name it.
    pub(crate) fn note_stack(&mut self, allocation: &Allocation, stack: Option<StackId>) {
        let Some(number) = allocation.stack else { return };
        if self.stacks.len() < self.limits.stacks {
            self.stacks.insert((allocation.heap, number), stack);
        } else {
            self.left_out += 1;
        }
    }

    /// Ends a block that was freed. Returns whether it was known.
    pub(crate) fn free(&mut self, now: Timestamp, free: &Free) -> bool {
        self.end((free.heap, free.address), now, Some((free.tid, free.number)))
    }

    /// Ends the blocks of a heap that it does not have any more.
    pub(crate) fn keep_only(&mut self, now: Timestamp, contents: &HeapContents) {
        let is_gone = |(heap, address): &(HeapId, u64)| {
            *heap == contents.heap && contents.addresses.binary_search(address).is_err()
        };
        let gone: Vec<_> = self.blocks.keys().copied().filter(is_gone).collect();
        for id in gone {
            self.end(id, now, None);
        }
    }

    /// Ends a block. A thread that frees what it has allocated last is given with its number of allocations.
    fn end(&mut self, id: (HeapId, u64), now: Timestamp, by: Option<(Tid, u64)>) -> bool {
        // The record of a free that is late is not that of a block which has got its address since.
        let Some(block) = self.blocks.get(&id).copied().filter(|block| block.time <= now) else {
            return false;
        };
        let Some(heap) = self.by_id.get_mut(&id.0) else { return false };
        heap.live = heap.live.saturating_sub(block.size);
        heap.level = heap.level.saturating_sub_unsigned(block.size);
        let peaks = heap.peaks;
        if let Some(group) = self.groups.get_mut(block.group as usize) {
            let (key, distance) = (group.key, group.distance);
            if block.time < self.since {
                group.sums.release(Amount::of_block(block.size, distance), peaks);
                self.blocks.remove(&id);
                return true;
            }
            let ended = self.group(key, (block.time, Some(now)), distance, peaks);
            let is_temporary = by == Some((block.tid, block.number));
            self.move_block(id, ended, peaks, is_temporary);
        }
        self.blocks.remove(&id);
        true
    }

    /// Moves a block that is freed to the group of those that were freed about the same time.
    fn move_block(&mut self, id: (HeapId, u64), ended: u32, peaks: u64, is_temporary: bool) {
        // The number of its group has changed if groups were merged.
        let Some(block) = self.blocks.get(&id) else { return };
        let Some(group) = self.groups.get_mut(block.group as usize) else { return };
        let amount = Amount::of_block(block.size, group.distance);
        let was_at_peak = block.peaks < peaks;
        group.sums.remove(amount, peaks, was_at_peak);
        if let Some(ended) = self.groups.get_mut(ended as usize) {
            ended.sums.add_ended(amount, peaks, was_at_peak, is_temporary);
        }
    }

    /// The group of blocks that are as those of a key, with these times of their allocation and free. It is made if
    /// there is none.
    fn group(
        &mut self,
        key: GroupKey,
        (first, end): (Timestamp, Option<Timestamp>),
        distance: u64,
        peaks: u64,
    ) -> u32 {
        let at =
            |slice_ns| GroupKey { slice: first.0 / slice_ns, end: end.map(|end| end.0 / slice_ns), ..key };
        let mut known = self.by_key.get(&at(self.slice_ns)).copied();
        while known.is_none() && self.groups.len() >= MAX_GROUPS && self.merge() {
            known = self.by_key.get(&at(self.slice_ns)).copied();
        }
        let last = end.unwrap_or(first);
        if let Some(number) = known
            && let Some(group) = self.groups.get_mut(number as usize)
        {
            (group.first, group.last) = (group.first.min(first), group.last.max(last));
            return number;
        }
        let number = self.groups.len() as u32;
        let key = at(self.slice_ns);
        self.groups.push(Group { key, first, last, distance, sums: HeapSums::new(peaks) });
        self.by_key.insert(key, number);
        number
    }

    /// Makes groups span twice the time. Returns whether they can get any longer.
    fn merge(&mut self) -> bool {
        let Some(longer) = self.slice_ns.checked_mul(2) else { return false };
        self.slice_ns = longer;
        self.by_key.clear();
        let mut places = Vec::with_capacity(self.groups.len());
        for mut group in std::mem::take(&mut self.groups) {
            let peaks = self.by_id.get(&group.key.heap).map_or(0, |heap| heap.peaks);
            group.sums.settle(peaks);
            group.key.slice /= 2;
            group.key.end = group.key.end.map(|end| end / 2);
            let place = *self.by_key.entry(group.key).or_insert(self.groups.len() as u32);
            places.push(place);
            match self.groups.get_mut(place as usize) {
                Some(known) => known.merge(&group),
                None => self.groups.push(group),
            }
        }
        for block in self.blocks.values_mut() {
            block.group = places.get(block.group as usize).copied().unwrap_or(block.group);
        }
        true
    }

    /// All groups, by their first allocation. No more allocations follow.
    pub(crate) fn finish(&mut self) -> Vec<AllocatedGroup> {
        let groups = self.so_far();
        self.groups = Vec::new();
        groups
    }

    /// The groups so far, by their first allocation. Those of what was live before have it at the time from which
    /// allocations count.
    pub(crate) fn so_far(&self) -> Vec<AllocatedGroup> {
        let heaps = &self.by_id;
        let finished = |group: &Group| {
            let mut group = group.clone();
            group.sums.settle(heaps.get(&group.key.heap).map_or(0, |heap| heap.peaks));
            let HeapSums { total, live, peak, temporary, .. } = group.sums;
            let GroupKey { row, stack, end, .. } = group.key;
            AllocatedGroup {
                row,
                stack,
                first: group.first,
                end: end.map(|_| group.last),
                distance: group.distance,
                total,
                live,
                peak,
                temporary,
            }
        };
        let groups = self.groups.iter().map(finished);
        // All blocks of a group may have been freed.
        let has_any = |it: &AllocatedGroup| it.total.blocks.max(it.live.blocks).max(it.peak.blocks) > 0.0;
        let mut groups: Vec<_> = groups.filter(has_any).collect();
        groups.sort_by_key(|group| group.first);
        groups
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::event::{Sample, UserStack};

    pub(in super::super) fn allocation(address: u64, size: u64, (distance, live): (u64, i64)) -> Allocation {
        let sample = Sample::in_user_code(Pid(1), UserStack::None);
        Allocation { heap: HeapId(1), sample, stack: None, address, size, distance, number: address, live }
    }

    pub(in super::super) fn free(address: u64, number: u64) -> Free {
        Free { heap: HeapId(1), pid: Pid(1), tid: Tid(1), address, number }
    }

    pub(in super::super) fn at(stack: usize) -> (ThreadIndex, Option<StackId>) {
        (ThreadIndex::from_index(0), Some(StackId::from_index(stack)))
    }

    /// The bytes of each stack: in all, live, and at the peak, then its temporary blocks.
    fn sums_of(groups: &[AllocatedGroup]) -> Vec<[f64; 4]> {
        let mut sums: Vec<(Option<StackId>, [f64; 4])> = Vec::new();
        for it in groups {
            let amounts = [it.total.bytes, it.live.bytes, it.peak.bytes, it.temporary.blocks];
            match sums.iter_mut().find(|(stack, _)| *stack == it.stack) {
                Some((_, sum)) => *sum = std::array::from_fn(|at| sum[at] + amounts[at]),
                None => sums.push((it.stack, amounts)),
            }
        }
        sums.into_iter().map(|(_, sum)| sum).collect()
    }

    pub(in super::super) fn sums(heaps: &Heaps) -> Vec<[f64; 4]> {
        sums_of(&heaps.so_far())
    }

    #[test]
    fn the_peak_is_what_was_live_when_most_was() {
        let mut heaps = Heaps::default();
        let time = |n: u64| Timestamp(n);
        heaps.allocate(time(1), &allocation(1, 100, (1, 0)), at(0));
        heaps.allocate(time(2), &allocation(2, 50, (1, 0)), at(1));
        assert!(heaps.free(time(3), &free(1, 9)));
        heaps.allocate(time(4), &allocation(3, 20, (1, 0)), at(2));
        assert!(heaps.free(time(5), &free(3, 3)) && !heaps.free(time(6), &free(3, 3)));
        heaps.allocate(time(7), &allocation(4, 60, (1, 0)), at(0));
        assert_eq!(sums(&heaps), [[160.0, 60.0, 100.0, 0.0], [50.0, 50.0, 50.0, 0.0], [20.0, 0.0, 0.0, 1.0]]);
    }

    #[test]
    fn sampled_heaps_peak_by_their_own_count() {
        let mut heaps = Heaps::default();
        heaps.allocate(Timestamp(1), &allocation(1, 100, (50, 900)), at(0));
        heaps.allocate(Timestamp(2), &allocation(2, 100, (50, 400)), at(1));
        let groups = heaps.so_far();
        let whole = 100.0 / -(-101.0_f64 / 50.0).exp_m1();
        assert!((groups[0].peak.bytes - whole).abs() < 1e-9 && groups[1].peak.bytes == 0.0);
        assert!((groups[1].live.bytes - whole).abs() < 1e-9);
    }

    #[test]
    fn a_short_peak_is_among_the_shown_sizes() {
        let mut heaps = Heaps::default();
        let mut shown = Vec::new();
        // All within one slice of time.
        for address in 1..=1000 {
            shown.extend(heaps.allocate(Timestamp(SLICE_NS), &allocation(address, 100, (1, 0)), at(0)));
        }
        assert!((1..=1000).all(|address| heaps.free(Timestamp(SLICE_NS), &free(address, 0))));
        shown.extend(heaps.allocate(Timestamp(2 * SLICE_NS), &allocation(1, 100, (1, 0)), at(0)));
        let most = shown.iter().copied().max().unwrap();
        assert!((100_000 - 100_000 / PEAK_PART..=100_000).contains(&most), "{most}");
        assert!(shown.len() < 400 && shown.last() == Some(&100), "{shown:?}");
    }

    #[test]
    fn a_lost_free_is_no_live_block() {
        let mut heaps = Heaps::default();
        for address in 1..=3 {
            heaps.allocate(Timestamp(address), &allocation(address, 10, (1, 0)), at(0));
        }
        // The same address again: the free of its first block was lost. A late free is not that of the second.
        heaps.allocate(Timestamp(8), &allocation(1, 10, (1, 0)), at(0));
        assert!(!heaps.free(Timestamp(7), &free(1, 1)));
        heaps.keep_only(Timestamp(9), &HeapContents { heap: HeapId(1), addresses: vec![1, 3] });
        assert_eq!(sums(&heaps), [[40.0, 20.0, 30.0, 0.0]]);
    }

    #[test]
    fn many_groups_become_longer_ones() {
        let mut heaps = Heaps::default();
        let count = MAX_GROUPS as u64 + 10;
        for n in 0..count {
            heaps.allocate(Timestamp(n * SLICE_NS), &allocation(n + 1, 8, (1, 0)), at(0));
        }
        heaps.free(Timestamp(count * SLICE_NS), &free(1, 0));
        let groups = heaps.so_far();
        assert!(groups.len() <= MAX_GROUPS / 2 + 10);
        let blocks = [0, 1, 2].map(|at| (sums_of(&groups)[0][at] / 8.0).round() as u64);
        assert_eq!(blocks, [count, count - 1, count]);
    }

    #[test]
    fn blocks_that_are_freed_have_an_end() {
        let mut heaps = Heaps::default();
        let slice = |n: u64| Timestamp(n * SLICE_NS);
        for address in 1..=4 {
            heaps.allocate(slice(0), &allocation(address, 10, (1, 0)), at(0));
        }
        for (address, time) in [(1, slice(0)), (2, slice(3)), (3, Timestamp(slice(3).0 + 9))] {
            assert!(heaps.free(time, &free(address, 0)));
        }
        let ends: Vec<_> =
            heaps.so_far().iter().map(|it| (it.end, it.total.bytes, it.live.bytes, it.peak.bytes)).collect();
        let late = Timestamp(slice(3).0 + 9);
        assert_eq!(
            ends,
            [(None, 10.0, 10.0, 10.0), (Some(slice(0)), 10.0, 0.0, 10.0), (Some(late), 20.0, 0.0, 20.0)]
        );
    }

    #[test]
    fn groups_that_are_merged_keep_their_blocks() {
        let mut heaps = Heaps::default();
        let allocate = |heaps: &mut Heaps, n: u64| {
            heaps.allocate(Timestamp(n * SLICE_NS), &allocation(n + 1, 8, (1, 0)), at(0));
        };
        for n in 0..MAX_GROUPS as u64 {
            allocate(&mut heaps, n);
        }
        // There is no room for the group of this free, so groups are merged while the block is being moved.
        let end = Timestamp(MAX_GROUPS as u64 * SLICE_NS);
        assert!(heaps.free(end, &free(8, 0)) && !heaps.free(end, &free(8, 0)));
        let count = MAX_GROUPS as f64 * 8.0;
        assert_eq!(sums(&heaps), [[count, count - 8.0, count, 0.0]]);
    }
}
