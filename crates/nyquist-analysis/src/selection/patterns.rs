//! Focus, ignore, show and hide: pprof's filters by function (`profile/filter.go` of pprof).

use nyquist_profile::{Func, Profile, SourceId};

use crate::index::derived::{DerivedForest, NodeAction};
use crate::index::forest::NONE;
use crate::names::pattern::Pattern;
use crate::parallel;
use crate::selection::Selection;

/// Fewer functions than this are matched by one CPU.
const FUNCTIONS_WORTH_SHARING: usize = 2000;

/// Applies a selection's patterns.
pub(crate) fn apply(profile: &Profile, selection: &Selection, derived: &mut DerivedForest<'_>) {
    focus_and_ignore(profile, selection, derived);
    show_and_hide(profile, selection, derived);
    if selection.patterns().next().is_some() {
        derived.keeps_stackless = false;
    }
}

/// The state of a node's path: whether it has a focused frame, and whether it has an ignored one.
#[derive(Clone, Copy)]
struct Path {
    is_focused: bool,
    is_ignored: bool,
}

fn focus_and_ignore(profile: &Profile, selection: &Selection, derived: &mut DerivedForest<'_>) {
    if selection.focus.is_empty() && selection.ignore.is_empty() {
        return;
    }
    let focused = (!selection.focus.is_empty()).then(|| matching_functions(profile, &selection.focus));
    let ignored = matching_functions(profile, &selection.ignore);
    let forest = &*derived.forest;
    let mut paths: Vec<Path> = Vec::with_capacity(forest.len());
    for (&parent, &func) in forest.parent.iter().zip(&forest.func) {
        let above = match parent {
            NONE => Path { is_focused: focused.is_none(), is_ignored: false },
            parent => paths[parent as usize],
        };
        paths.push(Path {
            is_focused: above.is_focused || focused.as_ref().is_some_and(|focused| focused[func as usize]),
            is_ignored: above.is_ignored || ignored[func as usize],
        });
    }
    derived.retain_samples(|node| paths[node].is_focused && !paths[node].is_ignored);
}

fn show_and_hide(profile: &Profile, selection: &Selection, derived: &mut DerivedForest<'_>) {
    if selection.show.is_empty() && selection.hide.is_empty() {
        return;
    }
    let shown = (!selection.show.is_empty()).then(|| matching_functions(profile, &selection.show));
    let hidden = matching_functions(profile, &selection.hide);
    let action = |&func: &u32| {
        let is_shown = shown.as_ref().is_none_or(|shown| shown[func as usize]);
        if is_shown && !hidden[func as usize] { NodeAction::Keep } else { NodeAction::Merge }
    };
    let actions: Vec<_> = derived.forest.func.iter().map(action).collect();
    derived.apply(&actions);
}

/// For each function, whether one of the patterns matches its name, the path of its source file or the
/// name of its lib. O(functions × patterns).
pub(crate) fn matching_functions(profile: &Profile, patterns: &[Pattern]) -> Vec<bool> {
    if patterns.is_empty() {
        return vec![false; profile.funcs().len()];
    }
    let matches = |text: &str| patterns.iter().any(|pattern| pattern.matches(text));
    let sources: Vec<_> = (0..profile.sources().len())
        .map(|index| matches(profile.string(profile.source(SourceId::from_index(index)).filename)))
        .collect();
    let libs: Vec<_> = profile.libs().iter().map(|lib| matches(&lib.name)).collect();
    let is_matched = |func: &Func| {
        func.source.is_some_and(|source| sources[source.index()])
            || func.lib.is_some_and(|lib| libs[lib.index()])
            || matches(profile.string(func.name))
    };
    let pieces = parallel::pieces(profile.funcs().len(), FUNCTIONS_WORTH_SHARING, |range| {
        profile.funcs()[range].iter().map(is_matched).collect::<Vec<_>>()
    });
    pieces.concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::{TestProfile, tree_text, with_view};

    fn patterns(texts: &[&str]) -> Vec<Pattern> {
        texts.iter().map(|text| Pattern::regex(text).unwrap()).collect()
    }

    fn check(focus: &[&str], ignore: &[&str], show: &[&str], hide: &[&str], expected: &str, total: u64) {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        for (stack, weight) in [("A B C", 1), ("A B D", 2), ("E B@lib", 4), ("", 8)] {
            test.sample(stack, weight);
        }
        let selection = Selection {
            focus: patterns(focus),
            ignore: patterns(ignore),
            show: patterns(show),
            hide: patterns(hide),
            ..Selection::default()
        };
        with_view(&test.finish(), &selection, |view| {
            let what = format!("{focus:?} {ignore:?} {show:?} {hide:?}");
            assert_eq!(tree_text(view.call_tree()), expected, "{what}");
            assert_eq!(view.total().weight, total, "{what}");
        });
    }

    #[test]
    fn patterns_mean_what_they_mean_in_pprof() {
        check(&[], &[], &[], &[], "E:4,0 .B:4,4 A:3,0 .B:3,0 ..D:2,2 ..C:1,1", 15);
        check(&["C"], &[], &[], &[], "A:1,0 .B:1,0 ..C:1,1", 1);
        check(&["C", "E"], &[], &[], &[], "E:4,0 .B:4,4 A:1,0 .B:1,0 ..C:1,1", 5);
        check(&[], &["C|E"], &[], &[], "A:2,0 .B:2,0 ..D:2,2", 2);
        check(&["B"], &["D"], &[], &[], "E:4,0 .B:4,4 A:1,0 .B:1,0 ..C:1,1", 5);
        check(&[], &[], &["A|D"], &[], "A:3,1 .D:2,2", 3);
        check(&[], &[], &[], &["^B$"], "E:4,4 A:3,0 .D:2,2 .C:1,1", 7);
        check(&[], &[], &["A|E"], &["E"], "A:3,3", 3);
        // A pattern is matched against the name of the lib too.
        check(&["^lib$"], &[], &[], &[], "E:4,0 .B:4,4", 4);
        check(&["nothing"], &[], &[], &[], "", 0);
    }

    #[test]
    fn focus_looks_at_hidden_frames_too() {
        check(&["C"], &[], &[], &["C"], "A:1,0 .B:1,1", 1);
    }

    #[test]
    fn a_pattern_that_matches_nothing_is_known() {
        let mut test = TestProfile::new();
        test.thread("1", "main");
        test.sample("A B", 1);
        let selection =
            Selection { focus: patterns(&["A", "Z"]), hide: patterns(&["Y"]), ..Selection::default() };
        with_view(&test.finish(), &selection, |view| {
            assert_eq!(view.unmatched_patterns(), ["Z", "Y"]);
            assert!(!view.is_empty());
        });
    }
}
