//! Which samples are kept, if a source delivers more than was asked for.

use std::collections::BTreeSet;

use crate::event::Pid;

/// Which samples are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// All.
    #[default]
    All,
    /// All samples except those of a process before it calls exec, because until then the process is not part
    /// of the command.
    FromExec(Pid),
    /// Those of processes and of their descendants. The samples of a process that has yet to call exec are
    /// kept from then on.
    Family(BTreeSet<Pid>),
    /// Those of processes that have one of these names at the time of the sample.
    Named(Vec<NamePattern>),
}

impl Filter {
    /// The filter as words. No words mean all samples.
    pub fn to_words(&self) -> Vec<String> {
        let words = |first: &str, rest: Vec<String>| [vec![first.to_owned()], rest].concat();
        match self {
            Self::All => Vec::new(),
            Self::FromExec(pid) => words(FROM_EXEC, vec![pid.0.to_string()]),
            Self::Family(pids) => words(FAMILY, pids.iter().map(|pid| pid.0.to_string()).collect()),
            Self::Named(names) => {
                words(NAMED, names.iter().map(|name| name.pattern.iter().collect()).collect())
            }
        }
    }

    /// The filter that these words describe. If they are not understood, the filter keeps all samples, so
    /// that nothing is lost.
    pub fn from_words(words: &[String]) -> Self {
        let pid = |word: &String| word.parse().map(Pid);
        let Some((first, rest)) = words.split_first() else { return Self::All };
        match (first.as_str(), rest) {
            (FROM_EXEC, [word]) => pid(word).map_or(Self::All, Self::FromExec),
            (FAMILY, rest) => rest.iter().map(pid).collect::<Result<_, _>>().map_or(Self::All, Self::Family),
            (NAMED, rest) if rest.len() <= MOST_NAMES => {
                Self::Named(rest.iter().map(|name| NamePattern::new(name)).collect())
            }
            _ => Self::All,
        }
    }
}

/// The most patterns that are used, because each sample is compared with all of them.
const MOST_NAMES: usize = 1000;

const FROM_EXEC: &str = "from-exec";
const FAMILY: &str = "family";
const NAMED: &str = "named";

/// A process name in which `*` stands for any characters, and `?` for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    pattern: Vec<char>,
}

impl NamePattern {
    /// A pattern as it was written.
    pub fn new(pattern: &str) -> Self {
        Self { pattern: pattern.chars().collect() }
    }

    /// Whether a whole name matches the pattern. Takes time linear in the name's length for each `*`.
    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut at, mut position) = (0, 0);
        // Where the last `*` is, and the end of the text that it matches so far.
        let mut star: Option<(usize, usize)> = None;
        while let Some(&character) = name.get(position) {
            match self.pattern.get(at) {
                Some('*') => {
                    star = Some((at, position));
                    at += 1;
                }
                Some(&wanted) if wanted == character || wanted == '?' => {
                    at += 1;
                    position += 1;
                }
                _ => {
                    let Some((place, reach)) = &mut star else { return false };
                    *reach += 1;
                    (at, position) = (*place + 1, *reach);
                }
            }
        }
        self.pattern.get(at..).is_some_and(|rest| rest.iter().all(|character| *character == '*'))
    }
}

#[cfg(test)]
mod tests {
    use super::{Filter, MOST_NAMES, NamePattern};
    use crate::event::Pid;

    #[test]
    fn words_say_the_same() {
        let check = |filter: Filter, words: &[&str]| {
            assert_eq!(filter.to_words(), words);
            assert_eq!(Filter::from_words(&filter.to_words()), filter);
        };
        check(Filter::All, &[]);
        check(Filter::FromExec(Pid(7)), &["from-exec", "7"]);
        check(Filter::Family([Pid(7), Pid(8)].into()), &["family", "7", "8"]);
        check(Filter::Named(vec![NamePattern::new("cc *")]), &["named", "cc *"]);
        for odd in [&["from-exec"][..], &["from-exec", "7", "8"], &["family", "x"], &["else", "7"]] {
            let words: Vec<String> = odd.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(Filter::from_words(&words), Filter::All);
        }
        let many = vec!["named".to_owned(); MOST_NAMES + 2];
        assert_eq!(Filter::from_words(&many), Filter::All);
    }

    #[test]
    fn patterns_match_whole_names() {
        let check = |pattern: &str, matching: &[&str], others: &[&str]| {
            let pattern = NamePattern::new(pattern);
            assert_eq!(matching.iter().find(|name| !pattern.matches(name)), None, "{pattern:?}");
            assert_eq!(others.iter().find(|name| pattern.matches(name)), None, "{pattern:?}");
        };
        check("make", &["make"], &["makefile", "gmake", ""]);
        check("cc*", &["cc", "cc1", "cc1plus"], &["gcc", "c"]);
        check("*a*b", &["ab", "xaxbxb", "aabb"], &["abx", "b", "ba"]);
        check("???", &["abc", "äöü"], &["ab", "abcd"]);
        check("*", &["", "x"], &[]);
        check("", &[""], &["x"]);
    }
}
