//! Function names as people read them: the generic arguments and parameter lists of Rust's, C++'s and Java's names left out.

use super::one_line;
use std::borrow::Cow;

/// How deep qualified types may lie within each other (`<<A as B>::C as D>::e`) before the rest is left as it is.
const MAX_DEPTH: usize = 8;

/// What demanglers of C++ put in front of a name.
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

/// The names of C++'s operators that are made of signs, of those with a common beginning the longest first.
const OPERATORS: [&str; 41] = [
    "<=>", "->*", "<<=", ">>=", "()", "[]", "->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "++", "--",
    "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<", ">", "+", "-", "*", "/", "%", "^", "&", "|", "~",
    "!", "=", ",", "\"\"", "[",
];

/// How names are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Names {
    /// Without generic arguments and parameters.
    #[default]
    Short,
    /// As they are.
    Full,
}

impl Names {
    /// The name as it is shown, with hidden characters escaped.
    pub(crate) fn show(self, name: &str) -> String {
        let name = match self {
            Self::Short => shorten(name),
            Self::Full => Cow::Borrowed(name),
        };
        one_line(&name).into_owned()
    }
}

/// A name without its generic arguments, its parameters and its return type. Names of other languages stay.
pub(crate) fn shorten(name: &str) -> Cow<'_, str> {
    if let Some(method) = java_method(name) {
        return Cow::Borrowed(method);
    }
    if !is_rust_or_cpp(name) {
        return Cow::Borrowed(name);
    }
    if let Some((prefix, rest)) = PREFIXES.iter().find_map(|it| Some((*it, name.strip_prefix(it)?))) {
        return Cow::Owned(format!("{prefix}{}", shorten(rest)));
    }
    match Shortener::new(without_hash(name), 0).run() {
        Some(short) if !short.is_empty() => Cow::Owned(short),
        _ => Cow::Borrowed(name),
    }
}

/// Whether a name has the brackets, and in the places, that Rust and C++ have.
fn is_rust_or_cpp(name: &str) -> bool {
    let Some(bracket) = name.find(['<', '(', '{']) else { return name.contains("::h") };
    let before = &name[..bracket];
    let is_word = |char: char| char.is_alphanumeric() || "_~$ *&".contains(char);
    let is_function = before.ends_with(|char: char| char.is_alphanumeric() || char == '_')
        && before.chars().all(is_word)
        && (name.ends_with([')', '>', ']']) || name.ends_with(" const"));
    name.contains("::") || is_function || name.starts_with("operator")
}

/// The class and the method of a name as Java's virtual machine writes it: `int java.util.List.indexOf(java.lang.Object)`.
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

/// The name without the hash that Rust puts behind it (`::h0123456789abcdef`).
pub(crate) fn without_hash(name: &str) -> &str {
    let is_hash = |hash: &str| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.rsplit_once("::h").filter(|(_, hash)| is_hash(hash)).map_or(name, |(name, _)| name)
}

/// Walks once over a name and copies what is to stay.
struct Shortener<'a> {
    rest: &'a str,
    out: String,
    depth: usize,
    has_parameters: bool,
}

impl<'a> Shortener<'a> {
    fn new(name: &'a str, depth: usize) -> Self {
        Self { rest: name, out: String::new(), depth, has_parameters: name.contains('(') }
    }

    /// `None` where the brackets do not match.
    fn run(mut self) -> Option<String> {
        while let Some(next) = self.rest.chars().next() {
            match next {
                'o' if self.operator() => {}
                '<' => self.angle()?,
                '(' => self.parenthesis()?,
                '{' => self.brace()?,
                ' ' => self.blank(),
                _ => self.copy(next.len_utf8()),
            }
        }
        Some(self.out)
    }

    fn copy(&mut self, len: usize) {
        let (copied, rest) = self.rest.split_at(len);
        self.out.push_str(copied);
        self.rest = rest;
    }

    /// What is in the brackets at which the rest begins, and what follows them.
    fn group(&self) -> Option<(&'a str, &'a str)> {
        let end = closing(self.rest)?;
        Some((&self.rest[1..end], &self.rest[end + 1..]))
    }

    fn begins_segment(&self) -> bool {
        self.out.is_empty() || self.out.ends_with("::")
    }

    /// Copies `operator<<` and its like, whose brackets are none. Says whether there was one.
    fn operator(&mut self) -> bool {
        let is_new_word = !self.out.ends_with(|char: char| char.is_alphanumeric() || char == '_');
        let Some(after) = self.rest.strip_prefix("operator").filter(|_| is_new_word) else { return false };
        if let Some(sign) = OPERATORS.iter().find(|sign| after.starts_with(**sign)) {
            self.copy("operator".len() + sign.len());
            // Demanglers keep the template's brackets apart from the sign.
            if self.rest.starts_with(" <") {
                self.rest = &self.rest[1..];
            }
            return true;
        }
        // `operator new[]`, and conversions: the type up to the parameters.
        let Some(kind) = after.strip_prefix(' ') else { return false };
        let len = kind.find(['(', '<']).unwrap_or(kind.len());
        self.copy("operator ".len() + len);
        true
    }

    fn angle(&mut self) -> Option<()> {
        let (inner, after) = self.group()?;
        if !self.begins_segment() {
            self.rest = after;
            return Some(());
        }
        let is_implementation = inner.starts_with("impl ");
        if self.out.ends_with("::") && !is_implementation {
            // `collect::<Vec<_>>`
            self.out.truncate(self.out.len() - 2);
        } else if self.out.is_empty() && !after.starts_with("::") {
            // `<module>` and others that are no path.
            return None;
        } else {
            let qualified = self.qualified(inner);
            self.out.push_str(&qualified);
        }
        self.rest = after;
        Some(())
    }

    /// `<Type as Trait>`, `<impl Trait for Type>` and `<Type>`, each with the last part of its paths.
    fn qualified(&self, inner: &str) -> String {
        if self.depth >= MAX_DEPTH {
            return format!("<{inner}>");
        }
        let last = |path: &str| self.last_part(path);
        if let Some((of, name)) = split_outside(inner, " as ") {
            return format!("<{} as {}>", last(of), last(name));
        }
        if let Some((name, of)) = inner.strip_prefix("impl ").and_then(|inner| split_outside(inner, " for "))
        {
            return format!("<impl {} for {}>", last(name), last(of));
        }
        let short = Shortener::new(inner, self.depth + 1).run().unwrap_or_else(|| inner.to_owned());
        let is_path = short.chars().all(|char| char.is_alphanumeric() || "_:<>{}#".contains(char));
        if is_path { short } else { format!("<{}>", types_shortened(inner, self.depth)) }
    }

    /// A type without its arguments and the modules that it is in.
    fn last_part(&self, path: &str) -> String {
        let signs = path.len() - path.trim_start_matches(['&', '*']).len();
        let (signs, path) = path.split_at(signs);
        let is_plain = path.starts_with(|char: char| char.is_alphanumeric() || char == '_' || char == '<');
        let words = ["dyn ", "mut ", "const ", "fn(", "unsafe ", "impl "];
        if !is_plain || words.iter().any(|word| path.starts_with(word)) {
            return format!("{signs}{}", types_shortened(path, self.depth));
        }
        let short = Shortener::new(path, self.depth + 1).run().unwrap_or_else(|| path.to_owned());
        let short = match short.strip_prefix('<') {
            Some(_) => short.as_str(),
            None => short.rsplit("::").next().unwrap_or_default(),
        };
        format!("{signs}{short}")
    }

    fn parenthesis(&mut self) -> Option<()> {
        let (inner, after) = self.group()?;
        if self.begins_segment() {
            // `(anonymous namespace)`
            self.copy(inner.len() + 2);
            return Some(());
        }
        self.rest = after;
        if !after.starts_with("::") {
            self.qualifiers();
        }
        Some(())
    }

    /// Leaves out what C++ has behind parameters; what compilers say of clones stays.
    fn qualifiers(&mut self) {
        let known = [" const", " volatile", " noexcept", " &&", " &", "&&", "&"];
        while let Some(rest) = known.iter().find_map(|word| self.rest.strip_prefix(word)) {
            self.rest = rest;
        }
        if !self.rest.starts_with("::") {
            let len = self.rest.len();
            self.copy(len);
        }
    }

    /// `{{closure}}`, `{closure#0}`, `{impl#0}`, `{lambda(int)#1}`, `{shim:vtable#0}`.
    fn brace(&mut self) -> Option<()> {
        let (mut inner, after) = self.group()?;
        while let Some(doubled) = inner.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')) {
            inner = doubled;
        }
        let inner = match (inner.find('('), inner.rfind(')')) {
            (Some(open), Some(close)) if open < close => format!("{}{}", &inner[..open], &inner[close + 1..]),
            _ => inner.to_owned(),
        };
        self.out.push('{');
        self.out.push_str(&inner);
        self.out.push('}');
        self.rest = after;
        Some(())
    }

    /// Outside of brackets a blank parts the return type from the name, or the name from what is said of it.
    fn blank(&mut self) {
        let is_note = self.rest.starts_with(" [") || self.rest.starts_with(" (.");
        if is_note || !self.has_parameters {
            let len = self.rest.len();
            self.copy(len);
            return;
        }
        self.out.clear();
        self.rest = self.rest[1..].trim_start_matches(['&', '*', ' ']);
    }
}

/// A type that is more than a path, with the modules of the paths in it left out: `&[alloc::string::String]`.
fn types_shortened(text: &str, depth: usize) -> String {
    let is_path = |char: char| char.is_alphanumeric() || char == '_' || char == ':';
    let mut out = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if is_path(next) {
            let len = rest.find(|char| !is_path(char)).unwrap_or(rest.len());
            out.push_str(rest[..len].rsplit("::").next().unwrap_or_default());
            rest = &rest[len..];
        } else if next == '<' && depth < MAX_DEPTH {
            let Some(end) = closing(rest) else { return text.to_owned() };
            rest = &rest[end + 1..];
        } else {
            out.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    out
}

/// The place of the bracket that closes the one at which the text begins.
fn closing(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut open = Vec::new();
    let mut index = 0;
    while index < bytes.len() {
        index += skip_operator(text, index);
        let &byte = bytes.get(index)?;
        match byte {
            b'<' | b'(' | b'[' | b'{' => open.push(byte),
            b'>' if index > 0 && bytes[index - 1] == b'-' => {}
            b'>' | b')' | b']' | b'}' => {
                // Of a comparison among C++'s template arguments the sign has no partner.
                while byte != b'>' && open.last() == Some(&b'<') {
                    open.pop();
                }
                if partner(byte) != open.pop()? {
                    return None;
                }
                if open.is_empty() {
                    return Some(index);
                }
            }
            _ => {}
        }
        index += 1;
    }
    None
}

fn partner(closing: u8) -> u8 {
    match closing {
        b'>' => b'<',
        b')' => b'(',
        b']' => b'[',
        _ => b'{',
    }
}

/// How many bytes of `operator<<` and its like stand at that place.
fn skip_operator(text: &str, index: usize) -> usize {
    let after = text.get(index..).and_then(|rest| rest.strip_prefix("operator"));
    let sign = after.and_then(|after| OPERATORS.iter().find(|sign| after.starts_with(**sign)));
    sign.map_or(0, |sign| "operator".len() + sign.len())
}

/// Splits at the first such word that is in no bracket.
fn split_outside<'a>(text: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let mut from = 0;
    while let Some(next) = text.get(from..)?.find(|char: char| "<([{ ".contains(char)) {
        let at = from + next;
        if text[at..].starts_with(word) {
            return Some((&text[..at], &text[at + word.len()..]));
        }
        from = if text.as_bytes()[at] == b' ' { at + 1 } else { at + closing(&text[at..])? + 1 };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(table: &[(&str, &str)]) {
        for (name, expected) in table {
            assert_eq!(shorten(name), *expected, "{name}");
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
    fn templates_parameters_and_return_types_of_cpp_are_left_out() {
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
            assert_eq!(shorten(other), other);
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
            assert_eq!(shorten(name), name);
        }
    }

    #[test]
    fn no_text_is_too_strange() {
        for part in ["<", ">", "(", ")", "{", "}", "::", "operator", " as ", "ä", "<impl ", "->", " "] {
            for other in ["<", "a::", "operator<", "::<", "{", "é<", "<<", " "] {
                let name = format!("{other}{part}{other}::{part}{part}");
                let _ = shorten(&name);
                let _ = shorten(&format!("x::{name}>)"));
            }
        }
        let deep = format!("{}T{} as x::Y>::f", "<".repeat(5000), " as A>".repeat(4999));
        let _ = shorten(&deep);
    }

    #[test]
    fn a_profile_does_not_command_the_terminal() {
        assert_eq!(Names::Full.show("a\u{1b}[31mb\n"), "a\\x1b[31mb\\n");
    }
}
