//! The selection of a request, from its parameters.

use std::ops::Range;

use nyquist_analysis::schema::FIRST_COLLAPSED_LIB;
use nyquist_analysis::{SampleState, Selection, Transform};
use nyquist_profile::{CategoryId, FuncId, LibId, Profile, ThreadIndex};
use nyquist_server::ViewerError;

use crate::errors::bad_request;
use crate::parameters::{Parameters, number, pattern};

/// The maximum number of filters and transforms of a selection, because each takes a pass over all stacks.
const MAX_CHANGES: usize = 64;

/// The selection for the parameters. `until_ns` is the current end of a running recording.
pub(crate) fn selection(
    parameters: &Parameters,
    profile: &Profile,
    until_ns: Option<u64>,
) -> Result<Selection, ViewerError> {
    check_changes(parameters)?;
    let mut selection = Selection::default();
    for (name, value) in parameters.iter().filter(|(_, value)| !value.is_empty()) {
        match name {
            "threads" => selection.threads = Some(threads(parameters, profile)?),
            "range" => selection.range = Some(range(value)?),
            "last" => {
                let seconds: u32 = number("last", value)?;
                let end = until_ns.unwrap_or_else(|| end_of(profile)).max(1);
                selection.range = Some(end.saturating_sub(u64::from(seconds) * 1_000_000_000)..end);
            }
            "state" => selection.state = state(value)?,
            "focus" => selection.focus.push(pattern(value)?),
            "ignore" => selection.ignore.push(pattern(value)?),
            "show" => selection.show.push(pattern(value)?),
            "hide" => selection.hide.push(pattern(value)?),
            "transform" => selection.transforms.push(transform(value, profile)?),
            _ => {}
        }
    }
    if parameters.is_set("own") {
        selection.transforms.insert(0, Transform::OwnCode);
    }
    if parameters.is_set("no_inline") {
        selection.transforms.insert(0, Transform::MergeInlined);
    }
    Ok(selection)
}

/// Counts the filters and transforms, before a pattern of them is compiled.
fn check_changes(parameters: &Parameters) -> Result<(), ViewerError> {
    let is_change = |name| ["focus", "ignore", "show", "hide", "transform"].contains(&name);
    let given = parameters.iter().filter(|(name, value)| !value.is_empty() && is_change(*name)).count();
    let switches = ["own", "no_inline"].into_iter().filter(|name| parameters.is_set(name)).count();
    if given + switches > MAX_CHANGES {
        return Err(bad_request(format_args!("more than {MAX_CHANGES} filters and transforms")));
    }
    Ok(())
}

fn threads(parameters: &Parameters, profile: &Profile) -> Result<Vec<ThreadIndex>, ViewerError> {
    let indexes = parameters.numbers("threads", ',')?.unwrap_or_default();
    indexes.into_iter().map(|index| thread(index, profile)).collect()
}

/// The thread with an index.
pub(crate) fn thread(index: usize, profile: &Profile) -> Result<ThreadIndex, ViewerError> {
    let is_there = index < profile.threads().len();
    is_there
        .then(|| ThreadIndex::from_index(index))
        .ok_or_else(|| bad_request(format_args!("there is no thread {index}")))
}

/// The end of a profile, in ns since its zero. O(threads).
pub(crate) fn end_of(profile: &Profile) -> u64 {
    let last = || profile.threads().iter().filter_map(|thread| Some(thread.samples.last()?.time)).max();
    profile.meta().profiling_end.or_else(last).unwrap_or(0)
}

/// The function with a number.
pub(crate) fn function(number: usize, profile: &Profile) -> Result<FuncId, ViewerError> {
    let (functions, libs) = (profile.funcs().len(), profile.libs().len());
    let index = match number.checked_sub(FIRST_COLLAPSED_LIB) {
        Some(lib) => Some(functions + lib).filter(|_| lib < libs),
        None => Some(number).filter(|_| number < functions),
    };
    index.map(FuncId::from_index).ok_or_else(|| bad_request(format_args!("there is no function {number}")))
}

fn range(value: &str) -> Result<Range<u64>, ViewerError> {
    let bounds = value.split_once('-').map(|(start, end)| (start.parse(), end.parse()));
    match bounds {
        Some((Ok(start), Ok(end))) if start <= end => Ok(start..end),
        _ => Err(bad_request("range takes START-END in ns, as 0-1000000")),
    }
}

fn state(value: &str) -> Result<SampleState, ViewerError> {
    Ok(match value {
        "running" => SampleState::OnCpu,
        "waiting" => SampleState::OffCpu,
        "both" => SampleState::Both,
        _ => return Err(bad_request("state takes running, waiting or both")),
    })
}

fn transform(value: &str, profile: &Profile) -> Result<Transform, ViewerError> {
    let (kind, of) = value.split_once(':').unwrap_or((value, ""));
    let func = || function(number("transform", of)?, profile);
    let path = || path(of, profile);
    Ok(match kind {
        "focus-function" => Transform::FocusFunction(func()?),
        "focus-self" => Transform::FocusSelf(func()?),
        "merge-function" => Transform::MergeFunction(func()?),
        "drop-function" => Transform::DropFunction(func()?),
        "collapse-recursion" => Transform::CollapseRecursion(func()?),
        "collapse-subtree" => Transform::CollapseFunctionSubtree(func()?),
        "focus-subtree" => Transform::FocusSubtree(path()?),
        "focus-inverted-subtree" => Transform::FocusInvertedSubtree(path()?),
        "collapse-lib" => {
            let index: usize = number("transform", of)?;
            let is_there = index < profile.libs().len();
            let lib = is_there.then(|| LibId::from_index(index));
            Transform::CollapseLib(lib.ok_or_else(|| bad_request(format_args!("there is no lib {index}")))?)
        }
        "drop-category" => {
            let index: usize = number("transform", of)?;
            let is_there = index < profile.categories().len();
            let category = is_there.then(|| CategoryId::from_index(index));
            let missing = || bad_request(format_args!("there is no category {index}"));
            Transform::DropCategory(category.ok_or_else(missing)?)
        }
        _ => return Err(bad_request(format_args!("there is no transform {:?}", shortened(kind)))),
    })
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

/// A path of functions, such as `4.17.3`.
pub(crate) fn path(text: &str, profile: &Profile) -> Result<Vec<FuncId>, ViewerError> {
    let functions = text.split('.').filter(|part| !part.is_empty());
    functions.map(|part| function(number("path", part)?, profile)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(query: &str) -> Result<Selection, ViewerError> {
        selection(&Parameters::parse(query), &Profile::default(), None)
    }

    #[test]
    fn what_is_not_given_selects_everything() {
        assert_eq!(selected("").unwrap(), Selection::default());
        assert_eq!(selected("threads=&range=&focus=&unknown=1").unwrap(), Selection::default());
    }

    #[test]
    fn inlined_code_is_merged_before_own_code() {
        let transforms = |query| selected(query).unwrap().transforms;
        assert_eq!(transforms("no_inline=1"), [Transform::MergeInlined]);
        assert_eq!(transforms("own=1&no_inline=1"), [Transform::MergeInlined, Transform::OwnCode]);
        assert_eq!(transforms("no_inline=0"), []);
    }

    #[test]
    fn the_last_seconds_end_with_what_is_recorded() {
        let selected = |until_ns| {
            let profile = Profile::default();
            selection(&Parameters::parse("last=5"), &profile, Some(until_ns)).unwrap().range
        };
        assert_eq!(selected(12_000_000_000), Some(7_000_000_000..12_000_000_000));
        assert_eq!(selected(3), Some(0..3));
    }

    #[test]
    fn what_cannot_be_understood_is_refused() {
        let check = |query: &str, message: &str| {
            assert_eq!(selected(query).unwrap_err(), bad_request(message), "{query}");
        };
        check("threads=12", "there is no thread 12");
        check("range=5", "range takes START-END in ns, as 0-1000000");
        check("range=9-5", "range takes START-END in ns, as 0-1000000");
        check("last=-1", "last takes a number, not \"-1\"");
        check("state=asleep", "state takes running, waiting or both");
        check("transform=explode:1", "there is no transform \"explode\"");
        check("transform=focus-function:4294967296", "there is no function 4294967296");
        check("transform=focus-subtree:1.2", "there is no function 1");
        check("transform=collapse-lib:0", "there is no lib 0");
        check("transform=drop-category:0", "there is no category 0");
        check(&"hide=x&".repeat(65), "more than 64 filters and transforms");
        // None of them is compiled.
        check(&"hide=/(/&".repeat(65), "more than 64 filters and transforms");
        check(&format!("own=1&{}", "hide=x&".repeat(64)), "more than 64 filters and transforms");
        check("hide=/%5Cw{500}/", "`\\w{500}` is too large to be compiled");
        assert!(selected("hide=/%5Cw{1,8}::x/").is_ok());
    }
}
