//! Finds the function that a user means: by handle, name, the end of its path, or a regular expression.

use crate::failure::Failure;
use crate::selection::{handle, pattern};
use crate::text::Names;
use nyquist_analysis::{Function, View, short_name, without_hash};
use nyquist_profile::FuncId;

/// The number of other matching functions that are listed.
const OTHERS_LISTED: usize = 5;

/// The chosen function, and other candidates.
#[derive(Debug)]
pub(crate) struct Choice<'a> {
    /// The function, once per lib and file that has it.
    pub(crate) funcs: Vec<FuncId>,
    others: Vec<Function<'a>>,
}

impl Choice<'_> {
    /// The function; if several libs or files have it, the one with the most time.
    pub(crate) fn first(&self) -> FuncId {
        self.funcs[0]
    }

    /// A sentence about other functions that match. `None` if there are none.
    pub(crate) fn others(&self, names: Names) -> Option<String> {
        if self.others.is_empty() {
            return None;
        }
        let named =
            |function: &Function<'_>| format!("{} (f-{})", names.show(function.name), function.func.index());
        let mut list: Vec<_> = self.others.iter().take(OTHERS_LISTED).map(named).collect();
        let more = self.others.len().saturating_sub(OTHERS_LISTED);
        if more > 0 {
            list.push(format!("{more} more"));
        }
        Some(format!("Other functions match, too: {}", list.join(", ")))
    }
}

/// Finds a function among those that have samples. Of several equally good matches, it chooses the one
/// with the most time. A function with neither source nor self time is chosen only if there is no other.
pub(crate) fn choose<'a>(view: &View<'a>, wanted: &str) -> Result<Choice<'a>, Failure> {
    let mut functions = view.functions().functions;
    functions.sort_by_key(|function| std::cmp::Reverse((function.total, function.self_amount)));
    if let Some(index) = handle(wanted, 'f') {
        return by_handle(view, &functions, index);
    }
    let ways: [&dyn Fn(&str) -> bool; 3] = [
        &|name| name == wanted || without_hash(name) == wanted,
        &|name| short_name(name) == wanted,
        &|name| ends_in(&short_name(name), wanted),
    ];
    let mut shims = Vec::new();
    for matches in ways {
        if let Some(mut choice) = best(&functions, matches) {
            if is_shim(&functions, &choice) {
                shims.push(choice);
            } else {
                choice.others.retain(|other| !shims.iter().any(|shim| shim.funcs.contains(&other.func)));
                return Ok(choice);
            }
        }
    }
    if let Some(shim) = shims.into_iter().next() {
        return Ok(shim);
    }
    let pattern = pattern(wanted)?;
    best(&functions, &|name| pattern.matches(name)).ok_or_else(|| {
        // By total, these would be the functions at the root of every program.
        let mut by_self: Vec<_> = functions.iter().collect();
        by_self.sort_by_key(|function| std::cmp::Reverse(function.self_amount));
        let names: Vec<_> = by_self.iter().take(OTHERS_LISTED).map(|it| Names::Short.show(it.name)).collect();
        let failure = Failure::new(format!("no function with samples matches `{wanted}`"));
        failure.hint(format!("functions with the most time are {}", names.join(", ")))
    })
}

fn by_handle<'a>(view: &View<'a>, functions: &[Function<'a>], index: usize) -> Result<Choice<'a>, Failure> {
    if index >= view.profile().funcs().len() {
        return Err(Failure::new(format!("there is no function f-{index} in this profile")));
    }
    let func = FuncId::from_index(index);
    if !functions.iter().any(|function| function.func == func) {
        let name = view.profile().func_name(func);
        return Err(Failure::new(format!("no sample that passes the filters is in {name} (f-{index})")));
    }
    Ok(Choice { funcs: vec![func], others: Vec::new() })
}

/// Whether a function only calls others and has no source, such as the `main` that calls `app::main` in Rust
/// programs.
fn is_shim(functions: &[Function<'_>], choice: &Choice<'_>) -> bool {
    let mut chosen = functions.iter().filter(|function| choice.funcs.contains(&function.func));
    chosen.all(|function| function.self_amount.weight == 0 && function.file.is_none())
}

/// Whether a path ends in these parts.
fn ends_in(name: &str, parts: &str) -> bool {
    name.strip_suffix(parts).is_some_and(|before| before.ends_with("::") || before.ends_with('.'))
}

fn best<'a>(functions: &[Function<'a>], matches: &dyn Fn(&str) -> bool) -> Option<Choice<'a>> {
    let found: Vec<_> = functions.iter().filter(|function| matches(function.name)).collect();
    let first = *found.first()?;
    let (same, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|function| function.name == first.name && function.lib == first.lib);
    Some(Choice {
        funcs: same.into_iter().map(|function| function.func).collect(),
        others: others.into_iter().cloned().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_analysis::{Index, Selection};
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

    fn chosen(names: &[&str], wanted: &str) -> Result<(String, usize), String> {
        let profile = profile(names);
        let index = Index::new(&profile);
        let view = View::new(&index, &Selection::default());
        let choice = choose(&view, wanted).map_err(|failure| failure.message)?;
        Ok((profile.func_name(choice.funcs[0]).to_owned(), choice.others.len()))
    }

    #[test]
    fn the_best_match_is_meant() {
        let check = |names: &[&str], wanted, expected: &str, others| {
            assert_eq!(chosen(names, wanted), Ok((expected.to_owned(), others)), "{wanted}");
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
        check(&["xx", "parse"], "f-1", "parse", 0);
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
        let chosen = |view: &View<'_>| profile.func_name(choose(view, "main").unwrap().first()).to_owned();
        assert_eq!(chosen(&view), "app::main");
        let without = Selection { ignore: vec![pattern("app").unwrap()], ..Selection::default() };
        assert_eq!(chosen(&View::new(&index, &without)), "main");
    }

    #[test]
    fn a_missing_function_is_said_to_be_missing() {
        assert_eq!(chosen(&["a"], "parse").unwrap_err(), "no function with samples matches `parse`");
        assert_eq!(chosen(&["a"], "f-7").unwrap_err(), "there is no function f-7 in this profile");
        assert!(chosen(&["a"], "pa(").unwrap_err().contains("unclosed group"));
    }
}
