//! The samples that are kept by their process, if a source delivers more than was requested.

use std::collections::BTreeSet;

use super::name_pattern::NamePattern;
use crate::event::Pid;

/// Which samples are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProcessFilter {
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

impl ProcessFilter {
    /// The filter as words. No words mean all samples.
    pub fn to_words(&self) -> Vec<String> {
        let argv = |first: &str, rest: Vec<String>| [vec![first.to_owned()], rest].concat();
        match self {
            Self::All => Vec::new(),
            Self::FromExec(pid) => argv(FROM_EXEC, vec![pid.0.to_string()]),
            Self::Family(pids) => argv(FAMILY, pids.iter().map(|pid| pid.0.to_string()).collect()),
            Self::Named(names) => argv(NAMED, names.iter().map(NamePattern::to_text).collect()),
        }
    }

    /// The filter that these words describe. If they are not understood, the filter keeps all samples, so
    /// that nothing is lost.
    pub fn from_words(argv: &[String]) -> Self {
        let pid = |word: &String| word.parse().map(Pid);
        let Some((first, rest)) = argv.split_first() else { return Self::All };
        match (first.as_str(), rest) {
            (FROM_EXEC, [word]) => pid(word).map_or(Self::All, Self::FromExec),
            (FAMILY, rest) => rest.iter().map(pid).collect::<Result<_, _>>().map_or(Self::All, Self::Family),
            (NAMED, rest) if rest.len() <= MAX_NAMES => {
                Self::Named(rest.iter().map(|name| NamePattern::new(name)).collect())
            }
            _ => Self::All,
        }
    }
}

/// The most patterns that are used, because each sample is compared with all of them.
const MAX_NAMES: usize = 1000;

const FROM_EXEC: &str = "from-exec";
const FAMILY: &str = "family";
const NAMED: &str = "named";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_the_same() {
        let check = |filter: ProcessFilter, argv: &[&str]| {
            assert_eq!(filter.to_words(), argv);
            assert_eq!(ProcessFilter::from_words(&filter.to_words()), filter);
        };
        check(ProcessFilter::All, &[]);
        check(ProcessFilter::FromExec(Pid(7)), &["from-exec", "7"]);
        check(ProcessFilter::Family([Pid(7), Pid(8)].into()), &["family", "7", "8"]);
        check(ProcessFilter::Named(vec![NamePattern::new("cc *")]), &["named", "cc *"]);
        for odd in [&["from-exec"][..], &["from-exec", "7", "8"], &["family", "x"], &["else", "7"]] {
            let argv: Vec<String> = odd.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(ProcessFilter::from_words(&argv), ProcessFilter::All);
        }
        let many = vec!["named".to_owned(); MAX_NAMES + 2];
        assert_eq!(ProcessFilter::from_words(&many), ProcessFilter::All);
    }
}
