//! Finds the function of a file that a name refers to: by its symbol, its demangled name, or a shortened form
//! of that name.

use nyquist_symbols::demangle;
use std::borrow::Cow;
use std::collections::BTreeSet;

use super::function_symbols::Function;

/// How many functions are listed if several match.
const NAMED: usize = 5;

/// How many matching functions are counted.
const MAX_COUNTED: usize = 1000;

/// How many bytes of demangled names are compared. A short hostile symbol has a long name, and there may be
/// millions of them.
const MAX_COMPARED: usize = 512 << 20;

/// The most characters of a name that are shown.
const MAX_SHOWN: usize = 200;

/// Why a name does not identify a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FunctionNameError {
    /// No function matches.
    Missing,
    /// Several functions match: some of them, and how many more there are.
    Several(Vec<String>, usize),
    /// The names of all functions are too long to be compared.
    TooLong,
}

/// Finds the function that a name refers to, among symbols. A whole name has priority over one without
/// parameters and generic arguments, and that one over the last parts of a path.
pub(super) fn find<'s>(
    symbols: impl Iterator<Item = (Cow<'s, str>, Function)> + Clone,
    name: &str,
) -> Result<Function, FunctionNameError> {
    find_within(symbols, name, MAX_COMPARED)
}

fn find_within<'s>(
    symbols: impl Iterator<Item = (Cow<'s, str>, Function)> + Clone,
    name: &str,
    mut left: usize,
) -> Result<Function, FunctionNameError> {
    if let Some((_, function)) = symbols.clone().find(|(symbol, _)| symbol == name) {
        return Ok(function);
    }
    let (mut whole, mut parts) = (Matches::default(), Matches::default());
    for (symbol, function) in symbols {
        let demangled = demangle(&symbol);
        if demangled == name {
            return Ok(function);
        }
        left = left.checked_sub(demangled.len()).ok_or(FunctionNameError::TooLong)?;
        match fit(&demangled, name) {
            Some(NameMatch::Whole) => whole.add(&symbol, &demangled, function),
            Some(NameMatch::LastParts) => parts.add(&symbol, &demangled, function),
            None => {}
        }
    }
    if whole.first.is_some() { whole.only() } else { parts.only() }
}

/// The functions that match a name equally well.
#[derive(Default)]
struct Matches {
    first: Option<Function>,
    addresses: BTreeSet<u64>,
    named: Vec<String>,
}

impl Matches {
    /// Adds a function. If a name occurs twice, as in both symbol tables, the first symbol is listed.
    fn add(&mut self, symbol: &str, demangled: &str, function: Function) {
        self.first.get_or_insert(function);
        let is_new = self.addresses.len() < MAX_COUNTED && self.addresses.insert(function.start.0);
        if is_new && self.named.len() < NAMED {
            // The symbol is listed as well, because a name with a comma cannot be used: commas separate
            // events.
            self.named.push(format!("`{}` ({})", shortened(demangled), shortened(symbol)));
        }
    }

    fn only(self) -> Result<Function, FunctionNameError> {
        match (self.first, self.addresses.len()) {
            (Some(function), 1) => Ok(function),
            (None, _) => Err(FunctionNameError::Missing),
            (Some(_), count) => Err(FunctionNameError::Several(self.named, count.saturating_sub(NAMED))),
        }
    }
}

/// The beginning of a name, which may have any length.
fn shortened(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => Cow::Owned(format!("{}...", &name[..end])),
        None => Cow::Borrowed(name),
    }
}

/// How a name matches a function's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameMatch {
    /// It is the whole name except for parameters and generic arguments.
    Whole,
    /// It is the last parts of the path.
    LastParts,
}

fn fit(demangled: &str, name: &str) -> Option<NameMatch> {
    if demangled.contains(" [clone ") {
        // It is a part of another function, or a variant of it.
        return None;
    }
    let without_parameters = without_parameters(demangled);
    let plain = without_generics(without_parameters);
    let fits = |whole: &str| {
        let before = whole.strip_suffix(name).filter(|before| !name.is_empty() && is_balanced(before))?;
        // The text before a blank is the return type.
        let is_whole = before.is_empty() || before.ends_with(' ');
        is_whole.then_some(NameMatch::Whole).or(before.ends_with("::").then_some(NameMatch::LastParts))
    };
    [demangled, without_parameters, &plain].into_iter().find_map(fits)
}

/// Whether all opened brackets are closed.
fn is_balanced(text: &str) -> bool {
    let count = |bracket| text.matches(bracket).count();
    count('(') == count(')') && count('<') == count('>')
}

/// A C++ name without its parameters and what follows them, such as `const`.
fn without_parameters(name: &str) -> &str {
    let Some(close) = name.rfind(')') else { return name };
    let behind = name[close + 1..].trim_start();
    if !["", "const", "volatile", "const volatile", "&", "&&", "const &", "const&"].contains(&behind) {
        return name;
    }
    let mut depth = 0_u32;
    for (at, letter) in name[..=close].char_indices().rev() {
        match letter {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let before = &name[..at];
            // `operator()` alone has no parameters; `(anonymous namespace)` is part of a name.
            let is_parameters =
                !before.is_empty() && !before.ends_with("::") && !before.ends_with("operator");
            return if is_parameters { before } else { name };
        }
    }
    name
}

/// A name without its angle brackets and their content, and without the `::` before them in Rust. Operators
/// that contain brackets stay.
fn without_generics(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    let mut depth = 0_u32;
    let mut before = ' ';
    for letter in name.chars() {
        let is_operator = depth == 0 && plain.trim_end_matches(['<', '-']).ends_with("operator");
        match letter {
            '<' if !is_operator => {
                if depth == 0 && plain.ends_with("::") {
                    plain.truncate(plain.len() - 2);
                }
                depth += 1;
            }
            // Not the arrow before a return type.
            '>' if depth > 0 && before != '-' => depth -= 1,
            _ if depth == 0 => plain.push(letter),
            _ => {}
        }
        before = letter;
    }
    plain.truncate(plain.trim_end().len());
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_object::Svma;

    const SYMBOLS: [(&str, u64); 12] = [
        ("main", 1),
        ("_Z7throweri", 2),
        ("_ZN2ns7throwerEi", 3),
        ("_ZN2ns7throwerEi.cold", 4),
        ("_ZN4shop5priceEi", 5),
        ("_ZN4shop5priceEii", 6),
        ("_RNvCs1234_3thr3fib", 7),
        ("_RNvCs1234_3thr3fib", 7),
        ("_ZNK3app5ShapeclEi", 8),
        ("_ZN12_GLOBAL__N_16hiddenEv", 9),
        ("_Z3runIiEvT_", 10),
        ("_ZN3foo3barEv.cold", 11),
    ];

    fn find(name: &str) -> Result<u64, FunctionNameError> {
        let symbols = SYMBOLS.iter().map(|(symbol, at)| (Cow::Borrowed(*symbol), function(*at)));
        super::find(symbols, name).map(|function| function.start.0)
    }

    fn function(start: u64) -> Function {
        Function { start: Svma(start), size: None }
    }

    #[test]
    fn a_unique_part_of_a_name_means_a_function() {
        for (name, expected) in [
            ("main", 1),
            ("thrower", 2),
            ("thrower(int)", 2),
            ("ns::thrower", 3),
            ("_Z7throweri", 2),
            ("fib", 7),
            ("thr::fib", 7),
            ("Shape::operator()", 8),
            ("app::Shape::operator()", 8),
            ("hidden", 9),
            ("(anonymous namespace)::hidden", 9),
            ("run", 10),
            ("run<int>", 10),
            ("price(int)", 5),
        ] {
            assert_eq!(find(name), Ok(expected), "{name}");
        }
    }

    #[test]
    fn what_fits_no_function_or_several_means_none() {
        for name in ["ib", "hr::fib", "bar", "", "int)", "::fib", "shop", "int, int)", "namespace)::hidden"] {
            assert_eq!(find(name), Err(FunctionNameError::Missing), "{name}");
        }
        let both = ["`shop::price(int)` (_ZN4shop5priceEi)", "`shop::price(int, int)` (_ZN4shop5priceEii)"];
        for name in ["price", "shop::price"] {
            assert_eq!(
                find(name),
                Err(FunctionNameError::Several(both.map(str::to_owned).to_vec(), 0)),
                "{name}"
            );
        }
        let many = (0..9).map(|n| (Cow::Owned(format!("_ZN2n{n}1fEv")), function(n + 1)));
        let Err(FunctionNameError::Several(named, more)) = super::find(many, "f") else { panic!() };
        assert_eq!((named.len(), more), (5, 4));
    }

    #[test]
    fn hostile_names_end_the_search() {
        let long = "x".repeat(1000);
        let many = std::iter::repeat_n((Cow::Borrowed(&*long), function(1)), 10);
        assert_eq!(find_within(many.clone(), "f", 10_000), Err(FunctionNameError::Missing));
        assert_eq!(find_within(many, "f", 9_999), Err(FunctionNameError::TooLong));
        assert_eq!(shortened(&long).len(), MAX_SHOWN + 3);
    }

    #[test]
    fn names_are_stripped_of_what_can_be_left_out() {
        for (name, expected) in [
            ("void app::run<int>(int)", "void app::run"),
            ("core::iter::fold::<u32, fn(u8) -> u8>", "core::iter::fold"),
            ("std::operator<< <char>(std::ostream&, char const*)", "std::operator<<"),
            ("app::A::operator->() const", "app::A::operator->"),
            ("app::A::operator()(int)", "app::A::operator()"),
            ("f(int)::{lambda(int)#1}::operator()(int) const", "f(int)::{lambda(int)#1}::operator()"),
            ("main::{closure#0}", "main::{closure#0}"),
        ] {
            assert_eq!(without_generics(without_parameters(name)), expected, "{name}");
        }
    }
}
