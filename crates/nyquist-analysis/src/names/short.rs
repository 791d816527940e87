//! Function names for display, without the generic arguments and parameter lists of Rust, C++ and Java names.

use std::borrow::Cow;

use super::shortener::Shortener;

/// Prefixes that C++ demanglers add to a name.
const PREFIXES: [&str; 8] = [
    "non-virtual thunk to ",
    "virtual thunk to ",
    "covariant return thunk to ",
    "guard variable for ",
    "vtable for ",
    "VTT for ",
    "typeinfo for ",
    "typeinfo name for ",
];

/// A name without its generic arguments, its parameters and its return type. Names of other languages are
/// unchanged.
pub fn short_name(name: &str) -> Cow<'_, str> {
    if let Some(method) = java_method(name) {
        return Cow::Borrowed(method);
    }
    if !is_rust_or_cpp(name) {
        return Cow::Borrowed(name);
    }
    if let Some((prefix, rest)) = PREFIXES.iter().find_map(|it| Some((*it, name.strip_prefix(it)?))) {
        return Cow::Owned(format!("{prefix}{}", short_name(rest)));
    }
    match Shortener::new(without_hash(name), 0).run() {
        Some(short) if !short.is_empty() => Cow::Owned(short),
        _ => Cow::Borrowed(name),
    }
}

/// Whether a name has Rust's or C++'s brackets, in the places where these languages have them.
fn is_rust_or_cpp(name: &str) -> bool {
    let Some(bracket) = name.find(['<', '(', '{']) else { return name.contains("::h") };
    let before = &name[..bracket];
    let is_word = |char: char| char.is_alphanumeric() || "_~$ *&".contains(char);
    let is_function = before.ends_with(|char: char| char.is_alphanumeric() || char == '_')
        && before.chars().all(is_word)
        && (name.ends_with([')', '>', ']']) || name.ends_with(" const"));
    name.contains("::") || is_function || name.starts_with("operator")
}

/// The class and the method of a name as Java's virtual machine writes it: `int
/// java.util.List.indexOf(java.lang.Object)`.
fn java_method(name: &str) -> Option<&str> {
    let (before, parameters) = name.strip_suffix(')')?.split_once('(')?;
    let (result, method) = before.split_once(' ')?;
    let is_type = |text: &str| text.chars().all(|char| char.is_alphanumeric() || "._$[]/".contains(char));
    let is_method = method.contains('.')
        && method.chars().all(|char| char.is_alphanumeric() || "._$/<>-".contains(char))
        && !method.ends_with('.');
    let is_java = is_method && is_type(result) && parameters.split(", ").all(is_type);
    is_java.then_some(method)
}

/// The name without the hash that Rust appends (`::h0123456789abcdef`).
pub fn without_hash(name: &str) -> &str {
    let is_hash = |hash: &str| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.rsplit_once("::h").filter(|(_, hash)| is_hash(hash)).map_or(name, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(table: &[(&str, &str)]) {
        for (name, expected) in table {
            assert_eq!(short_name(name), *expected, "{name}");
        }
    }

    #[test]
    fn generic_arguments_of_rust_are_left_out() {
        check(&[
            ("core::ptr::drop_in_place<alloc::vec::Vec<u8>>", "core::ptr::drop_in_place"),
            ("alloc::vec::Vec<T,A>::push", "alloc::vec::Vec::push"),
            ("app::run::<u32, core::option::Option<u8>>", "app::run"),
            ("app::run::<u32>::{closure#0}", "app::run::{closure#0}"),
            ("app::main::{{closure}}::{{closure}}", "app::main::{closure}::{closure}"),
            ("app::sort::h0123456789abcdef", "app::sort"),
            (
                "core::ops::function::impls::{impl#3}::call_mut<(u32), F>",
                "core::ops::function::impls::{impl#3}::call_mut",
            ),
            ("area<u32>", "area"),
            (
                "core::ops::function::FnOnce::call_once<fn() -> alloc::string::String, ()>",
                "core::ops::function::FnOnce::call_once",
            ),
            (
                "core::ops::function::FnOnce::call_once{{vtable.shim}}",
                "core::ops::function::FnOnce::call_once{vtable.shim}",
            ),
            ("app::Matrix<3_usize, {const expr}>::rows", "app::Matrix::rows"),
        ]);
    }

    #[test]
    fn qualified_types_keep_their_last_parts() {
        check(&[
            (
                "<alloc::vec::Vec<T> as core::iter::traits::IntoIterator>::into_iter",
                "<Vec as IntoIterator>::into_iter",
            ),
            ("<inlines::Square<u32> as inlines::Shape>::area", "<Square as Shape>::area"),
            ("<&T as core::fmt::Debug>::fmt", "<&T as Debug>::fmt"),
            ("<[alloc::string::String]>::sort", "<[String]>::sort"),
            ("<alloc::vec::Vec<u8>>::push", "alloc::vec::Vec::push"),
            ("<str>::len", "str::len"),
            ("<dyn app::Shape<u32> as app::Draw>::draw", "<dyn Shape as Draw>::draw"),
            ("<(A,B) as core::hash::Hash>::hash", "<(A,B) as Hash>::hash"),
            ("<fn(&u8) -> u32 as app::Call<(u8,)>>::call", "<fn(&u8) -> u32 as Call>::call"),
            ("<<A as app::B>::C as app::D<u8>>::e", "<<A as B>::C as D>::e"),
            (
                "core::fmt::num::imp::<impl core::fmt::Display for u32>::fmt",
                "core::fmt::num::imp::<impl Display for u32>::fmt",
            ),
            ("<core::iter::Map<I,F> as core::iter::Iterator>::fold::<u64, G>", "<Map as Iterator>::fold"),
            ("<app::Pool as core::ops::Drop>::drop::{closure#1}", "<Pool as Drop>::drop::{closure#1}"),
        ]);
    }

    #[test]
    fn cpp_templates_parameters_and_returns_are_cut() {
        check(&[
            ("std::vector<int, std::allocator<int> >::push_back(int const&)", "std::vector::push_back"),
            ("foo(int, char const*)", "foo"),
            ("void app::run<int>(int)", "app::run"),
            ("std::enable_if<true, int>::type app::pick<3>(std::pair<int, int>)", "app::pick"),
            ("(anonymous namespace)::work(long)", "(anonymous namespace)::work"),
            ("app::Shape::~Shape()", "app::Shape::~Shape"),
            ("app::Shape::area() const", "app::Shape::area"),
            (
                "app::f(int)::{lambda(int, char)#1}::operator()(int, char) const",
                "app::f::{lambda#1}::operator()",
            ),
            ("work(long) [clone .constprop.0]", "work [clone .constprop.0]"),
            ("non-virtual thunk to app::Shape<int>::area()", "non-virtual thunk to app::Shape::area"),
            ("app::call(void (*)(int))", "app::call"),
            ("app::A<(3 < 4)>::f()", "app::A::f"),
            ("char const* app::text<int>()", "app::text"),
        ]);
    }

    #[test]
    fn operators_are_no_brackets() {
        check(&[
            ("app::operator<(app::A const&, app::A const&)", "app::operator<"),
            ("std::operator<< <std::char_traits<char> >(std::ostream&, char const*)", "std::operator<<"),
            ("app::A<int>::operator->() const", "app::A::operator->"),
            ("app::A::operator()(int)", "app::A::operator()"),
            ("app::A::operator[](unsigned long)", "app::A::operator[]"),
            ("bool app::operator><int>(app::A<int>, app::A<int>)", "app::operator>"),
            ("operator new(unsigned long)", "operator new"),
            ("operator delete[](void*)", "operator delete[]"),
            ("app::A::operator bool() const", "app::A::operator bool"),
            ("app::A<&app::operator< >::f()", "app::A::f"),
            ("app::myoperator<int>()", "app::myoperator"),
        ]);
    }

    #[test]
    fn methods_of_java_are_a_class_and_a_name() {
        check(&[
            (
                "void java.util.ComparableTimSort.binarySort(java.lang.Object[], int, int, int)",
                "java.util.ComparableTimSort.binarySort",
            ),
            ("int J.work(int)", "J.work"),
            ("java.util.HashMap$Node[] java.util.HashMap.resize()", "java.util.HashMap.resize"),
            ("void java.util.ArrayList.<init>(java.util.Collection)", "java.util.ArrayList.<init>"),
            (
                "void J$$Lambda$14/0x0000000800c03000.accept(java.lang.Object)",
                "J$$Lambda$14/0x0000000800c03000.accept",
            ),
        ]);
        for other in
            ["StubRoutines (2)", "get app.name (index.js:3)", "a b.(c)", "main.f(int)", "x y.z(a(b))"]
        {
            assert_eq!(short_name(other), other);
        }
    }

    #[test]
    fn names_of_others_stay() {
        for name in [
            "main",
            "0x12ab",
            "fun_1f40",
            "[kernel: not permitted]",
            "(truncated: stack copy ended after 63 kB)",
            "<module>",
            "<listcomp>",
            "<frozen importlib._bootstrap>",
            "main.(*Server).Serve",
            "runtime.mapassign[...]",
            "(anonymous)",
            "GC (minor)",
            "LazyCompile:~run /app/index.js:12",
            "_ZN4core3fmt5WriteE",
            "a::b<unclosed",
            "java.util.List::size",
            "",
        ] {
            assert_eq!(short_name(name), name);
        }
    }

    #[test]
    fn strange_names_do_not_panic() {
        let check = |name: &str| assert!(short_name(name).len() <= name.len(), "{name}");
        for part in ["<", ">", "(", ")", "{", "}", "::", "operator", " as ", "ä", "<impl ", "->", " "] {
            for other in ["<", "a::", "operator<", "::<", "{", "é<", "<<", " "] {
                let name = format!("{other}{part}{other}::{part}{part}");
                check(&name);
                check(&format!("x::{name}>)"));
            }
        }
        let deep = format!("{}T{} as x::Y>::f", "<".repeat(5000), " as A>".repeat(4999));
        check(&deep);
    }
}
