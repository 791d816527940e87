//! Shortens names to fit a width, by removing the least informative parts.

/// In C++ names, `operator<<` and similar operators contain `<` and `>` that are not brackets.
const OPERATOR: &str = "operator";

/// The name in at most `width` characters. The end of a path is the most informative part, so the outer parts
/// are left out first: `…::Vec<T>::reserve`. A part that is itself too long is shortened in its middle.
/// `mark` replaces the missing text. O(length).
pub fn fit_name(name: &str, width: usize, mark: &str) -> String {
    if length(name) <= width {
        return name.to_owned();
    }
    let Some(parts) = parts(name) else { return fit_text(name, width, mark) };
    let room = width.saturating_sub(length(mark));
    // From the end, as many parts as fit, each with the separator before it.
    let fits = |part: &&NameRest<'_>| length(part.with_separator) <= room;
    let Some(first) = parts.iter().find(fits) else {
        let last = parts.last().map_or(name, |part| part.with_separator.trim_start_matches([':', '/', '.']));
        // The mark in its middle means that it is shortened. A mark before it means that outer parts are
        // missing.
        return match room.checked_sub(length(mark)) {
            Some(room) if room > 0 => format!("{mark}{}", fit_text(last, room + length(mark), mark)),
            _ => fit_text(last, width, mark),
        };
    };
    let left = width - length(first.with_separator);
    // `<Type as Trait>` is informative even if it is shortened.
    if first.before.starts_with('<') && left >= MIN_TYPE_WIDTH {
        return fit_text(first.before, left, mark) + first.with_separator;
    }
    format!("{mark}{}", first.with_separator)
}

/// The minimum width of a shortened `<Type as Trait>`.
const MIN_TYPE_WIDTH: usize = 12;

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

/// The rests of a path, the longest first. `None` if a name is no path.
fn parts(name: &str) -> Option<Vec<NameRest<'_>>> {
    let separator = ["::", "/", "."].into_iter().find(|it| !places(name, it).is_empty())?;
    if separator == "." && !is_dotted_path(name) {
        return None;
    }
    let mut start = 0;
    let part = |at: usize| {
        let before = &name[std::mem::replace(&mut start, at + separator.len())..at];
        NameRest { before, with_separator: &name[at..] }
    };
    Some(places(name, separator).into_iter().map(part).collect())
}

/// Whether dots separate packages, classes and methods. They may also be in a file name or a version, or
/// before a compiler's suffix for a part of a function (`main.cold`).
fn is_dotted_path(name: &str) -> bool {
    let is_word = |part: &str| part.starts_with(|char: char| char.is_alphabetic() || "_$(<".contains(char));
    let endings = ["so", "dll", "exe", "dylib", "js", "py", "map", "ko", "cold"];
    name.split('.').all(is_word) && !name.rsplit('.').next().is_some_and(|end| endings.contains(&end))
}

/// The places of a separator outside of brackets.
fn places(name: &str, separator: &str) -> Vec<usize> {
    let (mut places, mut depth) = (Vec::new(), 0_usize);
    let mut index = 0;
    while let Some(rest) = name.get(index..).filter(|rest| !rest.is_empty()) {
        if let Some(sign) = rest.strip_prefix(OPERATOR) {
            index +=
                OPERATOR.len() + sign.len() - sign.trim_start_matches(['<', '>', '=', '-', '(', ')']).len();
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
    fn no_name_and_no_width_is_too_strange() {
        for name in
            ["", "::", "::::", "a::", "<", ">::<", "a::b(", "operator", "é::é", "<a as b>::", "a/b/", "..."]
        {
            for width in 0..name.len() + 2 {
                let fitted = fit_name(name, width, "…");
                assert!(length(&fitted) <= width.max(1), "{name} in {width}: {fitted}");
            }
        }
    }
}
