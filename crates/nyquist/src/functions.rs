//! Finds the function that a user means, by its handle or name, and names other candidates.

use crate::failure::Failure;
use crate::selection::{handle, not_a_pattern};
use crate::text::Names;
use nyquist_analysis::{ChoiceError, Function, FunctionChoice, View, inlined_into, short_name};
use nyquist_profile::{FuncId, Profile};

/// The number of other matching functions that are listed.
const OTHERS_LISTED: usize = 5;

/// The chosen function, and other candidates.
#[derive(Debug)]
pub(crate) struct Choice<'a>(FunctionChoice<'a>);

impl Choice<'_> {
    /// The function, once per lib and file that has it.
    pub(crate) fn funcs(&self) -> &[FuncId] {
        &self.0.funcs
    }

    /// The function; if several libs or files have it, the one with the most time.
    pub(crate) fn first(&self) -> FuncId {
        self.0.funcs[0]
    }

    /// A sentence about other functions that match. `None` if there are none.
    pub(crate) fn others(&self, names: Names) -> Option<String> {
        if self.0.others.is_empty() {
            return None;
        }
        let named =
            |function: &Function<'_>| format!("{} (f-{})", names.show(function.name), function.func.index());
        let mut list: Vec<_> = self.0.others.iter().take(OTHERS_LISTED).map(named).collect();
        let more = self.0.others.len().saturating_sub(OTHERS_LISTED);
        if more > 0 {
            list.push(format!("{more} more"));
        }
        Some(format!("Other functions match, too: {}", list.join(", ")))
    }
}

/// Finds a function by its handle, or among those that have samples ([`View::choose_function`]).
pub(crate) fn choose<'a>(view: &View<'a>, requested: &str) -> Result<Choice<'a>, Failure> {
    if let Some(index) = handle(requested, 'f') {
        return by_handle(view, index);
    }
    view.choose_function(requested).map(Choice).map_err(|error| match error {
        ChoiceError::Pattern(error) => not_a_pattern(&error),
        ChoiceError::NoMatch(_) if !compiled_into(view.profile(), requested).is_empty() => {
            let into = compiled_into(view.profile(), requested);
            Failure::new(format!(
                "`{requested}` is inlined into {}, and no sample that passes the filters names it",
                into.join(", ")
            ))
            .hint(format!("leave out --no-inline or other filters, or name {}", into[0]))
        }
        ChoiceError::NoMatch(functions) => {
            let names = functions.iter().take(OTHERS_LISTED).map(|it| Names::Short.show(it.name));
            let names: Vec<_> = names.collect();
            Failure::new(format!("no function with samples matches `{requested}`"))
                .hint(format!("functions with the most time are {}", names.join(", ")))
        }
    })
}

/// The names of the compiled functions into which a function of this name was inlined, the first few.
fn compiled_into(profile: &Profile, requested: &str) -> Vec<String> {
    let is_requested = |func: FuncId| {
        let name = profile.func_name(func);
        name == requested || short_name(name).rsplit("::").next() == requested.rsplit("::").next()
    };
    let names = inlined_into(profile, is_requested).into_iter().map(|func| profile.func_name(func));
    names.take(OTHERS_LISTED).map(|name| Names::Short.show(name)).collect()
}

fn by_handle<'a>(view: &View<'a>, index: usize) -> Result<Choice<'a>, Failure> {
    if index >= view.profile().funcs().len() {
        return Err(Failure::new(format!("there is no function f-{index} in this profile"))
            .hint("handles are valid for one file; `nyquist query FILE functions` lists them"));
    }
    let func = FuncId::from_index(index);
    if !view.functions().functions.iter().any(|function| function.func == func) {
        let name = view.profile().func_name(func);
        return Err(Failure::new(format!("no sample that passes the filters is in {name} (f-{index})"))
            .hint("leave out --thread, --range or other filters"));
    }
    Ok(Choice(FunctionChoice { funcs: vec![func], others: Vec::new() }))
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

    fn chosen(names: &[&str], requested: &str) -> Result<(String, usize), String> {
        let profile = profile(names);
        let index = Index::new(&profile);
        let view = View::new(&index, &Selection::default());
        let choice = choose(&view, requested).map_err(|failure| failure.message)?;
        Ok((profile.func_name(choice.first()).to_owned(), choice.0.others.len()))
    }

    #[test]
    fn a_handle_means_one_function() {
        assert_eq!(chosen(&["xx", "parse"], "f-1"), Ok(("parse".to_owned(), 0)));
        assert_eq!(
            chosen(&["parse_all", "app::parse", "x::parse"], "parse"),
            Ok(("app::parse".to_owned(), 1))
        );
    }

    #[test]
    fn an_unknown_handle_says_where_they_come_from() {
        let profile = profile(&["a"]);
        let index = Index::new(&profile);
        let failure = choose(&View::new(&index, &Selection::default()), "f-7").unwrap_err();
        assert!(failure.hints[0].contains("`nyquist query FILE functions` lists"), "{failure:?}");
    }

    #[test]
    fn a_missing_function_is_said_to_be_missing() {
        assert_eq!(chosen(&["a"], "parse").unwrap_err(), "no function with samples matches `parse`");
        assert_eq!(chosen(&["a"], "f-7").unwrap_err(), "there is no function f-7 in this profile");
        assert!(chosen(&["a"], "pa(").unwrap_err().contains("unclosed group"));
    }
}
