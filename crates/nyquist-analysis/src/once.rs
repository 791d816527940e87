//! Self and total amounts by whatever frames have in common, each counted once a sample.

use crate::amount::Amount;
use crate::view::View;

/// What frames of one kind take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SelfAndTotal {
    pub(crate) own: Amount,
    pub(crate) total: Amount,
}

/// Sums up the samples of a view by a key of their frames (a function, a lib, a line): the self amount is that of
/// samples whose innermost frame has the key, the total that of samples of which any frame has it, once each.
/// `keys` is one more than the greatest key. O(nodes + keys).
pub(crate) fn by_key(
    view: &View<'_>,
    keys: usize,
    key: impl Fn(usize) -> Option<usize>,
) -> Vec<SelfAndTotal> {
    let forest = view.forest();
    let mut amounts = vec![SelfAndTotal::default(); keys];
    let mut open = OpenFrames::new(keys);
    for node in 0..forest.len() {
        let total = view.total_of(node as u32);
        if total.is_zero() {
            continue;
        }
        open.leave_before(node as u32);
        let Some(key) = key(node) else { continue };
        amounts[key].own += view.own(node as u32);
        if open.enter(key, forest.end[node]) {
            amounts[key].total += total;
        }
    }
    amounts
}

/// The keys of the frames on the path to a node, while the nodes are gone through in depth-first order.
struct OpenFrames {
    /// Keys and where their subtrees end.
    path: Vec<(usize, u32)>,
    /// How many frames on the path have each key.
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

    /// Enters a frame; whether it is the first on the path with its key.
    fn enter(&mut self, key: usize, end: u32) -> bool {
        self.path.push((key, end));
        self.count[key] += 1;
        self.count[key] == 1
    }
}
