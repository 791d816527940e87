//! Shortens names to fit a width, by removing the least informative parts.
//!
//! `flame/fit.js` is the same rule for pages. The examples in `fit_names.json` are tests of both.

/// The same rule as a function `fitName(name, width)` for pages.
pub const FIT_SCRIPT: &str = include_str!("flame/fit.js");

/// In C++ names, `operator<<` and similar operators contain `<` and `>` that are not brackets.
const OPERATOR: &str = "operator";

/// The signs of operators that could be brackets.
const SIGNS: [char; 4] = ['<', '>', '=', '-'];

/// The minimum width of a shortened `<Type as Trait>`.
const MIN_TYPE_WIDTH: usize = 12;

/// A longer text, in bytes, is not divided into parts, because nested brackets are read again and again.
const MAX_DIVIDED: usize = 4000;

/// The name in at most `width` characters. The end of a path is the most informative part, so the outer parts
/// are left out first: `…::Vec<T>::reserve`. If less than a class and its method remain, arguments are left
/// out: `…::Vec<…>::reserve`. A closure stays with its function. A part that is itself too long is shortened
/// in its middle. `mark` replaces the missing text. O(length).
pub fn fit_name(name: &str, width: usize, mark: &str) -> String {
    if length(name) <= width {
        return name.to_owned();
    }
    if name.len() > MAX_DIVIDED {
        return fit_text(name, width, mark);
    }
    if let Some(fitted) = fit_before_place(name, width, mark) {
        return fitted;
    }
    let plain = without_arguments(name, mark);
    let whole = NamePath::of(name);
    let short = NamePath::of(&plain);
    let room = width.saturating_sub(length(mark));
    if let Some(rest) = whole.rests(2).find(|rest| length(rest.with_separator) <= room) {
        return format!("{mark}{}", rest.with_separator);
    }
    if length(&plain) <= width {
        return plain;
    }
    if let Some(rest) = short.rests(2).find(|rest| length(rest.with_separator) <= room) {
        return format!("{mark}{}", rest.with_separator);
    }
    let mut last = whole.rests(1).chain(short.rests(1));
    if let Some(rest) = last.find(|rest| length(rest.with_separator) <= room) {
        return with_type(rest, width, mark);
    }
    let last = short.rests(1).last().map_or(&*plain, |rest| rest.name());
    match (length(last), last.len() == plain.len()) {
        (len, false) if len <= room => format!("{mark}{last}"),
        (len, _) if len <= width => last.to_owned(),
        // The mark in its middle means that it is shortened. A mark before it means that outer parts are
        // missing.
        (_, false) if room > length(mark) => format!("{mark}{}", fit_text(last, room, mark)),
        _ => fit_text(last, width, mark),
    }
}

/// The rest of a name, with as much of a `<Type as Trait>` before it as fits.
fn with_type(rest: &NameRest<'_>, width: usize, mark: &str) -> String {
    let left = width - length(rest.with_separator);
    // `<Type as Trait>` is informative even if it is shortened.
    if rest.before.starts_with('<') && left >= MIN_TYPE_WIDTH {
        return fit_text(rest.before, left, mark) + rest.with_separator;
    }
    format!("{mark}{}", rest.with_separator)
}

/// A name of JavaScript may have its place behind it: `run /app/index.js:12`. Its end is left out first.
/// `None` for other names.
fn fit_before_place(name: &str, width: usize, mark: &str) -> Option<String> {
    let slash = *places(name, "/").first()?;
    let blank = *places(name, " ").first().filter(|blank| **blank < slash)?;
    let head = &name[..blank];
    if length(head) > width {
        return Some(fit_name(head, width, mark));
    }
    let room = width.saturating_sub(length(mark));
    let cut: String = name.chars().take(room.max(length(head))).collect();
    Some(if cut.len() > blank + 1 { cut + mark } else { head.to_owned() })
}

/// The text in at most `width` characters, without its middle. O(length).
pub fn fit_text(text: &str, width: usize, mark: &str) -> String {
    let count = length(text);
    if count <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(length(mark));
    let head: String = text.chars().take(room.div_ceil(2)).collect();
    let tail: String = text.chars().skip(count - room / 2).collect();
    format!("{head}{mark}{tail}")
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// The rest of a name from one of its parts on.
struct NameRest<'a> {
    /// The part before.
    before: &'a str,
    /// The separator, and all that comes after it.
    with_separator: &'a str,
}

impl<'a> NameRest<'a> {
    fn name(&self) -> &'a str {
        self.with_separator.trim_start_matches([':', '/', '.'])
    }

    /// Whether its first part is a name, and not one of a closure, or arguments.
    fn is_named(&self) -> bool {
        let name = self.name();
        let digits = name.strip_prefix("func").unwrap_or(name);
        let is_closure_of_go = digits.starts_with(|char: char| char.is_ascii_digit())
            && self.with_separator.starts_with('.')
            && digits.chars().all(|char| char.is_ascii_digit() || char == '.' || "func".contains(char));
        !(name.starts_with(['{', '<']) || name.starts_with("operator()") || is_closure_of_go)
    }
}

/// The parts of a name.
struct NamePath<'a> {
    /// The rests of the path, the longest first. There are none if a name is no path.
    rests: Vec<NameRest<'a>>,
}

impl<'a> NamePath<'a> {
    fn of(name: &'a str) -> Self {
        let separator = ["::", "/", "."].into_iter().find(|it| !places(name, it).is_empty());
        let separator = separator.filter(|it| *it != "." || is_dotted_path(name));
        let Some(separator) = separator else { return Self { rests: Vec::new() } };
        let mut found = places(name, separator);
        let last = found.last().map_or(0, |at| at + separator.len());
        // Behind the last slash of an import path of Go are the package, the type and the method.
        if separator == "/" && !name.starts_with('/') && is_dotted_path(&name[last..]) {
            found.extend(places(&name[last..], ".").into_iter().map(|at| last + at));
        }
        let mut start = 0;
        let rest = |at: usize| {
            let width = if name[at..].starts_with("::") { 2 } else { 1 };
            let before = &name[std::mem::replace(&mut start, at + width)..at];
            NameRest { before, with_separator: &name[at..] }
        };
        Self { rests: found.into_iter().map(rest).collect() }
    }

    /// The rests that begin with a name and have at least so many, the longest first.
    fn rests(&self, least: usize) -> impl Iterator<Item = &NameRest<'a>> {
        let named = |rest: &NameRest<'_>| rest.is_named();
        let count = self.rests.iter().filter(|rest| named(rest)).count();
        self.rests.iter().filter(move |rest| named(rest)).take((count + 1).saturating_sub(least))
    }
}

/// A name without the contents of its brackets, and without parameters and what comes after these:
/// `Vec<…>::push`.
fn without_arguments(name: &str, mark: &str) -> String {
    let (mut plain, mut index) = (String::new(), 0);
    while let Some(rest) = name.get(index..).filter(|rest| !rest.is_empty()) {
        let len = operator_length(rest);
        let char = rest.chars().next().unwrap_or_default();
        let end = closing(rest).filter(|_| len == 0 && (char == '<' || char == '('));
        let after = end.map_or("", |end| &rest[end + 1..]);
        let is_last = after.is_empty() || after.starts_with("::{") || after.starts_with('(');
        match end {
            Some(end) if char == '<' && plain.ends_with("::") && is_last => {
                plain.truncate(plain.len() - 2);
                index += end + 1;
            }
            Some(end) if char == '<' && (is_word_end(&plain) || plain.ends_with("::")) => {
                plain = plain + "<" + mark + ">";
                index += end + 1;
            }
            Some(_) if char == '(' && has_parameters(&plain, mark) && ends_with_type(after) => break,
            Some(end) if char == '(' && has_parameters(&plain, mark) => index += end + 1,
            _ => {
                plain.push_str(&rest[..len.max(char.len_utf8())]);
                index += len.max(char.len_utf8());
            }
        }
    }
    plain
}

fn is_word_end(text: &str) -> bool {
    text.ends_with(|last: char| last.is_alphanumeric() || last == '_' || last == ']')
}

/// Whether brackets after a text are parameters.
fn has_parameters(text: &str, mark: &str) -> bool {
    let word = text.rsplit(' ').next().unwrap_or_default();
    let operator = word.rfind(OPERATOR).is_some_and(|at| word.len() > at + OPERATOR.len());
    is_word_end(text) || text.strip_suffix('>').is_some_and(|text| text.ends_with(mark)) || operator
}

/// Whether the text after parameters is C++'s `const`, or a type that is returned.
fn ends_with_type(after: &str) -> bool {
    after.starts_with(" const") || after.starts_with(" ->")
}

/// The position of the bracket that closes the one at the start of a text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut before = ' ';
    for (index, char) in text.char_indices() {
        match char {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' if before == '-' => {}
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return Some(index).filter(|index| *index > 0);
        }
        before = char;
    }
    None
}

/// The length of an operator at the start of a text; 0 if there is none.
fn operator_length(text: &str) -> usize {
    let Some(sign) = text.strip_prefix(OPERATOR) else { return 0 };
    let signs = if sign.starts_with("()") { 2 } else { sign.len() - sign.trim_start_matches(SIGNS).len() };
    OPERATOR.len() + signs
}

/// Whether dots separate packages, classes and methods. They may also be in a file name or a version, or
/// before a compiler's suffix for a part of a function (`main.cold`).
fn is_dotted_path(name: &str) -> bool {
    let is_word = |part: &str| part.starts_with(|char: char| char.is_alphabetic() || "_$(<".contains(char));
    let is_number = |part: &str| !part.is_empty() && part.chars().all(|char| char.is_ascii_digit());
    let endings = ["so", "dll", "exe", "dylib", "js", "py", "map", "ko", "cold"];
    let mut before = "";
    let fits = |part| {
        let of_closure = is_number(part) && is_number(before.strip_prefix("func").unwrap_or(before));
        before = part;
        is_word(part) || of_closure
    };
    name.split('.').all(fits) && !name.rsplit('.').next().is_some_and(|end| endings.contains(&end))
}

/// The places of a separator outside of brackets.
fn places(name: &str, separator: &str) -> Vec<usize> {
    let (mut places, mut depth) = (Vec::new(), 0_usize);
    let mut index = 0;
    while let Some(rest) = name.get(index..).filter(|rest| !rest.is_empty()) {
        let len = operator_length(rest);
        if len > 0 {
            index += len;
            continue;
        }
        if depth == 0 && index > 0 && rest.starts_with(separator) {
            places.push(index);
            index += separator.len();
            continue;
        }
        let char = rest.chars().next().unwrap_or_default();
        match char {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' if name[..index].ends_with('-') => {}
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        index += char.len_utf8();
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_parts_of_a_path_stay() {
        let check = |name, width, expected: &str| {
            let fitted = fit_name(name, width, "…");
            assert_eq!(fitted, expected, "{name}");
            assert!(length(&fitted) <= width, "{fitted}");
        };
        check("main", 4, "main");
        check("alloc::raw_vec::RawVec<T>::reserve", 22, "…::RawVec<T>::reserve");
        check("alloc::raw_vec::RawVec<T>::reserve", 15, "…::reserve");
        check("a::very::long::path::to::function", 20, "…::to::function");
        check("tokio::task::Harness<a::T, b::S>::poll", 30, "…::Harness<a::T, b::S>::poll");
        check("<HashMap<K, V> as Iterator>::next", 22, "<HashMap…erator>::next");
        check("<HashMap<K, V> as Iterator>::next", 14, "…::next");
        check("some::space::operator<<", 16, "…::operator<<");
        check("/usr/src/some/where/file.c:12", 20, "…/where/file.c:12");
        check("github.com/some/one/app.(*Server).Serve", 24, "…/app.(*Server).Serve");
        check("java.util.HashMap.resize", 18, "….HashMap.resize");
        check("a::b::much_longer_than_there_is_room", 11, "…much_…room");
    }

    #[test]
    fn what_is_no_path_is_cut_in_its_middle() {
        let check = |name, width, expected: &str| assert_eq!(fit_name(name, width, "…"), expected);
        check("abcdefghij", 7, "abc…hij");
        check("libsomething-1.2.3.so", 11, "libso….3.so");
        check("__gcc_personality_v0.cold", 12, "__gcc_….cold");
        check("äöüßäöüß", 3, "ä…ß");
        assert_eq!(fit_name("abcdefghij", 7, ".."), "abc..ij");
    }

    #[test]
    fn names_of_all_languages_stay_informative() {
        let examples: Vec<(String, usize, String)> =
            serde_json::from_str(include_str!("fit_names.json")).unwrap();
        assert!(examples.len() > 30);
        for (name, width, expected) in examples {
            assert_eq!(fit_name(&name, width, "…"), expected, "{name} in {width}");
        }
    }

    #[test]
    fn no_name_and_no_width_is_too_strange() {
        for name in
            ["", "::", "::::", "a::", "<", ">::<", "a::b(", "operator", "é::é", "<a as b>::", "a/b/", "..."]
        {
            for width in 0..name.len() + 2 {
                let fitted = fit_name(name, width, "…");
                assert!(length(&fitted) <= width.max(1), "{name} in {width}: {fitted}");
                assert!(name.is_empty() || !fitted.is_empty(), "{name} in {width}");
            }
        }
    }
}
