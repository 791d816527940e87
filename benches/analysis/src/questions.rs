//! The kinds of questions, each with another subject a round.

use std::ops::Range;

use nyquist_analysis::{
    CodeSelection, FlameChartOptions, FlameOptions, Index, Pattern, SampleState, Selection, Transform, Tree,
    TreeLimits, View,
};
use nyquist_profile::{CategoryId, FuncId, LibId, ProcessIndex, StackId, ThreadIndex};

use nyquist_test_support::random::mix;

/// A kind of question.
pub(crate) struct Question {
    pub(crate) name: &'static str,
    /// Asks it; how many rows the answer has.
    pub(crate) ask: fn(&Index<'_>, usize) -> usize,
}

pub(crate) fn all() -> Vec<Question> {
    let question = |name, ask| Question { name, ask };
    vec![
        question("functions", |index, _| functions(index, &all_time())),
        question("functions of a thread", |index, round| functions(index, &thread(index, round))),
        question("functions of half of the threads", |index, round| {
            let threads = (0..index.profile().threads().len()).filter(|thread| (thread + round) % 2 == 0);
            let threads = threads.map(ThreadIndex::from_index).collect();
            functions(index, &Selection { threads: Some(threads), ..all_time() })
        }),
        question("functions of a process", |index, round| {
            let process = ProcessIndex::from_index(round % index.profile().processes().len());
            functions(index, &Selection { processes: Some(vec![process]), ..all_time() })
        }),
        question("functions in 1 % of the time", |index, round| functions(index, &range(index, round, 0.01))),
        question("functions in 10 % of the time", |index, round| functions(index, &range(index, round, 0.1))),
        question("functions in 50 % of the time", |index, round| functions(index, &range(index, round, 0.5))),
        question("functions in 90 % of the time", |index, round| functions(index, &range(index, round, 0.9))),
        question("functions, waiting", |index, _| {
            functions(index, &Selection { state: SampleState::OffCpu, ..all_time() })
        }),
        question("functions, focus on a substring", |index, round| {
            functions(index, &Selection { focus: substring(round), ..all_time() })
        }),
        question("functions, focus on a regex", |index, round| {
            functions(index, &Selection { focus: regex(round), ..all_time() })
        }),
        question("functions, ignore", |index, round| {
            functions(index, &Selection { ignore: substring(round), ..all_time() })
        }),
        question("functions, hide", |index, round| {
            functions(index, &Selection { hide: substring(round), ..all_time() })
        }),
        question("functions, show", |index, round| {
            functions(index, &Selection { show: substring(round), ..all_time() })
        }),
        question("functions of a lib", |index, round| {
            let libs = Some(vec![LibId::from_index(round % index.profile().libs().len())]);
            functions(index, &Selection { libs, ..all_time() })
        }),
        question("functions of a category", |index, round| {
            functions(
                index,
                &Selection { categories: Some(vec![CategoryId::from_index(1 + round % 2)]), ..all_time() },
            )
        }),
        question("call tree to 0.1 %", |index, round| {
            walk(View::new(index, &range(index, round, 0.99)).call_tree(), 0.001)
        }),
        question("call tree of a thread to 0.1 %", |index, round| {
            walk(View::new(index, &thread(index, round)).call_tree(), 0.001)
        }),
        question("inverted tree to 0.1 %, 5 levels", |index, round| {
            let view = View::new(index, &thread(index, round));
            let limits = TreeLimits { min_weight: view.total().weight / 1000, max_depth: 5 };
            view.inverted_tree().walk(limits).count()
        }),
        question("inverted roots", |index, round| {
            View::new(index, &range(index, round, 0.97)).inverted_tree().roots().len()
        }),
        question("peek", |index, round| {
            let peek = View::new(index, &all_time()).peek(func(index, round));
            peek.callers.len() + peek.callees.len()
        }),
        question("lines of a function", |index, round| {
            View::new(index, &all_time()).lines(CodeSelection::Function(func(index, round))).len()
        }),
        question("instructions of a function", |index, round| {
            View::new(index, &all_time()).instructions(CodeSelection::Function(func(index, round))).len()
        }),
        question("lines of everything in a range", |index, round| {
            View::new(index, &range(index, round, 0.5)).lines(CodeSelection::All).len()
        }),
        question("libs", |index, round| View::new(index, &range(index, round, 0.98)).by_lib().len()),
        question("categories", |index, round| {
            View::new(index, &range(index, round, 0.98)).by_category().len()
        }),
        question("threads", |index, round| View::new(index, &range(index, round, 0.96)).by_thread().len()),
        question("threads, focus", |index, round| {
            View::new(index, &Selection { focus: substring(round), ..all_time() }).by_thread().len()
        }),
        question("flame graph to 0.05 %", |index, round| {
            let options = FlameOptions { min_share: 0.0005, ..FlameOptions::default() };
            View::new(index, &range(index, round, 0.95)).flame_graph(&options).boxes.len()
        }),
        question("merge function", |index, round| {
            transformed(index, Transform::MergeFunction(func(index, round)))
        }),
        question("focus function", |index, round| {
            transformed(index, Transform::FocusFunction(func(index, round)))
        }),
        question("focus self", |index, round| transformed(index, Transform::FocusSelf(func(index, round)))),
        question("focus subtree", |index, round| {
            let mut path = path(index, round);
            path.truncate(4);
            transformed(index, Transform::FocusSubtree(path))
        }),
        question("focus inverted subtree", |index, round| {
            let mut path = path(index, round);
            path.reverse();
            path.truncate(2);
            transformed(index, Transform::FocusInvertedSubtree(path))
        }),
        question("merge call node", |index, round| {
            let mut path = path(index, round);
            path.truncate(4);
            transformed(index, Transform::MergeCallNode(path))
        }),
        question("focus category", |index, round| {
            transformed(index, Transform::FocusCategory(CategoryId::from_index(1 + round % 2)))
        }),
        question("collapse recursion", |index, round| {
            transformed(index, Transform::CollapseRecursion(func(index, round)))
        }),
        question("collapse lib", |index, round| {
            transformed(
                index,
                Transform::CollapseLib(LibId::from_index(round % index.profile().libs().len())),
            )
        }),
        question("drop function", |index, round| {
            transformed(index, Transform::DropFunction(func(index, round)))
        }),
        question("CPU timeline", |index, round| {
            View::new(index, &range(index, round, 0.99)).thread_timeline(1000).rows.len()
        }),
        question("flame chart of a thread", |index, round| flame_chart(index, round, 0..56)),
        question("flame chart of a thread, all levels", |index, round| {
            flame_chart(index, round, 0..usize::MAX)
        }),
    ]
}

/// With the columns of a page that is 1,300 pixels wide.
fn flame_chart(index: &Index<'_>, round: usize, joined_levels: Range<usize>) -> usize {
    let view = View::new(index, &thread(index, round));
    let times = view.times();
    let min_ns = (times.end - times.start) / 1300;
    let options = FlameChartOptions { min_ns, joined_levels, ..FlameChartOptions::default() };
    let thread = ThreadIndex::from_index(round * 7 % index.profile().threads().len());
    view.flame_chart(thread, &options).boxes.len()
}

fn all_time() -> Selection {
    Selection::default()
}

fn thread(index: &Index<'_>, round: usize) -> Selection {
    let thread = ThreadIndex::from_index(round * 7 % index.profile().threads().len());
    Selection { threads: Some(vec![thread]), ..all_time() }
}

/// Another part of that share of the time each round.
fn range(index: &Index<'_>, round: usize, share: f64) -> Selection {
    let ends = index.profile().threads().iter().filter_map(|thread| thread.samples.last());
    let end = ends.map(|sample| sample.time).max().unwrap_or(0) as f64;
    let start = (round as f64 * 0.077).fract() * (1.0 - share) * end;
    Selection { range: Some(start as u64..(start + share * end) as u64), ..all_time() }
}

fn substring(round: usize) -> Vec<Pattern> {
    let words = ["parse", "::check_", "alloc", "_77", "walk::emit", "resolve", "lib7.so", "query", "zzz"];
    vec![Pattern::substring(words[round % words.len()]).expect("it is only text")]
}

fn regex(round: usize) -> Vec<Pattern> {
    let texts = [
        "parse.*alloc",
        "check_\\d+7$",
        "^compiler_emit",
        "(walk|visit)_9",
        "[a-f]+_123",
        "q.*y.*_5",
        "lower",
        "build$",
        "a.c",
    ];
    vec![Pattern::regex(texts[round % texts.len()]).expect("it parses")]
}

/// A function of some stack.
fn func(index: &Index<'_>, round: usize) -> FuncId {
    let path = path(index, round);
    path[path.len() / 2]
}

/// The functions of some stack, from the root.
fn path(index: &Index<'_>, round: usize) -> Vec<FuncId> {
    let profile = index.profile();
    let stack = StackId::from_index(mix(round as u64) as usize % profile.stacks().len());
    let mut path: Vec<_> = profile.stack_frames(stack).map(|frame| frame.func).collect();
    path.reverse();
    path
}

fn functions(index: &Index<'_>, selection: &Selection) -> usize {
    View::new(index, selection).functions().functions.len()
}

fn transformed(index: &Index<'_>, transform: Transform) -> usize {
    let view = View::new(index, &Selection { transforms: vec![transform], ..all_time() });
    walk(view.call_tree(), 0.001)
}

fn walk(tree: Tree<'_>, share: f64) -> usize {
    let total: u64 = tree.roots().iter().map(|node| node.total.weight).sum();
    let min_weight = ((total as f64 * share) as u64).max(1);
    tree.walk(TreeLimits { min_weight, max_depth: 200 }).count()
}
