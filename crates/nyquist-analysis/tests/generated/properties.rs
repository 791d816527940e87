//! Sums that must agree, whatever the profile and the selection.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use nyquist_analysis::{
    Amount, CodeSelection, FlameOptions, Index, Pattern, SampleState, Selection, Transform, Tree, TreeLimits,
    View,
};
use nyquist_profile::{CategoryId, FuncId, LibId, Profile, ProfileBuilder, ThreadIndex};

use nyquist_test_support::generator::{Shape, generate};

fn small(seed: u64) -> Profile {
    generate(&Shape { samples: 3000, threads: 6, functions: 300, stacks: 2000, seed })
}

/// Selections of all kinds, some of which select nothing.
fn selections(profile: &Profile, seed: u64) -> Vec<Selection> {
    let func = |number: u64| FuncId::from_index((seed * 31 + number * 7) as usize % profile.funcs().len());
    // A path that some stack has.
    let stack = profile.stacks().len() * 2 / 3 + seed as usize;
    let stack = nyquist_profile::StackId::from_index(stack);
    let inverted: Vec<_> = profile.stack_frames(stack).map(|frame| frame.func).collect();
    let path: Vec<_> = inverted.iter().rev().copied().collect();
    let pattern = |text: &str| vec![Pattern::regex(text).unwrap()];
    let all = Selection::default;
    let mut selections = vec![
        all(),
        Selection { threads: Some(vec![ThreadIndex::from_index(1), ThreadIndex::from_index(4)]), ..all() },
        Selection { range: Some(100_000_000..300_000_000), ..all() },
        Selection { state: SampleState::OffCpu, ..all() },
        Selection { state: SampleState::Both, libs: Some(vec![LibId::from_index(3)]), ..all() },
        Selection { categories: Some(vec![CategoryId::from_index(2)]), ..all() },
        Selection { focus: pattern("parse"), ignore: pattern("_7"), ..all() },
        Selection { show: pattern("check|alloc"), hide: pattern("lib3"), ..all() },
        Selection { threads: Some(Vec::new()), ..all() },
    ];
    let transforms = [
        Transform::MergeFunction(func(1)),
        Transform::MergeCallNode(path[..3.min(path.len())].to_vec()),
        Transform::FocusFunction(path[path.len() / 2]),
        Transform::FocusSelf(inverted[0]),
        Transform::FocusSubtree(path[..2.min(path.len())].to_vec()),
        Transform::FocusInvertedSubtree(inverted[..1].to_vec()),
        Transform::FocusCategory(CategoryId::from_index(1)),
        Transform::CollapseRecursion(path[0]),
        Transform::CollapseRecursion(func(3)),
        Transform::CollapseDirectRecursion(func(3)),
        Transform::CollapseLib(LibId::from_index(5)),
        Transform::CollapseFunctionSubtree(func(4)),
        Transform::DropFunction(func(5)),
        Transform::DropCategory(CategoryId::from_index(2)),
    ];
    selections.extend(transforms.clone().map(|transform| Selection { transforms: vec![transform], ..all() }));
    selections.push(Selection { transforms: transforms[6..].to_vec(), hide: pattern("emit"), ..all() });
    selections
}

fn check_all(check: impl Fn(&View<'_>, &str)) {
    for seed in 0..4 {
        let profile = small(seed);
        let index = Index::new(&profile);
        for selection in selections(&profile, seed) {
            check(&View::new(&index, &selection), &format!("seed {seed}, {selection:?}"));
        }
    }
}

fn roots_total(tree: Tree<'_>) -> Amount {
    tree.roots().iter().map(|node| node.total).sum()
}

/// The sum of the samples with a stack.
fn in_stacks(view: &View<'_>) -> Amount {
    view.samples().filter(|sample| view.frames(sample).next().is_some()).map(|sample| sample.amount).sum()
}

#[test]
fn roots_and_self_amounts_sum_to_the_samples() {
    check_all(|view, what| {
        let expected = in_stacks(view);
        assert_eq!(roots_total(view.call_tree()), expected, "{what}");
        assert_eq!(roots_total(view.inverted_tree()), expected, "{what}");
        let own: Amount = view.functions().functions.iter().map(|function| function.self_amount).sum();
        assert_eq!(own, expected, "{what}");
        let all: Amount = view.samples().map(|sample| sample.amount).sum();
        assert_eq!(view.total(), all, "{what}");
        assert_eq!(view.by_thread().iter().map(|row| row.amount).sum::<Amount>(), all, "{what}");
        assert_eq!(view.by_process().iter().map(|row| row.amount).sum::<Amount>(), all, "{what}");
        assert_eq!(view.by_lib().iter().map(|row| row.self_amount).sum::<Amount>(), expected, "{what}");
        assert_eq!(view.by_category().iter().map(|row| row.self_amount).sum::<Amount>(), expected, "{what}");
        assert_eq!(view.summary().total, all, "{what}");
    });
}

#[test]
fn a_node_has_its_own_and_its_childrens_weight() {
    check_all(|view, what| {
        for tree in [view.call_tree(), view.inverted_tree()] {
            for (_, node) in tree.walk(TreeLimits { min_weight: 20, max_depth: usize::MAX }) {
                let children = tree.children(&node);
                assert_eq!(node.has_children, !children.is_empty(), "{what}");
                let below: Amount = children.iter().map(|child| child.total).sum();
                assert!(below.weight <= node.total.weight, "{what}");
                if node.self_amount != node.total || children.is_empty() {
                    assert!(children.is_sorted_by_key(|child| std::cmp::Reverse(child.total)), "{what}");
                }
            }
        }
        let tree = view.call_tree();
        for (_, node) in tree.walk(TreeLimits::default()) {
            let below: Amount = tree.children(&node).iter().map(|child| child.total).sum();
            assert_eq!(node.self_amount + below, node.total, "{what}");
        }
    });
}

#[test]
fn functions_match_a_count_sample_by_sample() {
    check_all(check_functions);
    // Enough stacks that several CPUs share them.
    let profile = generate(&Shape { samples: 20_000, threads: 3, functions: 5000, stacks: 200_000, seed: 5 });
    check_functions(&View::new(&Index::new(&profile), &Selection::default()), "many stacks");
}

/// Counts sample by sample, which is slow but simple.
fn check_functions(view: &View<'_>, what: &str) {
    let mut own = BTreeMap::<FuncId, u64>::new();
    let mut total = BTreeMap::<FuncId, u64>::new();
    for sample in view.samples() {
        let mut funcs: Vec<_> = view.frames(&sample).map(|frame| frame.func).collect();
        if let Some(&leaf) = funcs.first() {
            *own.entry(leaf).or_default() += sample.amount.weight;
        }
        funcs.sort_unstable();
        funcs.dedup();
        for func in funcs {
            *total.entry(func).or_default() += sample.amount.weight;
        }
    }
    let functions = view.functions().functions;
    assert_eq!(functions.len(), total.len(), "{what}");
    for function in functions {
        let expected = (own.get(&function.func).copied().unwrap_or(0), total[&function.func]);
        assert_eq!((function.self_amount.weight, function.total.weight), expected, "{what}");
    }
}

#[test]
fn callers_cover_a_function_whose_lines_are_own() {
    check_all(|view, what| {
        for function in view.functions().functions.iter().take(3) {
            let peek = view.peek(function.func);
            assert_eq!(
                (peek.function.self_amount, peek.function.total),
                (function.self_amount, function.total)
            );
            let callers: u64 = peek.callers.iter().map(|caller| caller.total.weight).sum();
            assert!(callers >= function.total.weight, "{what}");
            assert!(peek.callees.iter().all(|callee| callee.total.weight <= function.total.weight), "{what}");
            if function.func.index() < view.profile().funcs().len() {
                let lines = view.lines(CodeSelection::Function(function.func));
                assert_eq!(lines.iter().map(|line| line.self_amount).sum::<Amount>(), function.self_amount);
                let instructions = view.instructions(CodeSelection::Function(function.func));
                let own: Amount = instructions.iter().map(|instruction| instruction.self_amount).sum();
                assert_eq!(own, function.self_amount, "{what}");
            }
        }
    });
}

#[test]
fn flame_graphs_are_as_wide_as_the_samples() {
    check_all(|view, what| {
        for inverted in [false, true] {
            let graph = view.flame_graph(&FlameOptions { inverted, min_share: 0.0, max_depth: 40 });
            let bottom = graph.boxes.iter().filter(|found| found.depth == 0);
            assert_eq!(bottom.map(|found| found.width).sum::<u64>(), graph.width, "{what}");
            let narrow = view.flame_graph(&FlameOptions { inverted, min_share: 0.05, max_depth: 40 });
            assert!(
                narrow.boxes.iter().all(|found| found.width as f64 >= 0.05 * narrow.width as f64),
                "{what}"
            );
            assert!(
                graph.boxes.iter().filter(|found| found.width as f64 >= 0.05 * narrow.width as f64).count()
                    == narrow.boxes.len(),
                "{what}"
            );
        }
    });
}

#[test]
fn a_views_profile_answers_as_the_view_does() {
    check_all(|view, what| {
        let profile = view.to_profile();
        let index = Index::new(&profile);
        let again = View::new(&index, &Selection { state: view.selection().state, ..Selection::default() });
        let rows = |view: &View<'_>| {
            let mut rows: Vec<_> = view
                .functions()
                .functions
                .iter()
                .map(|row| (row.name.to_owned(), row.self_amount.weight, row.total.weight))
                .collect();
            rows.sort();
            rows
        };
        assert_eq!(again.total().weight, view.total().weight, "{what}");
        assert_eq!(rows(&again), rows(view), "{what}");
    });
}

#[test]
fn parts_of_the_time_sum_to_the_whole() {
    let profile = small(9);
    let index = Index::new(&profile);
    let of = |range| View::new(&index, &Selection { range, ..Selection::default() }).total();
    let whole = of(None);
    for middle in [0, 1, 77_000_000, 250_000_000, u64::MAX] {
        let (first, second) = (of(Some(0..middle)), of(Some(middle..u64::MAX)));
        assert_eq!(first + second, whole, "{middle}");
    }
}

/// Ranges of a recording with few stacks, for which the index has checkpoints. Some begin and end near a
/// checkpoint, some far from it.
#[test]
fn ranges_match_a_count_sample_by_sample() {
    let profile = generate(&Shape { samples: 40_000, threads: 5, functions: 100, stacks: 500, seed: 3 });
    let index = Index::new(&profile);
    let end = 17_000_000_000_u64;
    for number in 0..40 {
        let start = end / 40 * number;
        for length in [0, 1_000_000, end / 100, end / 9, end / 2, end] {
            for threads in [None, Some(vec![ThreadIndex::from_index(2), ThreadIndex::from_index(4)])] {
                let selection =
                    Selection { threads, range: Some(start..start + length), ..Selection::default() };
                let view = View::new(&index, &selection);
                check_functions(&view, &format!("{selection:?}"));
                check_threads(&view, &format!("{selection:?}"));
            }
        }
    }
}

#[test]
fn threads_match_a_count_sample_by_sample() {
    check_all(check_threads);
}

fn check_threads(view: &View<'_>, what: &str) {
    let mut counts = BTreeMap::<ThreadIndex, (u64, Amount)>::new();
    for sample in view.samples() {
        let (samples, amount) = counts.entry(sample.thread).or_default();
        *samples += 1;
        *amount += sample.amount;
    }
    for row in view.by_thread() {
        let expected = counts.remove(&row.thread).unwrap_or_default();
        assert_eq!((row.samples, row.amount), expected, "{what}, {}", row.name);
    }
    assert!(counts.is_empty(), "{what}");
}

#[test]
fn lines_match_a_count_sample_by_sample() {
    check_all(|view, what| {
        let mut own = BTreeMap::<_, Amount>::new();
        let mut total = BTreeMap::<_, Amount>::new();
        let functions = view.profile().funcs().len();
        for sample in view.samples() {
            let frames = view.frames(&sample);
            let mut lines: Vec<_> = frames
                .map(|frame| {
                    // Collapsed libs have no line.
                    let source = view.profile().func(frame.frame.func).source?;
                    let file = view.profile().string(view.profile().source(source).filename);
                    (frame.func.index() < functions).then_some((file, frame.frame.line))
                })
                .collect();
            if let Some(&Some(leaf)) = lines.first() {
                *own.entry(leaf).or_default() += sample.amount;
            }
            lines.sort_unstable();
            lines.dedup();
            lines.into_iter().flatten().for_each(|line| *total.entry(line).or_default() += sample.amount);
        }
        total.retain(|_, amount| !amount.is_zero());
        let lines = view.lines(CodeSelection::All);
        assert_eq!(lines.len(), total.len(), "{what}");
        let order = lines.iter().map(|line| (Reverse((line.self_amount, line.total)), line.file, line.line));
        assert!(order.is_sorted(), "{what}");
        for line in lines {
            let at = (line.file.unwrap(), line.line);
            assert_eq!(
                (line.self_amount, line.total),
                (own.remove(&at).unwrap_or_default(), total[&at]),
                "{what}"
            );
        }
    });
}

/// Whether parts of the index are worked out before a query or by it.
#[test]
fn a_prepared_index_gives_the_same_answers() {
    let profile = small(2);
    let prepared = Index::new(&profile);
    assert_eq!(std::iter::repeat_with(|| prepared.prepare_more()).take_while(|more| *more).count(), 4);
    for selection in selections(&profile, 2) {
        let threads = |index: &Index<'_>| {
            let view = View::new(index, &selection);
            let rows = view.by_thread().into_iter().map(|row| (row.thread, row.amount, row.samples));
            (view.total(), rows.collect::<Vec<_>>())
        };
        assert_eq!(threads(&Index::new(&profile)), threads(&prepared), "{selection:?}");
    }
}

/// Selections that leave out nothing. Some are recognised as such, others are processed sample by sample.
#[test]
fn time_lines_of_tallies_and_samples_agree() {
    let mut profile = generate(&Shape { samples: 40_000, threads: 4, functions: 50, stacks: 300, seed: 8 });
    for has_cpu_deltas in [true, false] {
        profile = without_stacks(profile, has_cpu_deltas);
        let index = Index::new(&profile);
        let ends = profile.threads().iter().filter_map(|thread| thread.samples.last());
        let end = ends.map(|sample| sample.time).max().unwrap();
        for range in
            [None, Some(0..end / 2), Some(end / 3..end / 2), Some(end / 7 + 1..end * 2), Some(end..end)]
        {
            for parts in [0, 1, 7, 100, 1000, 20_000] {
                let all = Selection { range: range.clone(), ..Selection::default() };
                let transforms = vec![Transform::MergeFunction(FuncId::from_index(0))];
                let one_by_one = Selection { transforms, ..all.clone() };
                let rows = |selection: &Selection| View::new(&index, selection).thread_timeline(parts);
                assert!(rows(&all) == rows(&one_by_one), "{range:?}, {parts} parts, {has_cpu_deltas}");
            }
        }
    }
}

/// The same samples without stacks, some at the same times, and with a gap.
fn without_stacks(profile: Profile, has_cpu_deltas: bool) -> Profile {
    let (mut builder, _) = ProfileBuilder::rebuild(profile);
    builder.remap_stacks(|_| None);
    builder.meta_mut().has_cpu_deltas = has_cpu_deltas;
    let samples = &mut builder.thread_mut(ThreadIndex::from_index(1)).samples;
    let mut all: Vec<_> = samples.iter().collect();
    for position in (10..all.len()).step_by(9) {
        all[position].time = all[position - 1].time;
    }
    all.drain(100..400);
    *samples = all.into_iter().collect();
    builder.finish()
}

#[test]
fn tracks_of_threads_sum_to_the_timeline() {
    const PARTS: usize = 40;
    check_all(|view, what| {
        let threads: Vec<_> = view.by_thread().iter().map(|row| row.thread).collect();
        let mut sums = BTreeMap::<_, Vec<u64>>::new();
        for row in view.category_timelines(&threads, PARTS).into_iter().flat_map(|track| track.rows) {
            let sum = sums.entry(row.category).or_insert_with(|| vec![0; PARTS]);
            sum.iter_mut().zip(row.parts_ns).for_each(|(sum, ns)| *sum += ns);
        }
        let all = view.category_timeline(PARTS).rows.into_iter();
        assert_eq!(sums, all.map(|row| (row.category, row.parts_ns)).collect(), "{what}");
        let by_thread = view.thread_timeline(PARTS).rows.into_iter().flat_map(|row| row.parts_ns);
        assert_eq!(by_thread.sum::<u64>(), sums.values().flatten().sum::<u64>(), "{what}");
    });
}

#[test]
fn time_with_a_function_is_that_of_its_focus() {
    const PARTS: usize = 40;
    check_all(|view, what| {
        let threads: Vec<_> = view.by_thread().iter().map(|row| row.thread).collect();
        let index = Index::new(view.profile());
        for func in view.functions().functions.iter().map(|one| one.func).step_by(41) {
            let mut selection = view.selection().clone();
            selection.transforms.push(Transform::FocusFunction(func));
            let focused = View::new(&index, &selection);
            let with = view.category_timelines_with(|other| other == func, &threads, PARTS);
            assert_eq!(with, focused.category_timelines(&threads, PARTS), "{what}");
            assert_eq!(
                view.category_timeline_with(|other| other == func, PARTS),
                focused.category_timeline(PARTS),
                "{what}"
            );
        }
    });
}
