//! The flame graph of a profile, coloured by what has changed since another one.

use super::picture::with_colors;
use crate::args::PictureArgs;
use crate::number::percent;
use crate::text::Names;
use nyquist_analysis::{FlameGraph, FlameOptions, View, comparable_name};
use nyquist_formats::flame::{FlameColors, FlamePicture};
use std::borrow::Cow;
use std::collections::HashMap;

/// A change of the whole by this share has the strongest colour.
const STRONGEST: f64 = 0.1;

/// The picture of `after`. A box is compared with the one that the same callers led to, by shares of the whole.
pub(super) fn picture(after: &View<'_>, before: &View<'_>, args: &PictureArgs, names: Names) -> FlamePicture {
    let before = before.flame_graph(&FlameOptions::default());
    let before = SharesByPath::new(&before);
    let graph = after.flame_graph(&FlameOptions {
        min_share: args.min_width / f64::from(args.width),
        ..FlameOptions::default()
    });
    let nodes = before.nodes_of(&graph);
    let mut picture = with_colors(after, args, false, names, |index, flame_box| {
        let share = flame_box.width as f64 / graph.width.max(1) as f64;
        let old = nodes[index].map_or(0.0, |node| before.shares[node]);
        let sign = if share < old { "-" } else { "+" };
        let remark = format!(", before {}, {sign}{}", percent(old), percent((share - old).abs()));
        (FlameColors::of_change((share - old) / STRONGEST), remark)
    });
    if args.subtitle.is_none() {
        picture.subtitle.push_str("; red takes more of the whole than before, blue less");
    }
    picture
}

/// The name by which boxes are compared: of what has none but its address, that.
fn comparable(name: &str) -> String {
    comparable_name(name).map_or_else(|| name.to_owned(), Cow::into_owned)
}

/// The shares of the nodes of a call tree, found by the names that lead to them.
struct SharesByPath {
    /// From a node (no node: from outside) and a name to the node of that name on it.
    children: HashMap<(Option<usize>, String), usize>,
    shares: Vec<f64>,
}

impl SharesByPath {
    fn new(graph: &FlameGraph<'_>) -> Self {
        let mut tree = Self { children: HashMap::new(), shares: Vec::new() };
        let mut nodes: Vec<usize> = Vec::with_capacity(graph.boxes.len());
        for flame_box in &graph.boxes {
            let key = (flame_box.parent.map(|parent| nodes[parent]), comparable(flame_box.name));
            let node = *tree.children.entry(key).or_insert(tree.shares.len());
            if node == tree.shares.len() {
                tree.shares.push(0.0);
            }
            tree.shares[node] += flame_box.width as f64 / graph.width.max(1) as f64;
            nodes.push(node);
        }
        tree
    }

    /// For each box of another graph the node of the same path.
    fn nodes_of(&self, graph: &FlameGraph<'_>) -> Vec<Option<usize>> {
        let mut nodes: Vec<Option<usize>> = Vec::with_capacity(graph.boxes.len());
        for flame_box in &graph.boxes {
            let name = comparable(flame_box.name);
            let on = match flame_box.parent {
                None => Some(None),
                Some(parent) => nodes[parent].map(Some),
            };
            nodes.push(on.and_then(|parent| self.children.get(&(parent, name)).copied()));
        }
        nodes
    }
}
