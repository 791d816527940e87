//! The nesting of the entries of a unit: the namespaces, types and functions that qualify names.

use super::die_walk::{DieStop, DieWalk};
use super::role::Qualifier;
use super::unit::Unit;

/// The most entries of a unit that are recorded. Real units have some hundred thousand.
const MAX_NODES: usize = 1 << 20;

/// The greatest depth of recorded entries, which bounds the steps outwards. Deeper entries count as children
/// of the last recorded one. It exceeds the depth at which names are no longer qualified.
const MAX_OPEN: usize = 80;

/// An entry that contains others.
#[derive(Clone, Copy, Debug)]
pub(super) struct NestingNode {
    /// Where it begins, as a distance from the unit's start.
    start: u32,
    /// The end of its children.
    end: u32,
    /// The index of the node around it.
    parent: Option<u32>,
    qualifier: Qualifier,
}

/// The nesting of the entries of a unit, as far as they were read. Entries do not state their parents, so all
/// entries before one are read.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    /// In the order of the entries.
    nodes: Vec<NestingNode>,
    /// The nodes around the next entry, from outside to inside, each with its depth.
    open: Vec<(u32, usize)>,
    /// Where the next entry begins. 0 before the first entry.
    at: usize,
    depth: usize,
    is_at_end: bool,
}

impl Nesting {
    /// Reads all entries of a unit. `has_room` returns whether one more node may be kept with these.
    pub(crate) fn of(unit: &Unit, entries: &[u8], has_room: impl Fn(&[NestingNode]) -> bool) -> Self {
        let mut nesting = Self::default();
        nesting.read_to(unit, entries, u64::MAX, has_room);
        nesting.nodes.shrink_to_fit();
        nesting
    }

    /// The innermost entry around the one at `distance` from the unit's start. Reads the unit up to there.
    pub(crate) fn around_next(
        &mut self,
        unit: &Unit,
        entries: &[u8],
        distance: u64,
    ) -> Option<(u64, Qualifier)> {
        self.read_to(unit, entries, distance, |_| true);
        self.around(distance)
    }

    /// The innermost entry around the one at `distance` from the unit's start, as far as the unit was read.
    pub(crate) fn around(&self, distance: u64) -> Option<(u64, Qualifier)> {
        let distance = u32::try_from(distance).ok().filter(|&distance| (distance as usize) < self.at)?;
        let before = self.nodes.partition_point(|node| node.start < distance).checked_sub(1)?;
        let mut node = self.nodes.get(before)?;
        while node.end <= distance {
            node = self.nodes.get(node.parent? as usize)?;
        }
        Some((node.start.into(), node.qualifier))
    }

    /// Reads until the next entry is after the one at `distance`.
    fn read_to(
        &mut self,
        unit: &Unit,
        entries: &[u8],
        distance: u64,
        has_room: impl Fn(&[NestingNode]) -> bool,
    ) {
        let at = if self.at == 0 { unit.header.root as usize } else { self.at };
        let abbreviations = &unit.abbreviations;
        let mut walk =
            DieWalk { entries, abbreviations, encoding: unit.header.encoding, at, depth: self.depth };
        while !self.is_at_end && self.at as u64 <= distance {
            let is_read = has_room(&self.nodes) && self.step(&mut walk).is_some();
            // An unreadable entry ends the unit. The entries before it stay.
            self.is_at_end = !is_read || walk.depth == 0;
            (self.at, self.depth) = (walk.at, walk.depth);
        }
    }

    /// Advances to the next entry that contains others, or to the end of one.
    fn step(&mut self, walk: &mut DieWalk<'_>) -> Option<()> {
        let floor = self.open.last().map_or(0, |&(_, depth)| depth);
        match walk.next_qualifier(floor)? {
            DieStop::Scope(of) if self.open.len() == MAX_OPEN => walk.skip_entry(of),
            DieStop::Scope(of) => {
                let number = u32::try_from(self.nodes.len()).ok().filter(|_| self.nodes.len() < MAX_NODES)?;
                let parent = self.open.last().map(|&(parent, _)| parent);
                let start = walk.at.try_into().ok()?;
                self.nodes.push(NestingNode { start, end: u32::MAX, parent, qualifier: of.qualifier? });
                self.open.push((number, walk.depth));
                walk.skip_entry(of)
            }
            DieStop::Left => {
                let closed = self.open.pop().and_then(|(number, _)| self.nodes.get_mut(number as usize));
                if let Some(closed) = closed {
                    closed.end = walk.at.try_into().ok()?;
                }
                Some(())
            }
        }
    }
}
