//! A forest that filters and transforms have changed, and where each node of the profile's stacks went.

use std::borrow::Cow;

use crate::forest::{Forest, NONE};

/// What becomes of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It stays.
    Keep,
    /// It goes, and its samples are its caller's. Without a caller they have no frame left and are dropped.
    Merge,
    /// It goes, and its samples are dropped.
    Drop,
}

/// A forest that filters and transforms have changed. Whatever they do, samples follow their nodes, so that no sum has
/// been made yet.
#[derive(Clone, Debug)]
pub(crate) struct Derived<'a> {
    pub(crate) forest: Cow<'a, Forest>,
    /// For each node of the forest that all began with: the node that has its samples now, or [`NONE`] where they
    /// were dropped. Without it all are where they were.
    pub(crate) map: Option<Vec<u32>>,
    /// Whether samples without a stack are still there.
    pub(crate) keeps_stackless: bool,
}

impl<'a> Derived<'a> {
    /// The forest as it is.
    pub(crate) fn new(forest: &'a Forest) -> Self {
        Self { forest: Cow::Borrowed(forest), map: None, keeps_stackless: true }
    }

    /// The node that has the samples of `node` of the forest that all began with.
    pub(crate) fn target(&self, node: u32) -> Option<u32> {
        match &self.map {
            None => Some(node),
            Some(map) => Some(map[node as usize]).filter(|&node| node != NONE),
        }
    }

    /// Hands the samples of each node to the one that `target` has for it: an ancestor, itself, or [`NONE`] to drop
    /// them.
    pub(crate) fn move_samples(&mut self, target: Vec<u32>) {
        match &mut self.map {
            None => self.map = Some(target),
            Some(map) => {
                for node in map.iter_mut().filter(|node| **node != NONE) {
                    *node = target[*node as usize];
                }
            }
        }
    }

    /// Drops the samples of the nodes that `keep` does not accept.
    pub(crate) fn retain_samples(&mut self, keep: impl Fn(usize) -> bool) {
        let nodes = 0..self.forest.len();
        self.move_samples(nodes.map(|node| if keep(node) { node as u32 } else { NONE }).collect());
    }

    /// Removes nodes. Their callees become callees of the nearest caller that stays.
    pub(crate) fn apply(&mut self, fates: &[Fate]) {
        self.apply_and_rename(fates, |func| func);
    }

    /// The same, with other functions at the nodes that stay.
    pub(crate) fn apply_and_rename(&mut self, fates: &[Fate], renamed: impl Fn(u32) -> u32) {
        let old = &*self.forest;
        let mut new = Forest::with_capacity(fates.iter().filter(|fate| **fate == Fate::Keep).count());
        // For each old node, the nearest of it and its callers that stays; and where its samples go.
        let mut nearest = Vec::with_capacity(old.len());
        let mut target = Vec::with_capacity(old.len());
        for (node, &fate) in fates.iter().enumerate() {
            let caller = match old.parent[node] {
                NONE => NONE,
                parent => nearest[parent as usize],
            };
            let (here, samples) = match fate {
                Fate::Keep => {
                    let kept = new.push(caller, renamed(old.func[node]), old.stack[node], old.category[node]);
                    (kept, kept)
                }
                Fate::Merge => (caller, caller),
                Fate::Drop => (caller, NONE),
            };
            nearest.push(here);
            target.push(samples);
        }
        new.settle_ends();
        self.forest = Cow::Owned(new);
        self.move_samples(target);
    }

    /// Puts the nodes under other parents, each of which precedes its children.
    pub(crate) fn reparent(&mut self, parents: &[u32]) {
        let (forest, position) = self.forest.with_parents(parents);
        self.forest = Cow::Owned(forest);
        self.move_samples(position);
    }
}
