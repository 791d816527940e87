//! Functions as several tools write them: names without arguments, and those of allocators.

/// What calls `malloc` for others: DHAT has its own functions in the place of these, and heaptrack leaves them out of
/// its lists.
const ALLOCATORS: [&str; 19] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "valloc",
    "pvalloc",
    "operator new",
    "operator new[]",
    "__rust_alloc",
    "__rust_alloc_zeroed",
    "__rust_realloc",
    "__rdl_alloc",
    "__rdl_alloc_zeroed",
    "__rdl_realloc",
    "__libc_malloc",
    "__libc_realloc",
];

/// The function that a stack is counted for: the innermost that is named and is no allocator's, given the innermost
/// first.
pub(super) fn site_of<'a>(stack: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = stack.into_iter().map(bare);
    names.find(|name| !is_allocator(name) && !is_unnamed(name)).unwrap_or_else(|| "[no name]".to_owned())
}

fn is_allocator(name: &str) -> bool {
    ALLOCATORS.contains(&name)
}

/// Whether a tool has found no symbol, and says the address, or where it is.
fn is_unnamed(name: &str) -> bool {
    let is_address = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_hexdigit());
    ["", "???"].contains(&name) || name.contains("0x") || name.strip_prefix("fun_").is_some_and(is_address)
}

/// A name without what tools write differently: its path, which DHAT leaves out where a function is inlined, its
/// parameters and generic arguments, its version, and the underscores by which the C library's names of one function
/// differ.
fn bare(name: &str) -> String {
    let name = name.split(['@', '[']).next().unwrap_or(name);
    let name = without_brackets(name.strip_suffix(" const").unwrap_or(name));
    let last = name.rsplit("::").find(|part| !part.is_empty() && !is_hash(part));
    let part = last.unwrap_or(&name).trim();
    // A function template has its type before its name.
    let part = if part.starts_with("operator") { part } else { part.rsplit(' ').next().unwrap_or(part) };
    let endings = [".constprop", ".isra", ".part", ".cold", ".llvm"];
    let end = endings.iter().filter_map(|ending| part.find(ending)).min().unwrap_or(part.len());
    let part = &part[..end];
    if is_allocator(part) { part.to_owned() } else { part.trim_start_matches('_').to_owned() }
}

/// Whether a part of a name of Rust's is its hash.
fn is_hash(part: &str) -> bool {
    part.len() == 17
        && part.strip_prefix('h').is_some_and(|hash| hash.bytes().all(|it| it.is_ascii_hexdigit()))
}

/// The text outside of all brackets.
fn without_brackets(name: &str) -> String {
    let mut depth = 0_u32;
    let mut outside = String::new();
    for letter in name.chars() {
        match letter {
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => outside.push(letter),
            _ => {}
        }
    }
    outside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_several_tools_are_the_same() {
        for (name, short) in [
            ("std::vector<int, std::allocator<int> >::push_back(int const&)", "push_back"),
            ("std::map<int>::find(int) const", "find"),
            ("(anonymous namespace)::parse(char const*)", "parse"),
            ("void std::sort<int*>(int*, int*)", "sort"),
            ("<alloc::vec::Vec<T> as core::ops::Drop>::drop::h0123456789abcdef", "drop"),
            ("alloc::raw_vec::finish_grow::<alloc::alloc::Global>", "finish_grow"),
            ("app::main::{closure#0}", "{closure#0}"),
            ("getdelim@@GLIBC_2.2.5", "getdelim"),
            ("__strdup", "strdup"),
            ("split.constprop.0", "split"),
            ("sort [clone .part.3]", "sort"),
        ] {
            assert_eq!(bare(name), short);
        }
    }

    #[test]
    fn a_site_is_no_allocators_function() {
        let stack =
            ["__rdl_alloc", "_RNvCs_7___rustc::__rust_alloc", "0x4711", "fun_4711", "app::grow<T>", "main"];
        assert_eq!(site_of(stack), "grow");
        assert_eq!(site_of(["operator new(unsigned long)", "???"]), "[no name]");
        assert_eq!(site_of(["operator new[](unsigned long)", "<unresolved function>", "f(int)"]), "f");
    }
}
