//! Transforms of stacks, as the Firefox Profiler has them (`src/types/transforms.ts` of its repository).

use nyquist_profile::{CategoryId, FuncId, LibId, Profile};

use crate::derived::{Derived, Fate};
use crate::forest::{Forest, NONE};

/// A change of the stacks. Paths name functions from the root of the call tree, or where inverted from the function
/// that has the self time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transform {
    /// Removes a function from all stacks; its self time goes to its callers.
    MergeFunction(FuncId),
    /// Removes the node of that path from the call tree; its self time goes to its caller.
    MergeCallNode(Vec<FuncId>),
    /// Keeps samples that have the function, and of their stacks what its outermost call has called.
    FocusFunction(FuncId),
    /// Keeps the self time of a function, without callers.
    FocusSelf(FuncId),
    /// Keeps samples whose stack begins with the path, and of their stacks what comes from its last function.
    FocusSubtree(Vec<FuncId>),
    /// Keeps samples whose stack ends with the path, read from the innermost function outwards, and of their stacks
    /// what comes up to its last function: the subtree of the inverted tree at that path.
    FocusInvertedSubtree(Vec<FuncId>),
    /// Removes the frames of other categories; their self time goes to their callers.
    FocusCategory(CategoryId),
    /// Makes of each function that calls itself, over others or not, one call: what its inner call has called, its
    /// outer call has.
    CollapseRecursion(FuncId),
    /// The same only where the function calls itself with no other between.
    CollapseDirectRecursion(FuncId),
    /// Makes one frame of each run of frames of a lib.
    CollapseLib(LibId),
    /// Gives the function the self time of all that it calls.
    CollapseFunctionSubtree(FuncId),
    /// Drops samples that have the function.
    DropFunction(FuncId),
    /// Drops samples whose innermost frame has that category.
    DropCategory(CategoryId),
}

/// Applies a transform. O(nodes).
pub(crate) fn apply(profile: &Profile, transform: &Transform, derived: &mut Derived<'_>) {
    let number = |func: &FuncId| func.index() as u32;
    match transform {
        Transform::MergeFunction(func) => {
            merge_where(derived, |forest, node| forest.func[node] == number(func));
        }
        Transform::MergeCallNode(path) => merge_call_node(derived, path),
        Transform::FocusFunction(func) => focus_function(derived, number(func)),
        Transform::FocusSelf(func) => focus_self(derived, number(func)),
        Transform::FocusSubtree(path) => focus_subtree(derived, path),
        Transform::FocusInvertedSubtree(path) => focus_inverted_subtree(derived, path),
        Transform::FocusCategory(category) => {
            merge_where(derived, |forest, node| category_of(forest, node) != Some(*category));
        }
        Transform::CollapseRecursion(func) => collapse_recursion(derived, number(func), false),
        Transform::CollapseDirectRecursion(func) => collapse_recursion(derived, number(func), true),
        Transform::CollapseLib(lib) => collapse_lib(profile, derived, *lib),
        Transform::CollapseFunctionSubtree(func) => collapse_subtree(derived, number(func)),
        Transform::DropFunction(func) => {
            let inside = subtrees_of(&derived.forest, number(func));
            derived.retain_samples(|node| !inside[node]);
        }
        Transform::DropCategory(category) => {
            let forest = &*derived.forest;
            let is_other = |node: u32| category_of(forest, node as usize) != Some(*category);
            let nodes = 0..forest.len() as u32;
            derived.move_samples(nodes.map(|node| if is_other(node) { node } else { NONE }).collect());
        }
    }
}

fn category_of(forest: &Forest, node: usize) -> Option<CategoryId> {
    forest.category[node].map(|pair| pair.category)
}

fn merge_where(derived: &mut Derived<'_>, is_merged: impl Fn(&Forest, usize) -> bool) {
    let forest = &*derived.forest;
    let fate = |node| if is_merged(forest, node) { Fate::Merge } else { Fate::Keep };
    let fates: Vec<_> = (0..forest.len()).map(fate).collect();
    derived.apply(&fates);
}

/// Which nodes are calls of the function or come from one.
fn subtrees_of(forest: &Forest, func: u32) -> Vec<bool> {
    let mut inside: Vec<bool> = Vec::with_capacity(forest.len());
    for (&parent, &own) in forest.parent.iter().zip(&forest.func) {
        inside.push(own == func || (parent != NONE && inside[parent as usize]));
    }
    inside
}

fn focus_function(derived: &mut Derived<'_>, func: u32) {
    let inside = subtrees_of(&derived.forest, func);
    let fates: Vec<_> = inside.iter().map(|&inside| if inside { Fate::Keep } else { Fate::Drop }).collect();
    derived.apply(&fates);
    derived.keeps_stackless = false;
}

/// All self time of the function becomes that of roots.
fn focus_self(derived: &mut Derived<'_>, func: u32) {
    let forest = &*derived.forest;
    let mut roots = Forest::default();
    let mut root = |node: usize| roots.push(NONE, func, forest.stack[node], forest.category[node]);
    let target =
        (0..forest.len()).map(|node| if forest.func[node] == func { root(node) } else { NONE }).collect();
    derived.forest = std::borrow::Cow::Owned(roots);
    derived.move_samples(target);
    derived.keeps_stackless = false;
}

/// How many functions of a path each node has matched with its callers: its length from where it is complete on,
/// `None` off the path.
fn matched(forest: &Forest, path: &[FuncId]) -> Vec<Option<usize>> {
    let mut matched: Vec<Option<usize>> = Vec::with_capacity(forest.len());
    for (&parent, &func) in forest.parent.iter().zip(&forest.func) {
        let above = if parent == NONE { Some(0) } else { matched[parent as usize] };
        matched.push(match above {
            Some(count) if count == path.len() => Some(count),
            Some(count) if path[count].index() as u32 == func => Some(count + 1),
            _ => None,
        });
    }
    matched
}

fn focus_subtree(derived: &mut Derived<'_>, path: &[FuncId]) {
    let matched = matched(&derived.forest, path);
    let fate = |&count: &Option<usize>| if count == Some(path.len()) { Fate::Keep } else { Fate::Drop };
    let fates: Vec<_> = matched.iter().map(fate).collect();
    derived.apply(&fates);
    derived.keeps_stackless = false;
}

fn merge_call_node(derived: &mut Derived<'_>, path: &[FuncId]) {
    let forest = &*derived.forest;
    let matched = matched(forest, path);
    let count = |node: u32| if node == NONE { Some(0) } else { matched[node as usize] };
    // The node itself is where the path has just become complete.
    let is_merged = |node: usize| {
        count(node as u32) == Some(path.len()) && count(forest.parent[node]) != Some(path.len())
    };
    let fate = |node| if is_merged(node) { Fate::Merge } else { Fate::Keep };
    let fates: Vec<_> = (0..forest.len()).map(fate).collect();
    derived.apply(&fates);
}

fn focus_inverted_subtree(derived: &mut Derived<'_>, path: &[FuncId]) {
    let forest = &*derived.forest;
    let end_of_path = |leaf: u32| {
        let mut nodes = forest.ancestors(leaf);
        let mut last = leaf;
        for func in path {
            last = nodes.next().filter(|&node| forest.func[node as usize] == func.index() as u32)?;
        }
        Some(last)
    };
    let target = (0..forest.len() as u32).map(|node| end_of_path(node).unwrap_or(NONE)).collect();
    derived.move_samples(target);
    derived.keeps_stackless = false;
}

/// Puts inner calls beside the outermost one, where trees merge them with it. Lines and addresses are then those of
/// the innermost call; the outer ones only have where they call themselves.
fn collapse_recursion(derived: &mut Derived<'_>, func: u32, only_direct: bool) {
    let forest = &*derived.forest;
    // The caller of the outermost call that a node comes from.
    let mut outermost_caller: Vec<Option<u32>> = Vec::with_capacity(forest.len());
    let mut parents = forest.parent.clone();
    for (parent, &own) in parents.iter_mut().zip(&forest.func) {
        let above = if *parent == NONE { None } else { outermost_caller[*parent as usize] };
        let is_call = own == func;
        outermost_caller.push(match above {
            Some(caller) if is_call => {
                *parent = caller;
                above
            }
            Some(_) if only_direct => None,
            None if is_call => Some(*parent),
            _ => above,
        });
    }
    derived.reparent(&parents);
}

/// The first frame of a run stays and stands for the lib, the others merge into it.
fn collapse_lib(profile: &Profile, derived: &mut Derived<'_>, lib: LibId) {
    let collapsed = (profile.funcs().len() + lib.index()) as u32;
    let is_of_lib = |func: u32| {
        func == collapsed || profile.funcs().get(func as usize).is_some_and(|func| func.lib == Some(lib))
    };
    let mut forest = derived.forest.clone().into_owned();
    for func in &mut forest.func {
        if is_of_lib(*func) {
            *func = collapsed;
        }
    }
    let follows_its_like = |node: usize| {
        let parent = forest.parent[node];
        forest.func[node] == collapsed && parent != NONE && forest.func[parent as usize] == collapsed
    };
    let fate = |node| if follows_its_like(node) { Fate::Merge } else { Fate::Keep };
    let fates: Vec<_> = (0..forest.len()).map(fate).collect();
    derived.forest = std::borrow::Cow::Owned(forest);
    derived.apply(&fates);
}

fn collapse_subtree(derived: &mut Derived<'_>, func: u32) {
    let inside = subtrees_of(&derived.forest, func);
    let forest = &*derived.forest;
    let is_below = |node: usize| {
        let parent = forest.parent[node];
        parent != NONE && inside[parent as usize]
    };
    let fate = |node| if is_below(node) { Fate::Merge } else { Fate::Keep };
    let fates: Vec<_> = (0..forest.len()).map(fate).collect();
    derived.apply(&fates);
}
