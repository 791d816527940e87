//! Transforms of stacks, the same as in the Firefox Profiler (`src/types/transforms.ts` of its repository).

use nyquist_profile::{CategoryId, FuncId, LibId, Profile};

use crate::index::derived::{DerivedForest, NodeAction};
use crate::index::forest::{Forest, NONE};
use crate::names::own_code::own_functions;

/// A change of the stacks. Paths name functions from the root of the call tree. Inverted paths start at the
/// function that has the self time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transform {
    /// Removes a function from all stacks; its self time goes to its callers.
    MergeFunction(FuncId),
    /// Removes the node of that path from the call tree; its self time goes to its caller.
    MergeCallNode(Vec<FuncId>),
    /// Keeps samples with the function, and the part of their stacks from its outermost call on.
    FocusFunction(FuncId),
    /// Keeps the self time of a function, without callers.
    FocusSelf(FuncId),
    /// Keeps samples whose stack begins with the path, and of their stacks the part from its last function
    /// on.
    FocusSubtree(Vec<FuncId>),
    /// Keeps samples whose stack ends with the path, read from the innermost function outwards. Of their
    /// stacks it keeps the part up to its last function. This is the subtree of the inverted tree at that
    /// path.
    FocusInvertedSubtree(Vec<FuncId>),
    /// Removes the frames of other categories; their self time goes to their callers.
    FocusCategory(CategoryId),
    /// Merges recursive calls of the function, direct or indirect, into one call. The callees of its inner
    /// calls become callees of its outer one.
    CollapseRecursion(FuncId),
    /// The same for direct recursion only.
    CollapseDirectRecursion(FuncId),
    /// Replaces each run of frames of a lib by one frame.
    CollapseLib(LibId),
    /// Gives the function the self time of everything that it calls.
    CollapseFunctionSubtree(FuncId),
    /// Drops samples with the function.
    DropFunction(FuncId),
    /// Drops samples whose innermost frame has that category.
    DropCategory(CategoryId),
    /// Removes inlined functions; their self time goes to the function into which they were compiled.
    MergeInlined,
    /// Removes the frames outside of the program's own code (see [`own_functions`](crate::own_functions)).
    /// Their self time goes to their callers. Samples without own code are dropped.
    OwnCode,
}

/// Applies a transform. O(nodes).
pub(crate) fn apply(profile: &Profile, transform: &Transform, derived: &mut DerivedForest<'_>) {
    let number = |func: &FuncId| func.index() as u32;
    match transform {
        Transform::MergeFunction(func) => {
            merge_where(derived, |forest, node| forest.func[node] == number(func));
        }
        Transform::OwnCode => {
            let own = own_functions(profile);
            merge_where(derived, |forest, node| own.get(forest.func[node] as usize) != Some(&true));
        }
        Transform::MergeInlined => merge_where(derived, |forest, node| is_inlined(profile, forest, node)),
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

/// Whether a node is a call that was inlined. An outermost node has nothing that holds it.
fn is_inlined(profile: &Profile, forest: &Forest, node: usize) -> bool {
    let frame = profile.frame(profile.stacks()[forest.stack[node] as usize].frame);
    frame.inline_depth > 0
        && forest.parent[node] != NONE
        && (forest.func[node] as usize) < profile.funcs().len()
}

fn category_of(forest: &Forest, node: usize) -> Option<CategoryId> {
    forest.category[node].map(|pair| pair.category)
}

fn merge_where(derived: &mut DerivedForest<'_>, is_merged: impl Fn(&Forest, usize) -> bool) {
    let forest = &*derived.forest;
    let action = |node| if is_merged(forest, node) { NodeAction::Merge } else { NodeAction::Keep };
    let actions: Vec<_> = (0..forest.len()).map(action).collect();
    derived.apply(&actions);
}

/// For each node, whether it is a call of the function or was called from one.
fn subtrees_of(forest: &Forest, func: u32) -> Vec<bool> {
    let mut inside: Vec<bool> = Vec::with_capacity(forest.len());
    for (&parent, &own) in forest.parent.iter().zip(&forest.func) {
        inside.push(own == func || (parent != NONE && inside[parent as usize]));
    }
    inside
}

fn focus_function(derived: &mut DerivedForest<'_>, func: u32) {
    let inside = subtrees_of(&derived.forest, func);
    let actions: Vec<_> =
        inside.iter().map(|&inside| if inside { NodeAction::Keep } else { NodeAction::Drop }).collect();
    derived.apply(&actions);
    derived.keeps_stackless = false;
}

/// Moves all self time of the function to root nodes.
fn focus_self(derived: &mut DerivedForest<'_>, func: u32) {
    let forest = &*derived.forest;
    let mut roots = Forest::default();
    let mut root = |node: usize| roots.push_root(func, forest.stack[node], forest.category[node]);
    let target =
        (0..forest.len()).map(|node| if forest.func[node] == func { root(node) } else { NONE }).collect();
    derived.forest = std::borrow::Cow::Owned(roots);
    derived.move_samples(target);
    derived.keeps_stackless = false;
}

/// The number of a path's functions that each node has matched with its callers. It is the path's length from
/// the node that completes the path on, and [`NONE`] off the path.
fn matched(forest: &Forest, path: &[FuncId]) -> Vec<u32> {
    let mut matched: Vec<u32> = Vec::with_capacity(forest.len());
    for (&parent, &func) in forest.parent.iter().zip(&forest.func) {
        let above = if parent == NONE { 0 } else { matched[parent as usize] };
        matched.push(match path.get(above as usize) {
            Some(next) if next.index() as u32 == func => above + 1,
            // The path is complete, or a caller has left it.
            None => above,
            Some(_) => NONE,
        });
    }
    matched
}

fn focus_subtree(derived: &mut DerivedForest<'_>, path: &[FuncId]) {
    let matched = matched(&derived.forest, path);
    let action =
        |&count: &u32| if count as usize == path.len() { NodeAction::Keep } else { NodeAction::Drop };
    let actions: Vec<_> = matched.iter().map(action).collect();
    derived.apply(&actions);
    derived.keeps_stackless = false;
}

fn merge_call_node(derived: &mut DerivedForest<'_>, path: &[FuncId]) {
    let forest = &*derived.forest;
    let matched = matched(forest, path);
    let is_complete = |node: u32| {
        let count = if node == NONE { 0 } else { matched[node as usize] };
        count as usize == path.len()
    };
    // The node that completes the path.
    let action = |node: u32| {
        if is_complete(node) && !is_complete(forest.parent[node as usize]) {
            NodeAction::Merge
        } else {
            NodeAction::Keep
        }
    };
    let actions: Vec<_> = (0..forest.len() as u32).map(action).collect();
    derived.apply(&actions);
}

fn focus_inverted_subtree(derived: &mut DerivedForest<'_>, path: &[FuncId]) {
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

/// Puts inner calls beside the outermost one, where trees merge them with it. Lines and addresses are then
/// those of the innermost call. The outer calls only keep those where they call themselves.
fn collapse_recursion(derived: &mut DerivedForest<'_>, func: u32, only_direct: bool) {
    let forest = &*derived.forest;
    // The caller of the outermost call that a node belongs to.
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

/// The first frame of a run stays and represents the lib. The others merge into it.
fn collapse_lib(profile: &Profile, derived: &mut DerivedForest<'_>, lib: LibId) {
    let collapsed = (profile.funcs().len() + lib.index()) as u32;
    let is_of_lib = |func: u32| {
        func == collapsed || profile.funcs().get(func as usize).is_some_and(|func| func.lib == Some(lib))
    };
    let forest = &*derived.forest;
    let follows_its_like = |node: usize| {
        let parent = forest.parent[node];
        is_of_lib(forest.func[node]) && parent != NONE && is_of_lib(forest.func[parent as usize])
    };
    let action = |node| if follows_its_like(node) { NodeAction::Merge } else { NodeAction::Keep };
    let actions: Vec<_> = (0..forest.len()).map(action).collect();
    derived.apply_and_rename(&actions, |func| if is_of_lib(func) { collapsed } else { func });
}

fn collapse_subtree(derived: &mut DerivedForest<'_>, func: u32) {
    let inside = subtrees_of(&derived.forest, func);
    let forest = &*derived.forest;
    let is_below = |node: usize| {
        let parent = forest.parent[node];
        parent != NONE && inside[parent as usize]
    };
    let action = |node| if is_below(node) { NodeAction::Merge } else { NodeAction::Keep };
    let actions: Vec<_> = (0..forest.len()).map(action).collect();
    derived.apply(&actions);
}

/// The examples of `src/types/transforms.ts` and `src/profile-logic/transforms.ts` of the Firefox Profiler.
#[cfg(test)]
mod tests {
    use nyquist_profile::{CategoryId, LibId, Profile};

    use super::*;
    use crate::names::pattern::Pattern;
    use crate::selection::Selection;
    use crate::test_profile::{TestProfile, func, tree_text, with_view};

    fn profile(samples: &[&str]) -> Profile {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        // The first sample has no CPU time, so it would not be equal to the others.
        test.sample("", 1);
        for stack in samples {
            test.sample(stack, 1);
        }
        test.finish()
    }

    fn path(profile: &Profile, names: &str) -> Vec<FuncId> {
        names.split_whitespace().map(|name| func(profile, name)).collect()
    }

    /// Checks the tree after transforms, and that the tree contains exactly the remaining samples.
    fn check(profile: &Profile, transforms: Vec<Transform>, expected: &str) {
        let selection = Selection { transforms, ..Selection::default() };
        with_view(profile, &selection, |view| {
            assert_eq!(tree_text(view.call_tree()), expected, "{:?}", selection.transforms);
            let left: u64 = view.by_thread().iter().map(|row| row.amount.weight).sum();
            assert_eq!(left, view.total().weight, "{:?}", selection.transforms);
        });
    }

    #[test]
    fn inlined_functions_belong_to_their_holder() {
        let stacks = ["A B inlined:C inlined:D", "A B inlined:C E inlined:D", "A B C", "inlined:X Y"];
        let profile = profile(&stacks);
        check(&profile, vec![Transform::MergeInlined], "A:3,0 .B:3,1 ..C:1,1 ..E:1,1 X:1,0 .Y:1,1");
    }

    const CALL_TREE: [&str; 3] = ["A B C D E", "A B C F G", "A B H F"];

    #[test]
    fn focusing_a_subtree_makes_its_node_the_root() {
        let profile = profile(&CALL_TREE);
        let focus = |names| vec![Transform::FocusSubtree(path(&profile, names))];
        check(&profile, focus("A B C"), "C:2,0 .D:1,0 ..E:1,1 .F:1,0 ..G:1,1");
        check(&profile, focus("A B H F"), "F:1,1");
        check(&profile, focus("B C"), "");
        check(
            &profile,
            focus(""),
            "A:3,0 .B:3,0 ..C:2,0 ...D:1,0 ....E:1,1 ...F:1,0 ....G:1,1 ..H:1,0 ...F:1,1",
        );
    }

    #[test]
    fn focusing_an_inverted_subtree_cuts_at_its_node() {
        let profile = profile(&["A B X Y Z", "A B C X Y Z", "A B C D E"]);
        let focus = vec![Transform::FocusInvertedSubtree(path(&profile, "Z Y X"))];
        check(&profile, focus.clone(), "A:2,0 .B:2,0 ..X:1,1 ..C:1,0 ...X:1,1");
        let selection = Selection { transforms: focus, ..Selection::default() };
        with_view(&profile, &selection, |view| {
            let expected = "X:2,2 .B:1,0 ..A:1,0 .C:1,0 ..B:1,0 ...A:1,0";
            assert_eq!(tree_text(view.inverted_tree()), expected);
        });
        check(&profile, vec![Transform::FocusInvertedSubtree(path(&profile, "Y X"))], "");
    }

    #[test]
    fn focusing_a_function_roots_its_outermost_calls() {
        let profile = profile(&["A X Y C", "A B X Y X Y D", "A B X Y X Y D"]);
        let focus = vec![Transform::FocusFunction(func(&profile, "X"))];
        check(&profile, focus, "X:3,0 .Y:3,0 ..X:2,0 ...Y:2,0 ....D:2,2 ..C:1,1");
    }

    #[test]
    fn focusing_self_time_drops_callees_and_callers() {
        let profile = profile(&["A X", "A B X X", "A X Y", "A"]);
        check(&profile, vec![Transform::FocusSelf(func(&profile, "X"))], "X:2,2");
        check(&profile, vec![Transform::FocusSelf(func(&profile, "B"))], "");
    }

    #[test]
    fn merging_a_call_node_gives_callees_to_caller() {
        let profile = profile(&CALL_TREE);
        let merge = |names| vec![Transform::MergeCallNode(path(&profile, names))];
        check(&profile, merge("A B C"), "A:3,0 .B:3,0 ..D:1,0 ...E:1,1 ..F:1,0 ...G:1,1 ..H:1,0 ...F:1,1");
        check(
            &profile,
            merge("A B C D E"),
            "A:3,0 .B:3,0 ..C:2,0 ...D:1,1 ...F:1,0 ....G:1,1 ..H:1,0 ...F:1,1",
        );
    }

    #[test]
    fn merging_a_function_gives_self_time_to_callers() {
        let profile = profile(&["A B C D E", "A B C F G", "A B H C"]);
        check(
            &profile,
            vec![Transform::MergeFunction(func(&profile, "C"))],
            "A:3,0 .B:3,0 ..H:1,1 ..D:1,0 ...E:1,1 ..F:1,0 ...G:1,1",
        );
        // Samples without a caller are dropped.
        let profile = self::profile(&["A", "A B"]);
        check(&profile, vec![Transform::MergeFunction(func(&profile, "A"))], "B:1,1");
    }

    #[test]
    fn others_code_counts_for_the_own_code_above_it() {
        let mut test = TestProfile::new();
        test.builder.meta_mut().product = "./app".into();
        test.thread("1", "main");
        test.sample("", 1);
        for stack in ["start@libc A@app malloc@libc", "start@libc A@app core::f@app B@app", "start@libc"] {
            test.sample(stack, 1);
        }
        check(&test.finish(), vec![Transform::OwnCode], "A:2,1 .B:1,1");
    }

    #[test]
    fn dropping_a_function_drops_its_samples() {
        let profile = profile(&["A B C", "A B C D", "A B D", "A C"]);
        check(&profile, vec![Transform::DropFunction(func(&profile, "C"))], "A:1,0 .B:1,0 ..D:1,1");
    }

    #[test]
    fn collapsing_a_lib_makes_one_frame_of_a_run() {
        let profile = profile(&["A B@firefox C@firefox D", "A E@firefox F"]);
        check(
            &profile,
            vec![Transform::CollapseLib(LibId::from_index(0))],
            "A:2,0 .firefox:2,0 ..D:1,1 ..F:1,1",
        );
        let profile = self::profile(&["B@lib C D@lib", "B@lib"]);
        let collapse = Transform::CollapseLib(LibId::from_index(0));
        check(&profile, vec![collapse.clone()], "lib:2,1 .C:1,0 ..lib:1,1");
        // Further transforms can name the function that stands for the lib.
        let lib = FuncId::from_index(profile.funcs().len());
        check(&profile, vec![collapse, Transform::CollapseRecursion(lib)], "lib:2,2");
    }

    #[test]
    fn collapsing_recursion_joins_inner_calls() {
        let collapse = |samples: &[&str], expected: &str| {
            let profile = profile(samples);
            check(&profile, vec![Transform::CollapseRecursion(func(&profile, "B"))], expected);
        };
        collapse(&["A B C B B D"], "A:1,0 .B:1,0 ..D:1,1");
        collapse(
            &["A B C B D", "A B C D", "A B B D", "A C D"],
            "A:4,0 .B:3,0 ..D:2,2 ..C:1,0 ...D:1,1 .C:1,0 ..D:1,1",
        );
        collapse(&["B B", "B"], "B:2,2");
    }

    #[test]
    fn collapsing_direct_recursion_leaves_other() {
        let collapse = |samples: &[&str], expected: &str| {
            let profile = profile(samples);
            check(&profile, vec![Transform::CollapseDirectRecursion(func(&profile, "B"))], expected);
        };
        collapse(&["A B B B C"], "A:1,0 .B:1,0 ..C:1,1");
        collapse(&["A B1 B B C B B"], "A:1,0 .B1:1,0 ..B:1,0 ...C:1,0 ....B:1,1");
        collapse(&["A B B C", "A B C"], "A:2,0 .B:2,0 ..C:2,2");
    }

    #[test]
    fn collapsing_a_subtree_gives_its_function_all() {
        let profile = profile(&["A B C D E", "A B C F G", "A B H C I", "A B H C J"]);
        check(
            &profile,
            vec![Transform::CollapseFunctionSubtree(func(&profile, "C"))],
            "A:4,0 .B:4,0 ..C:2,2 ..H:2,0 ...C:2,2",
        );
    }

    #[test]
    fn categories_are_those_that_frames_inherit() {
        let profile = profile(&["user:A kernel:B C", "user:A user:D kernel:E user:F", "user:A"]);
        let (user, kernel) = (CategoryId::from_index(1), CategoryId::from_index(2));
        check(&profile, vec![Transform::FocusCategory(user)], "A:3,2 .D:1,0 ..F:1,1");
        check(&profile, vec![Transform::FocusCategory(kernel)], "E:1,1 B:1,0 .C:1,1");
        check(&profile, vec![Transform::DropCategory(kernel)], "A:2,1 .D:1,0 ..E:1,0 ...F:1,1");
    }

    #[test]
    fn transforms_apply_in_order_and_after_patterns() {
        let profile = profile(&["A B C D", "A B D", "A D"]);
        let function = |name| func(&profile, name);
        let focus_then_merge =
            vec![Transform::FocusFunction(function("B")), Transform::MergeFunction(function("B"))];
        check(&profile, focus_then_merge, "D:1,1 C:1,0 .D:1,1");
        let merge_then_focus =
            vec![Transform::MergeFunction(function("B")), Transform::FocusFunction(function("B"))];
        check(&profile, merge_then_focus, "");
        let selection = Selection {
            hide: vec![Pattern::regex("B").unwrap()],
            transforms: vec![Transform::MergeCallNode(path(&profile, "A C"))],
            ..Selection::default()
        };
        with_view(&profile, &selection, |view| assert_eq!(tree_text(view.call_tree()), "A:3,0 .D:3,3"));
    }

    #[test]
    fn stacks_100000_frames_deep_are_transformed() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        test.deep_sample("f", 100_000);
        let profile = test.finish();
        let f = func(&profile, "f");
        check(&profile, vec![Transform::CollapseRecursion(f)], "f:1,1");
        check(&profile, vec![Transform::CollapseDirectRecursion(f)], "f:1,1");
        check(&profile, vec![Transform::CollapseFunctionSubtree(f)], "f:1,1");
        check(&profile, vec![Transform::MergeFunction(f)], "");
    }
}
