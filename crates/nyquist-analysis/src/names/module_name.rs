//! The crate, namespace or package of a function, by its name.

use regex::Regex;
use std::sync::LazyLock;

/// Longer beginnings of names are not searched for their module.
const MAX_SEARCHED: usize = 300;

/// A path of Rust or C++: `<Vec<T> as Extend>::extend`, `llvm::Value::print`.
static PATH: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(?:[<&*\[(]|dyn |mut |impl )*([A-Za-z0-9_$]+)::").ok());

/// An import path of Go: `golang.org/x/net/http2.(*Server).Serve`.
static IMPORT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^([A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+?)\.\(?\*?[A-Za-z0-9_\[\]]").ok());

/// A package of Java or Python: `java.util.HashMap.resize`.
static PACKAGE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^([A-Za-z0-9_$]+\.[A-Za-z0-9_$]+)\.[A-Za-z0-9_$.<>]+$").ok());

/// The crate, namespace or package at the start of a function's path; `None` if the name has no path. The viewer
/// colours boxes by the same rule.
pub fn module_name(name: &str) -> Option<&str> {
    let end = name.char_indices().nth(MAX_SEARCHED).map_or(name.len(), |(end, _)| end);
    let start = &name[..end];
    let rules = [&PATH, &IMPORT, &PACKAGE].into_iter().filter_map(|rule| rule.as_ref());
    let mut found = rules.filter_map(|rule| rule.captures(start)?.get(1));
    found.next().map(|found| found.as_str())
}

#[cfg(test)]
mod tests {
    use super::module_name;

    #[test]
    fn a_path_begins_with_its_module() {
        let check = |name, expected| assert_eq!(module_name(name), expected, "{name}");
        check("core::fmt::write", Some("core"));
        check("<alloc::vec::Vec<T> as core::iter::Extend<T>>::extend", Some("alloc"));
        check("<&mut dyn serde::Serializer>::end", Some("serde"));
        check("llvm::Value::print()", Some("llvm"));
        check("golang.org/x/net/http2.(*Server).Serve", Some("golang.org/x/net/http2"));
        check("java.util.HashMap.resize", Some("java.util"));
        check("main", None);
        check("main.sorts", None);
        check("", None);
        check(&format!("{}::x", "ü".repeat(400)), None);
    }
}
