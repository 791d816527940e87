//! Chooses the function that a user means by its name, the end of its path, or a regular expression.

use std::cmp::Reverse;

use nyquist_profile::FuncId;
use thiserror::Error;

use crate::names::pattern::{Pattern, PatternError};
use crate::names::{short_name, without_hash};
use crate::query::functions::Function;
use crate::view::View;

/// The chosen function, and other candidates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionChoice<'a> {
    /// The function, once per lib and file that has it, the one with the most time first. Not empty.
    pub funcs: Vec<FuncId>,
    /// Other functions that match equally well, by their total time.
    pub others: Vec<Function<'a>>,
}

/// Why no function was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChoiceError<'a> {
    /// No function has this name, and it is not a regular expression either.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// No function matches. Has all functions with samples, the one with the most self time first.
    #[error("no function with samples matches")]
    NoMatch(Vec<Function<'a>>),
}

impl<'a> View<'a> {
    /// The function with this name among those that have samples. The whole name is compared first, then the
    /// name without its path, then the end of the path. At last, the text is a regular expression. Of several
    /// equally good matches, the one with the most time is chosen. A function with neither source nor self
    /// time is chosen only if there is no other. O(nodes + functions × log functions).
    ///
    /// # Errors
    /// If no function matches, or only a regular expression could match and it is not one.
    pub fn choose_function(&self, requested: &str) -> Result<FunctionChoice<'a>, ChoiceError<'a>> {
        let mut functions = self.functions().functions;
        functions.sort_by_key(|function| Reverse((function.total, function.self_amount)));
        if let Some(choice) = by_name(&functions, requested) {
            return Ok(choice);
        }
        let pattern = Pattern::regex(requested)?;
        best(&functions, &|name| pattern.matches(name)).ok_or_else(|| {
            // By total, the first would be the functions at the root of every program.
            functions.sort_by_key(|function| Reverse(function.self_amount));
            ChoiceError::NoMatch(functions)
        })
    }
}

/// The best function with a name. All matches may be shims.
fn by_name<'a>(functions: &[Function<'a>], requested: &str) -> Option<FunctionChoice<'a>> {
    let ways: [&dyn Fn(&str) -> bool; 3] = [
        &|name| name == requested || without_hash(name) == requested,
        &|name| short_name(name) == requested,
        &|name| ends_in(&short_name(name), requested),
    ];
    let mut shims = Vec::new();
    for matches in ways {
        if let Some(mut choice) = best(functions, matches) {
            if is_shim(functions, &choice) {
                shims.push(choice);
            } else {
                choice.others.retain(|other| !shims.iter().any(|shim| shim.funcs.contains(&other.func)));
                return Some(choice);
            }
        }
    }
    shims.into_iter().next()
}

/// Whether a function only calls others and has no source, such as the `main` that calls `app::main` in Rust
/// programs.
fn is_shim(functions: &[Function<'_>], choice: &FunctionChoice<'_>) -> bool {
    let mut chosen = functions.iter().filter(|function| choice.funcs.contains(&function.func));
    chosen.all(|function| function.self_amount.weight == 0 && function.file.is_none())
}

/// Whether a path ends in these parts.
fn ends_in(name: &str, parts: &str) -> bool {
    name.strip_suffix(parts).is_some_and(|before| before.ends_with("::") || before.ends_with('.'))
}

fn best<'a>(functions: &[Function<'a>], matches: &dyn Fn(&str) -> bool) -> Option<FunctionChoice<'a>> {
    let found: Vec<_> = functions.iter().filter(|function| matches(function.name)).collect();
    let first = *found.first()?;
    let (same, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|function| function.name == first.name && function.lib == first.lib);
    Some(FunctionChoice {
        funcs: same.into_iter().map(|function| function.func).collect(),
        others: others.into_iter().cloned().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Index;
    use crate::selection::Selection;
    use nyquist_profile::{Meta, Process, Profile, ProfileBuilder, Sample, Thread};

    fn profile(names: &[&str]) -> Profile {
        let mut builder = ProfileBuilder::new(Meta { interval: 1, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        for (time, name) in (0..).zip(names) {
            let stack = builder.intern_label(None, name, None);
            builder.add_sample(thread, Sample::new(time, Some(stack), 1));
        }
        builder.finish()
    }

    #[test]
    fn the_best_match_is_meant() {
        let check = |names: &[&str], requested, expected: &str, others| {
            let profile = profile(names);
            let index = Index::new(&profile);
            let view = View::new(&index, &Selection::default());
            let choice = view.choose_function(requested).unwrap();
            assert_eq!(
                (profile.func_name(choice.funcs[0]), choice.others.len()),
                (expected, others),
                "{requested}"
            );
        };
        check(&["parse_all", "parse", "app::parse"], "parse", "parse", 0);
        check(&["parse_all", "app::parse<u8>", "x::parse"], "parse", "app::parse<u8>", 1);
        check(&["parse_all", "app::parse<u8>"], "app::parse", "app::parse<u8>", 0);
        check(
            &["<a::Square<u32> as b::Shape>::area", "area2"],
            "area",
            "<a::Square<u32> as b::Shape>::area",
            0,
        );
        check(&["xx", "parse_one", "parse_all", "parse_all"], "^parse", "parse_all", 1);
    }

    #[test]
    fn main_is_the_programs_and_not_what_calls_it() {
        let mut builder = ProfileBuilder::new(Meta { interval: 1, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        let shim = builder.intern_label(None, "main", None);
        let main = builder.intern_label(Some(shim), "app::main", None);
        let work = builder.intern_label(Some(shim), "work", None);
        for (time, stack) in [(0, main), (1, work)] {
            builder.add_sample(thread, Sample::new(time, Some(stack), 1));
        }
        let profile = builder.finish();
        let index = Index::new(&profile);
        let view = View::new(&index, &Selection::default());
        let chosen =
            |view: &View<'_>| profile.func_name(view.choose_function("main").unwrap().funcs[0]).to_owned();
        assert_eq!(chosen(&view), "app::main");
        let ignore = vec![Pattern::regex("app").unwrap()];
        let without = Selection { ignore, ..Selection::default() };
        assert_eq!(chosen(&View::new(&index, &without)), "main");
    }

    #[test]
    fn without_a_match_the_hottest_are_named() {
        let profile = profile(&["b", "a", "a"]);
        let index = Index::new(&profile);
        let view = View::new(&index, &Selection::default());
        let names = match view.choose_function("parse") {
            Err(ChoiceError::NoMatch(functions)) => functions.iter().map(|function| function.name).collect(),
            _ => Vec::new(),
        };
        assert_eq!(names, ["a", "b"]);
        assert!(matches!(view.choose_function("pa("), Err(ChoiceError::Pattern(_))));
    }
}
