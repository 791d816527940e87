//! A map from ranges of addresses to values. Its clones share all that they have in common.

use crate::Avma;
use nyquist_resources::{Budget, Charge};
use std::ops::Deref;
use std::sync::Arc;

/// The most entries of a node. A change copies the shared nodes on its way, so larger nodes cost more memory
/// for each clone that changes, and smaller ones more steps for each search.
const MAX_ENTRIES: usize = 32;

/// A map from ranges of addresses, none of which overlap, to values.
///
/// It is a tree of shared nodes. A clone costs O(1), and a change O(log n) in time and in memory, also if the
/// map has clones. This matters for address spaces, of which each process begins with a copy of its parent's.
#[derive(Clone, Debug)]
pub struct RangeMap<T> {
    root: Option<Arc<Node<T>>>,
    len: usize,
    budget: Option<Budget>,
}

/// A range of addresses, and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedRange<T> {
    /// The first address.
    pub start: Avma,
    /// The address after the last one.
    pub end: Avma,
    /// What is there.
    pub value: T,
}

/// One step of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a, T> {
    /// A whole range was removed.
    Removed(&'a MappedRange<T>),
    /// A range was added: a new one, or the rest of a removed one.
    Added(&'a MappedRange<T>),
}

/// A node of the tree. All paths from the root to the ranges have the same length.
#[derive(Clone, Debug)]
struct Node<T> {
    content: Content<T>,
    charge: Option<Charge>,
}

#[derive(Clone, Debug)]
enum Content<T> {
    Ranges(Vec<MappedRange<T>>),
    Branches(Vec<Branch<T>>),
}

/// A part of the tree.
#[derive(Clone, Debug)]
struct Branch<T> {
    /// Where its first range begins. Another address before that range would not do: a range of the branch before
    /// could reach beyond it.
    start: Avma,
    node: Arc<Node<T>>,
}

/// Whether a node is at the left or the right edge of the tree.
#[derive(Clone, Copy)]
struct Edges {
    left: bool,
    right: bool,
}

impl<T> MappedRange<T> {
    /// Whether an address is in the range.
    #[inline]
    pub fn contains(&self, address: Avma) -> bool {
        self.start <= address && address < self.end
    }
}

impl<T> Deref for MappedRange<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Default for RangeMap<T> {
    fn default() -> Self {
        Self { root: None, len: 0, budget: None }
    }
}

impl<T> RangeMap<T> {
    /// A map without ranges, whose memory is charged to a budget. What several clones share is charged once.
    /// The budget does not stop a change: its owner has to make room.
    pub fn within(budget: &Budget) -> Self {
        Self { budget: Some(budget.clone()), ..Self::default() }
    }

    /// The number of ranges.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no ranges.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes all ranges.
    pub fn clear(&mut self) {
        (self.root, self.len) = (None, 0);
    }

    /// The range that holds an address. O(log n).
    #[inline]
    pub fn find(&self, address: Avma) -> Option<&MappedRange<T>> {
        let mut node = self.root.as_deref()?;
        loop {
            match &node.content {
                Content::Ranges(ranges) => {
                    let after = ranges.partition_point(|range| range.start <= address);
                    return ranges.get(after.wrapping_sub(1)).filter(|range| address < range.end);
                }
                Content::Branches(branches) => {
                    let after = branches.partition_point(|branch| branch.start <= address);
                    node = &branches.get(after.wrapping_sub(1))?.node;
                }
            }
        }
    }

    /// The first range that ends after an address. O(log n).
    pub fn first_ending_after(&self, address: Avma) -> Option<&MappedRange<T>> {
        let (mut node, mut right) = (self.root.as_deref()?, None);
        loop {
            match &node.content {
                Content::Ranges(ranges) => {
                    let first = ranges.partition_point(|range| range.end <= address);
                    return ranges.get(first).or_else(|| right.and_then(Node::first));
                }
                Content::Branches(branches) => {
                    let at = branches.partition_point(|branch| branch.start <= address).saturating_sub(1);
                    right = branches.get(at + 1).map(|branch| &*branch.node).or(right);
                    node = &branches.get(at)?.node;
                }
            }
        }
    }

    /// The last range.
    #[inline]
    pub fn last(&self) -> Option<&MappedRange<T>> {
        let mut node = self.root.as_deref()?;
        loop {
            match &node.content {
                Content::Ranges(ranges) => return ranges.last(),
                Content::Branches(branches) => node = &branches.last()?.node,
            }
        }
    }

    /// All ranges, by address.
    pub fn iter(&self) -> impl Iterator<Item = &MappedRange<T>> {
        self.overlapping(Avma(0), Avma(u64::MAX))
    }

    /// The ranges that overlap the span between two addresses, by address. O(log n) for each.
    pub fn overlapping(&self, start: Avma, end: Avma) -> impl Iterator<Item = &MappedRange<T>> {
        let is_inside = move |range: &&MappedRange<T>| range.start < end;
        let first = self.first_ending_after(start).filter(is_inside);
        std::iter::successors(first, move |last| self.first_ending_after(last.end).filter(is_inside))
    }
}

impl<T: Clone> RangeMap<T> {
    /// Maps a range to a value, and replaces what it overlaps, as `mmap` does. O(log n) for each range that is
    /// added or removed.
    pub fn insert(&mut self, start: Avma, end: Avma, value: T) {
        self.replace((start, end), Some(value), |_| {});
    }

    /// Removes everything between two addresses.
    pub fn remove(&mut self, start: Avma, end: Avma) {
        self.replace((start, end), None, |_| {});
    }

    /// Removes everything between two addresses, and puts a value in its place if there is one. All steps are
    /// passed to `changed`.
    pub fn replace(
        &mut self,
        (start, end): (Avma, Avma),
        value: Option<T>,
        mut changed: impl FnMut(Change<'_, T>),
    ) {
        if start >= end {
            return;
        }
        let (mut before, mut after) = (None, None);
        while let Some(old) = self.take_overlapping(start, end) {
            changed(Change::Removed(&old));
            if end < old.end {
                after = Some(MappedRange { start: end, ..old.clone() });
            }
            if old.start < start {
                before = Some(MappedRange { end: start, ..old });
            }
        }
        let new = value.map(|value| MappedRange { start, end, value });
        for range in [before, new, after].into_iter().flatten() {
            changed(Change::Added(&range));
            self.add(range);
        }
    }

    /// Removes the first range that overlaps a span, and returns it.
    fn take_overlapping(&mut self, start: Avma, end: Avma) -> Option<MappedRange<T>> {
        let first = self.first_ending_after(start).filter(|range| range.start < end)?.start;
        let root = self.root.as_mut()?;
        let taken = Arc::make_mut(root).remove(first)?;
        self.len -= 1;
        while let Some(only) = root.only_branch() {
            *root = only;
        }
        self.root.take_if(|root| root.len() == 0);
        Some(taken)
    }

    /// Adds a range that overlaps none.
    fn add(&mut self, new: MappedRange<T>) {
        self.len += 1;
        let charge = self.budget.as_ref().map(Budget::charge);
        let root = self.root.get_or_insert_with(|| Arc::new(Node::new(Content::Ranges(Vec::new()), charge)));
        if let Some(right) = Arc::make_mut(root).insert(new, Edges { left: true, right: true }) {
            let charge = root.charge.as_ref().map(|charge| charge.budget().charge());
            let start = root.start().unwrap_or_default();
            let branches = vec![Branch { start, node: Arc::clone(root) }, right];
            *root = Arc::new(Node::new(Content::Branches(branches), charge));
        }
    }
}

impl<T> Node<T> {
    fn new(content: Content<T>, charge: Option<Charge>) -> Self {
        let mut node = Self { content, charge };
        node.update_charge();
        node
    }

    fn len(&self) -> usize {
        match &self.content {
            Content::Ranges(ranges) => ranges.len(),
            Content::Branches(branches) => branches.len(),
        }
    }

    /// Where the first range begins.
    fn start(&self) -> Option<Avma> {
        match &self.content {
            Content::Ranges(ranges) => Some(ranges.first()?.start),
            Content::Branches(branches) => Some(branches.first()?.start),
        }
    }

    /// The first range in this part of the tree.
    fn first(&self) -> Option<&MappedRange<T>> {
        match &self.content {
            Content::Ranges(ranges) => ranges.first(),
            Content::Branches(branches) => branches.first()?.node.first(),
        }
    }

    /// The only branch, if there is one and no range.
    fn only_branch(&self) -> Option<Arc<Self>> {
        match &self.content {
            Content::Branches(branches) if branches.len() == 1 => Some(Arc::clone(&branches.first()?.node)),
            _ => None,
        }
    }

    fn update_charge(&mut self) {
        let Some(charge) = &mut self.charge else { return };
        let entries = match &self.content {
            Content::Ranges(ranges) => ranges.capacity() * size_of::<MappedRange<T>>(),
            Content::Branches(branches) => branches.capacity() * size_of::<Branch<T>>(),
        };
        charge.set((size_of::<Self>() + entries) as u64);
    }
}

impl<T: Clone> Node<T> {
    /// Inserts a range that overlaps none. If the node was full, its right part is returned.
    fn insert(&mut self, new: MappedRange<T>, edges: Edges) -> Option<Branch<T>> {
        let right = match &mut self.content {
            Content::Ranges(ranges) => {
                let at = ranges.partition_point(|range| range.start < new.start);
                let right = put(ranges, at, new, edges);
                right.and_then(|right| Some((right.first()?.start, Content::Ranges(right))))
            }
            Content::Branches(branches) => {
                let at = branches.partition_point(|branch| branch.start <= new.start).saturating_sub(1);
                let is_last = at + 1 == branches.len();
                let inner = Edges { left: edges.left && at == 0, right: edges.right && is_last };
                let branch = branches.get_mut(at)?;
                branch.start = branch.start.min(new.start);
                let split = Arc::make_mut(&mut branch.node).insert(new, inner);
                let right = split.and_then(|right| put(branches, at + 1, right, edges));
                right.and_then(|right| Some((right.first()?.start, Content::Branches(right))))
            }
        };
        self.update_charge();
        let (start, content) = right?;
        let node = Arc::new(Self::new(content, self.charge.as_ref().map(|charge| charge.budget().charge())));
        Some(Branch { start, node })
    }

    /// Removes the range that begins at an address.
    fn remove(&mut self, start: Avma) -> Option<MappedRange<T>> {
        let removed = match &mut self.content {
            Content::Ranges(ranges) => {
                let at = ranges.binary_search_by_key(&start, |range| range.start).ok()?;
                ranges.remove(at)
            }
            Content::Branches(branches) => {
                let at = branches.partition_point(|branch| branch.start <= start).checked_sub(1)?;
                let branch = branches.get_mut(at)?;
                let removed = Arc::make_mut(&mut branch.node).remove(start)?;
                match branch.node.start() {
                    Some(start) => branch.start = start,
                    None => _ = branches.remove(at),
                }
                join(branches, at);
                join(branches, at.saturating_sub(1));
                removed
            }
        };
        self.update_charge();
        Some(removed)
    }

    /// Adds the entries of the next node of the same depth.
    fn append(&mut self, next: Self) {
        match (&mut self.content, next.content) {
            (Content::Ranges(all), Content::Ranges(mut next)) => all.append(&mut next),
            (Content::Branches(all), Content::Branches(mut next)) => all.append(&mut next),
            // All nodes of one depth have the same kind of entry.
            _ => {}
        }
        self.update_charge();
    }
}

/// Joins a branch with the next one if both have few entries.
fn join<T: Clone>(branches: &mut Vec<Branch<T>>, at: usize) {
    let Some([left, right]) = branches.get(at..).and_then(|rest| rest.first_chunk()) else { return };
    if left.node.len() + right.node.len() > MAX_ENTRIES / 2 {
        return;
    }
    let right = branches.remove(at + 1);
    if let Some(left) = branches.get_mut(at) {
        Arc::make_mut(&mut left.node).append(Arc::unwrap_or_clone(right.node));
    }
}

/// Puts an entry at an index of a node's entries. If the node is full, it is divided, and its right part is
/// returned. At the edges of the tree, the full part stays full, because ranges mostly come in order.
fn put<V>(all: &mut Vec<V>, at: usize, new: V, edges: Edges) -> Option<Vec<V>> {
    let len = all.len();
    if len < MAX_ENTRIES {
        if len == all.capacity() {
            all.reserve_exact((len / 2).clamp(4, MAX_ENTRIES).min(MAX_ENTRIES - len));
        }
        all.insert(at, new);
        return None;
    }
    let cut = match at {
        0 if edges.left => 0,
        at if at == len && edges.right => len,
        _ => len / 2,
    };
    let mut right = all.split_off(cut);
    if at < cut || cut == 0 {
        all.insert(at, new);
        all.shrink_to_fit();
    } else {
        right.insert(at - cut, new);
    }
    Some(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator of numbers that are the same in each run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % limit
        }
    }

    fn ranges<T: Copy>(map: &RangeMap<T>) -> Vec<(u64, u64, T)> {
        map.iter().map(|range| (range.start.0, range.end.0, range.value)).collect()
    }

    fn map_of(ranges: &[(u64, u64)]) -> RangeMap<u32> {
        let mut map = RangeMap::default();
        for (&(start, end), value) in ranges.iter().zip(0..) {
            map.insert(Avma(start), Avma(end), value);
        }
        map
    }

    /// The depth of the tree. Checks that all its parts have it, no part is empty or too large, and all say where they
    /// begin.
    fn depth<T>(node: &Node<T>) -> usize {
        assert!((1..=MAX_ENTRIES).contains(&node.len()));
        match &node.content {
            Content::Ranges(_) => 1,
            Content::Branches(branches) => {
                assert!(branches.iter().all(|branch| branch.node.start() == Some(branch.start)));
                let depths: Vec<usize> = branches.iter().map(|branch| depth(&branch.node)).collect();
                assert!(depths.iter().all(|depth| *depth == depths[0]), "{depths:?}");
                depths[0] + 1
            }
        }
    }

    #[test]
    fn a_new_range_replaces_what_it_covers() {
        let mut map = map_of(&[(10, 20), (30, 40), (15, 35)]);
        assert_eq!(ranges(&map), [(10, 15, 0), (15, 35, 2), (35, 40, 1)]);
        map.insert(Avma(20), Avma(22), 3);
        assert_eq!(ranges(&map), [(10, 15, 0), (15, 20, 2), (20, 22, 3), (22, 35, 2), (35, 40, 1)]);
        map.insert(Avma(22), Avma(22), 4);
        assert_eq!(map.len(), 5);
        map.remove(Avma(0), Avma(100));
        assert!(map.is_empty() && ranges(&map).is_empty());
    }

    #[test]
    fn an_address_is_found_in_its_range_only() {
        let map = map_of(&[(10, 20), (u64::MAX - 5, u64::MAX)]);
        for (address, found) in
            [(0, None), (9, None), (10, Some(0)), (19, Some(0)), (20, None), (u64::MAX - 1, Some(1))]
        {
            assert_eq!(map.find(Avma(address)).map(|range| range.value), found, "{address}");
        }
        assert_eq!(map.last().map(|range| range.value), Some(1));
    }

    #[test]
    fn steps_of_a_change_are_told() {
        let mut map = map_of(&[(10, 20), (30, 40)]);
        let mut steps = Vec::new();
        map.replace((Avma(15), Avma(35)), Some(7), |change| {
            steps.push(match change {
                Change::Removed(range) => (false, range.start.0, range.end.0, range.value),
                Change::Added(range) => (true, range.start.0, range.end.0, range.value),
            });
        });
        let removed = [(false, 10, 20, 0), (false, 30, 40, 1)];
        let added = [(true, 10, 15, 0), (true, 15, 35, 7), (true, 35, 40, 1)];
        assert_eq!(steps, [removed.as_slice(), &added].concat());
    }

    #[test]
    fn it_is_what_a_list_of_addresses_would_be() {
        const ADDRESSES: u64 = 4000;
        let (mut numbers, mut map) = (Numbers(1), RangeMap::default());
        let (mut list, mut most) = (vec![None; ADDRESSES as usize], 0);
        for value in 0..20_000 {
            let start = numbers.below(ADDRESSES);
            let longest = if numbers.below(500) == 0 { ADDRESSES } else { 4 };
            let end = (start + numbers.below(longest + 1)).min(ADDRESSES);
            let new = (numbers.below(3) > 0).then_some(value);
            map.replace((Avma(start), Avma(end)), new, |_| {});
            list[start as usize..end as usize].fill(new);
            most = most.max(map.len());
            if value % 500 == 0 {
                let found = |at| map.find(Avma(at)).map(|range| range.value);
                assert!((0..).zip(&list).all(|(at, value)| found(at) == *value));
                assert_eq!(ranges(&map).len(), map.len());
                assert!(map.root.as_ref().is_none_or(|root| depth(root) <= 3));
            }
        }
        assert!(most > 500, "{most}");
    }

    #[test]
    fn a_clone_is_independent_and_shares() {
        const RANGES: u64 = 30_000;
        let budget = Budget::new(1 << 30);
        let mut parent = RangeMap::within(&budget);
        (0..RANGES).rev().for_each(|at| parent.insert(Avma(at * 2), Avma(at * 2 + 1), at));
        let before = budget.used();
        assert!(before < RANGES * 40, "{before}");
        let children: Vec<_> = (0..1000)
            .map(|number| {
                let mut child = parent.clone();
                child.insert(Avma(number * 50), Avma(number * 50 + 1), 7);
                child
            })
            .collect();
        let each = (budget.used() - before) / 1000;
        assert!(each < 6000, "{each} bytes for each child");
        assert!((0..RANGES).all(|at| parent.find(Avma(at * 2)).is_some_and(|range| range.value == at)));
        assert!((0..).zip(&children).all(|(at, child)| child.find(Avma(at * 50)).unwrap().value == 7));
        drop(children);
        assert_eq!(budget.used(), before);
        parent.clear();
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn what_was_removed_takes_no_memory() {
        let budget = Budget::new(1 << 30);
        let mut map = RangeMap::within(&budget);
        (0..50_000).for_each(|at| map.insert(Avma(at), Avma(at + 1), at));
        let most = budget.used();
        (0..50_000).filter(|at| at % 1000 != 0).for_each(|at| map.remove(Avma(at), Avma(at + 1)));
        assert_eq!(map.len(), 50);
        assert!(budget.used() * 20 < most, "{} of {most}", budget.used());
        assert!(map.iter().all(|range| range.value % 1000 == 0));
    }
}
