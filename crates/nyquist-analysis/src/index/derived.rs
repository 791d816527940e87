//! A forest that filters and transforms have changed, and the target of each node of the profile's stacks.

use std::borrow::Cow;

use nyquist_profile::CategoryPair;

use crate::index::forest::{self, Forest, NONE};
use crate::parallel;

/// Fewer nodes than this are processed by one CPU.
const NODES_WORTH_SHARING: usize = 100_000;

/// What happens to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeAction {
    /// It stays.
    Keep,
    /// It is removed, and its samples go to its caller. Without a caller they have no frame left and are
    /// dropped.
    Merge,
    /// It is removed, and its samples are dropped.
    Drop,
}

/// A forest that filters and transforms have changed. It records where the samples of each node go, so that
/// no sums are needed yet.
#[derive(Clone, Debug)]
pub(crate) struct DerivedForest<'a> {
    pub(crate) forest: Cow<'a, Forest>,
    /// For each node of the original forest: the node that has its samples now, or [`NONE`] if they were
    /// dropped. Without a map, all samples are at their original nodes.
    pub(crate) map: Option<Vec<u32>>,
    /// Whether samples without a stack are kept.
    pub(crate) keeps_stackless: bool,
}

impl<'a> DerivedForest<'a> {
    /// The memory that is not that of the original forest, in bytes.
    pub(crate) fn own_bytes(&self) -> usize {
        let forest = match &self.forest {
            Cow::Owned(forest) => forest.bytes(),
            Cow::Borrowed(_) => 0,
        };
        forest + self.map.as_ref().map_or(0, |map| size_of_val(&**map))
    }

    /// The unchanged forest.
    pub(crate) fn new(forest: &'a Forest) -> Self {
        Self { forest: Cow::Borrowed(forest), map: None, keeps_stackless: true }
    }

    /// The node that now has the samples of `node` of the original forest.
    pub(crate) fn target(&self, node: u32) -> Option<u32> {
        match &self.map {
            None => Some(node),
            Some(map) => Some(map[node as usize]).filter(|&node| node != NONE),
        }
    }

    /// Whether the stacks are those of the profile, even if samples have moved.
    pub(crate) fn is_original(&self) -> bool {
        matches!(self.forest, Cow::Borrowed(_))
    }

    /// Whether nothing has been dropped or moved.
    pub(crate) fn keeps_all(&self) -> bool {
        self.map.is_none() && self.keeps_stackless
    }

    /// Moves the samples of each node to its node in `target`: an ancestor, itself, or [`NONE`] to drop
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
    pub(crate) fn apply(&mut self, actions: &[NodeAction]) {
        self.apply_and_rename(actions, |func| func);
    }

    /// The same, with other functions at the nodes that stay.
    pub(crate) fn apply_and_rename(&mut self, actions: &[NodeAction], renamed: impl Fn(u32) -> u32 + Send) {
        let old = &*self.forest;
        let (columns, links) = parallel::both(
            old.len() >= NODES_WORTH_SHARING,
            || Columns::retained(old, actions, renamed),
            || Links::retained(old, actions),
        );
        self.forest = Cow::Owned(Forest {
            parent: links.parent,
            end: links.end,
            func: columns.func,
            stack: columns.stack,
            category: columns.category,
        });
        self.move_samples(links.target);
    }

    /// Puts the nodes under other parents, each of which precedes its children.
    pub(crate) fn reparent(&mut self, parents: &[u32]) {
        let (forest, position) = self.forest.with_parents(parents);
        self.forest = Cow::Owned(forest);
        self.move_samples(position);
    }
}

/// The data of the nodes that stay.
struct Columns {
    func: Vec<u32>,
    stack: Vec<u32>,
    category: Vec<Option<CategoryPair>>,
}

impl Columns {
    fn retained(old: &Forest, actions: &[NodeAction], renamed: impl Fn(u32) -> u32) -> Self {
        let count = actions.iter().filter(|action| **action == NodeAction::Keep).count();
        let mut retained = Self {
            func: Vec::with_capacity(count),
            stack: Vec::with_capacity(count),
            category: Vec::with_capacity(count),
        };
        for (node, _) in actions.iter().enumerate().filter(|(_, action)| **action == NodeAction::Keep) {
            retained.func.push(renamed(old.func[node]));
            retained.stack.push(old.stack[node]);
            retained.category.push(old.category[node]);
        }
        retained
    }
}

/// The links between the nodes that stay, and the targets of all nodes' samples.
struct Links {
    parent: Vec<u32>,
    end: Vec<u32>,
    target: Vec<u32>,
}

impl Links {
    fn retained(old: &Forest, actions: &[NodeAction]) -> Self {
        let mut parent = Vec::with_capacity(actions.len());
        // For each old node, the nearest one that stays among it and its callers.
        let mut nearest = Vec::with_capacity(old.len());
        for (&action, &old_parent) in actions.iter().zip(&old.parent) {
            let caller = if old_parent == NONE { NONE } else { nearest[old_parent as usize] };
            if action == NodeAction::Keep {
                nearest.push(parent.len() as u32);
                parent.push(caller);
            } else {
                nearest.push(caller);
            }
        }
        // Its samples go there, if they are not dropped.
        let mut target = nearest;
        for (target, _) in target.iter_mut().zip(actions).filter(|(_, action)| **action == NodeAction::Drop) {
            *target = NONE;
        }
        let end = forest::ends(&parent);
        Self { parent, end, target }
    }
}
