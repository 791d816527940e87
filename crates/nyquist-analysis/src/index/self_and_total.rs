//! Self and total amounts by a key of frames. Each sample counts once per key.

use std::ops::Range;

use crate::amount::Amount;
use crate::index::forest::Forest;
use crate::index::node_sums::NodeSums;
use crate::parallel;

/// Fewer nodes than this are processed by one CPU.
const NODES_WORTH_SHARING: usize = 50_000;

/// The amounts of the frames with one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SelfAndTotal {
    pub(crate) own: Amount,
    pub(crate) total: Amount,
}

/// Sums up samples by a key of their frames (a function, a lib, a line). The self amount sums the samples
/// whose innermost frame has the key. The total sums the samples with the key in any frame, once each. `keys`
/// is one more than the greatest key. O(nodes + keys).
pub(crate) fn by_key(
    sums: NodeSums<'_>,
    keys: usize,
    key: impl Fn(usize) -> Option<usize> + Sync,
) -> Vec<SelfAndTotal> {
    let pieces = parallel::pieces(sums.forest.len(), NODES_WORTH_SHARING.max(keys), |nodes| {
        by_key_of_nodes(sums, nodes, keys, &key)
    });
    add_up(pieces)
}

fn add_up(pieces: Vec<Vec<SelfAndTotal>>) -> Vec<SelfAndTotal> {
    let sum = pieces.into_iter().reduce(|mut sum, piece| {
        for (sum, piece) in sum.iter_mut().zip(piece) {
            sum.own += piece.own;
            sum.total += piece.total;
        }
        sum
    });
    sum.unwrap_or_default()
}

/// The keys of all nodes of a forest, and for each node whether a caller has the same key. [`by_key`]
/// computes this in each call, this type only once.
#[derive(Debug)]
pub(crate) struct NodeKeys {
    of_node: Vec<u32>,
    /// One more than the greatest key.
    count: usize,
}

/// The bit of a key which records that no caller has the same key.
const OUTERMOST: u32 = 1 << 31;

impl NodeKeys {
    /// O(nodes + keys).
    pub(crate) fn new(forest: &Forest, count: usize, key: impl Fn(usize) -> u32) -> Self {
        let mut open = OpenFrames::new(count);
        let of_node = (0..forest.len()).map(|node| {
            open.leave_before(node as u32);
            let key = key(node);
            if open.enter(key as usize, forest.end[node]) { key | OUTERMOST } else { key }
        });
        Self { of_node: of_node.collect(), count }
    }

    /// The memory that they take.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.of_node)
    }

    /// Sums up samples at the nodes of the forest that the keys are of. O(nodes + keys).
    pub(crate) fn sum_up(&self, sums: NodeSums<'_>) -> Vec<SelfAndTotal> {
        let nodes = self.of_node.len();
        add_up(parallel::pieces(nodes, NODES_WORTH_SHARING.max(self.count), |range| {
            let mut amounts = vec![SelfAndTotal::default(); self.count];
            let mut node = range.start;
            while node < range.end {
                let total = sums.total_of(node as u32);
                if total.is_zero() {
                    node = sums.forest.end[node] as usize;
                    continue;
                }
                let key = self.of_node[node];
                let amounts = &mut amounts[(key & !OUTERMOST) as usize];
                amounts.own += sums.own(node as u32);
                if key & OUTERMOST != 0 {
                    amounts.total += total;
                }
                node += 1;
            }
            amounts
        }))
    }
}

/// The same for some of the nodes. Their totals may extend beyond them.
fn by_key_of_nodes(
    sums: NodeSums<'_>,
    nodes: Range<usize>,
    keys: usize,
    key: impl Fn(usize) -> Option<usize>,
) -> Vec<SelfAndTotal> {
    let forest = sums.forest;
    let mut amounts = vec![SelfAndTotal::default(); keys];
    let mut open = OpenFrames::new(keys);
    let callers: Vec<_> = match forest.parent.get(nodes.start) {
        Some(&caller) => forest.ancestors(caller).collect(),
        None => Vec::new(),
    };
    for caller in callers.into_iter().rev() {
        if let Some(key) = key(caller as usize) {
            open.enter(key, forest.end[caller as usize]);
        }
    }
    let mut node = nodes.start;
    while node < nodes.end {
        let total = sums.total_of(node as u32);
        if total.is_zero() {
            node = forest.end[node] as usize;
            continue;
        }
        open.leave_before(node as u32);
        if let Some(key) = key(node) {
            amounts[key].own += sums.own(node as u32);
            if open.enter(key, forest.end[node]) {
                amounts[key].total += total;
            }
        }
        node += 1;
    }
    amounts
}

/// The keys of the frames on the path to a node, while the nodes are visited in depth-first order.
struct OpenFrames {
    /// Keys and the ends of their subtrees.
    path: Vec<(usize, u32)>,
    /// The number of frames on the path with each key.
    count: Vec<u32>,
}

impl OpenFrames {
    fn new(keys: usize) -> Self {
        Self { path: Vec::new(), count: vec![0; keys] }
    }

    /// Leaves the subtrees that end before the node.
    fn leave_before(&mut self, node: u32) {
        while let Some(&(key, _)) = self.path.last().filter(|(_, end)| *end <= node) {
            self.count[key] -= 1;
            self.path.pop();
        }
    }

    /// Enters a frame. Returns whether it is the first on the path with its key.
    fn enter(&mut self, key: usize, end: u32) -> bool {
        self.path.push((key, end));
        self.count[key] += 1;
        self.count[key] == 1
    }
}
