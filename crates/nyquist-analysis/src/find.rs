//! Finds threads, processes, libs, categories and functions by the names that a user gives.

use nyquist_profile::{CategoryId, FuncId, LibId, ProcessIndex, Profile, ThreadIndex};

use crate::pattern::Pattern;

/// The threads whose id is the pattern's text. If there are none, those whose names match it.
pub fn find_threads(profile: &Profile, pattern: &Pattern) -> Vec<ThreadIndex> {
    let threads = profile.threads();
    let exact = positions(threads, |thread| thread.tid == pattern.as_str());
    let found = or_else(exact, || positions(threads, |thread| pattern.matches(&thread.name)));
    found.into_iter().map(ThreadIndex::from_index).collect()
}

/// The processes whose id is the pattern's text. If there are none, those whose names match it.
pub fn find_processes(profile: &Profile, pattern: &Pattern) -> Vec<ProcessIndex> {
    let processes = profile.processes();
    let exact = positions(processes, |process| process.pid == pattern.as_str());
    let found = or_else(exact, || positions(processes, |process| pattern.matches(&process.name)));
    found.into_iter().map(ProcessIndex::from_index).collect()
}

/// The libs whose name is the pattern's text. If there are none, those whose names match it.
pub fn find_libs(profile: &Profile, pattern: &Pattern) -> Vec<LibId> {
    let libs = profile.libs();
    let exact = positions(libs, |lib| lib.name == pattern.as_str());
    let found = or_else(exact, || positions(libs, |lib| pattern.matches(&lib.name)));
    found.into_iter().map(LibId::from_index).collect()
}

/// The categories whose name is the pattern's text. If there are none, those whose names match it.
pub fn find_categories(profile: &Profile, pattern: &Pattern) -> Vec<CategoryId> {
    let categories = profile.categories();
    let exact = positions(categories, |category| category.name == pattern.as_str());
    let found = or_else(exact, || positions(categories, |category| pattern.matches(&category.name)));
    found.into_iter().map(CategoryId::from_index).collect()
}

/// The functions whose name is the pattern's text. If there are none, those whose names match it.
/// O(functions).
pub fn find_functions(profile: &Profile, pattern: &Pattern) -> Vec<FuncId> {
    let funcs = profile.funcs();
    let exact = positions(funcs, |func| profile.string(func.name) == pattern.as_str());
    let found = or_else(exact, || positions(funcs, |func| pattern.matches(profile.string(func.name))));
    found.into_iter().map(FuncId::from_index).collect()
}

fn positions<T>(rows: &[T], accepts: impl Fn(&T) -> bool) -> Vec<usize> {
    rows.iter().enumerate().filter(|(_, row)| accepts(row)).map(|(index, _)| index).collect()
}

fn or_else(exact: Vec<usize>, others: impl FnOnce() -> Vec<usize>) -> Vec<usize> {
    if exact.is_empty() { others() } else { exact }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::TestProfile;

    #[test]
    fn an_exact_name_comes_before_those_that_match() {
        let mut test = TestProfile::new();
        test.thread("12", "worker");
        test.thread("12", "worker-2");
        test.thread("123", "main");
        test.sample("parse parse_all other", 1);
        let profile = test.finish();
        let threads = |text: &str| {
            let found = find_threads(&profile, &Pattern::substring(text).unwrap());
            found.into_iter().map(ThreadIndex::index).collect::<Vec<_>>()
        };
        assert_eq!(threads("WORK"), [0, 1]);
        assert_eq!(threads("main"), [2]);
        assert_eq!(threads("nothing"), [0; 0]);
        let functions = |text: &str| find_functions(&profile, &Pattern::substring(text).unwrap()).len();
        assert_eq!((functions("parse"), functions("pars"), functions("zzz")), (1, 2, 0));
        let processes = |text: &str| find_processes(&profile, &Pattern::substring(text).unwrap()).len();
        assert_eq!((processes("12"), processes("9")), (1, 0));
    }
}
