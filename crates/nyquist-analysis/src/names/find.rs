//! Finds threads, processes, libs, categories and functions by the names that a user gives.

use nyquist_profile::{CategoryId, Func, FuncId, LibId, ProcessIndex, Profile, ThreadIndex};

use crate::names::pattern::Pattern;

/// The threads whose id is the pattern's text. If there are none, those whose names match it.
pub fn find_threads(profile: &Profile, pattern: &Pattern) -> Vec<ThreadIndex> {
    let found = find(profile.threads(), pattern, |thread| &thread.tid, |thread| &thread.name);
    found.map(ThreadIndex::from_index).collect()
}

/// The processes whose id is the pattern's text. If there are none, those whose names match it.
pub fn find_processes(profile: &Profile, pattern: &Pattern) -> Vec<ProcessIndex> {
    let found = find(profile.processes(), pattern, |process| &process.pid, |process| &process.name);
    found.map(ProcessIndex::from_index).collect()
}

/// The libs whose name is the pattern's text. If there are none, those whose names match it.
pub fn find_libs(profile: &Profile, pattern: &Pattern) -> Vec<LibId> {
    let found = find(profile.libs(), pattern, |lib| &lib.name, |lib| &lib.name);
    found.map(LibId::from_index).collect()
}

/// The categories whose name is the pattern's text. If there are none, those whose names match it.
pub fn find_categories(profile: &Profile, pattern: &Pattern) -> Vec<CategoryId> {
    let found = find(profile.categories(), pattern, |category| &category.name, |category| &category.name);
    found.map(CategoryId::from_index).collect()
}

/// The functions whose name is the pattern's text. If there are none, those whose names match it.
/// O(functions).
pub fn find_functions(profile: &Profile, pattern: &Pattern) -> Vec<FuncId> {
    let name = |func: &Func| profile.string(func.name);
    let found = find(profile.funcs(), pattern, name, name);
    found.map(FuncId::from_index).collect()
}

/// The places of the rows whose key is the pattern's text. If there are none, those whose names match it.
fn find<'p, T>(
    rows: &'p [T],
    pattern: &Pattern,
    key: impl Fn(&'p T) -> &'p str,
    name: impl Fn(&'p T) -> &'p str,
) -> impl Iterator<Item = usize> {
    let exact = positions(rows, |row| key(row) == pattern.as_str());
    let found = if exact.is_empty() { positions(rows, |row| pattern.matches(name(row))) } else { exact };
    found.into_iter()
}

fn positions<'p, T>(rows: &'p [T], accepts: impl Fn(&'p T) -> bool) -> Vec<usize> {
    rows.iter().enumerate().filter(|(_, row)| accepts(row)).map(|(index, _)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::TestProfile;
    use nyquist_profile::well_known;

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

    #[test]
    fn libs_and_categories_are_found_by_name() {
        let mut test = TestProfile::new();
        test.thread("12", "main");
        test.sample("parse@libc.so read@libc.so.6 user:poll kernel:sleep", 1);
        let profile = test.finish();
        let libs = |text: &str| {
            let found = find_libs(&profile, &Pattern::substring(text).unwrap());
            found.into_iter().map(|lib| profile.lib(lib).name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(libs("libc.so"), ["libc.so"]);
        assert_eq!(libs("LIBC"), ["libc.so", "libc.so.6"]);
        assert_eq!(libs("libm").len(), 0);
        let categories = |text: &str| {
            let found = find_categories(&profile, &Pattern::substring(text).unwrap());
            found.into_iter().map(|id| profile.category(id).name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(categories(well_known::USER), [well_known::USER]);
        assert_eq!(categories(&well_known::KERNEL.to_lowercase()), [well_known::KERNEL]);
        assert_eq!(categories("nothing").len(), 0);
    }
}
