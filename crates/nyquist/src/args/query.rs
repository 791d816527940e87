//! The arguments of `nyquist query`.

use crate::args::quantity::whole;
use crate::args::{FormatArgs, ReadArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `nyquist query`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nyquist query profile.json.gz                     What it is about, and its hottest functions
  nyquist query profile.json.gz function f-12       A function with its callers and callees
  nyquist query profile.json.gz source f-12         Its hottest source lines
  nyquist query profile.json.gz waits               What threads wait for, and where
  nyquist query profile.json.gz functions parse --thread t-3 --json

`nyquist guide` describes all of it on one page.")]
pub(crate) struct QueryArgs {
    /// The profile
    #[arg(default_value = "profile.json.gz")]
    pub(crate) file: PathBuf,
    /// The question
    #[arg(value_enum, default_value_t)]
    pub(crate) question: Question,
    /// The subject: a function's handle (f-123) or name; for `functions` a regex
    pub(crate) target: Option<String>,
    /// Answer with at most N rows
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = |text: &str| whole::<u32>(text, 1..=10_000))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

/// A question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Question {
    /// How long, how much CPU time, the hottest functions and threads
    #[default]
    Summary,
    /// Functions by self time, those that match a regex
    Functions,
    /// A function: its time, its callers and callees
    Function,
    /// The call tree, or what a function calls
    Tree,
    /// The tree of a function's callers
    Callers,
    /// The hottest lines by file and line, of all or of a function
    Lines,
    /// The hottest lines of a function with their text
    Source,
    /// Threads by time
    Threads,
    /// Programs and libraries by time
    Libs,
    /// Markers by kind
    Markers,
    /// What threads wait for, for how long, where, and which threads held it and ended the waits
    Waits,
    /// CPU use over time, in equal parts
    Timeline,
}

impl Question {
    /// Whether it is about a function that has to be named.
    pub(crate) fn needs_function(self) -> bool {
        matches!(self, Self::Function | Self::Callers | Self::Source)
    }

    /// The question of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::value_variants().iter().copied().find(|question| question.name() == name)
    }

    /// Whether a target has a meaning for it.
    pub(crate) fn takes_target(self) -> bool {
        self.needs_function() || matches!(self, Self::Functions | Self::Tree | Self::Lines)
    }

    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Functions => "functions",
            Self::Function => "function",
            Self::Tree => "tree",
            Self::Callers => "callers",
            Self::Lines => "lines",
            Self::Source => "source",
            Self::Threads => "threads",
            Self::Libs => "libs",
            Self::Markers => "markers",
            Self::Waits => "waits",
            Self::Timeline => "timeline",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Command, command};

    #[test]
    fn options_are_kept_as_they_were_typed() {
        let argv = ["query", "p", "--thread", "t-3", "--hide=-x", "--off-cpu"];
        let Command::Query(args) = command(&argv).unwrap() else { panic!("{argv:?}") };
        assert_eq!(args.read.typed.argv(), ["--thread", "t-3", "--hide=-x", "--off-cpu"]);
        assert_eq!(args.read.filter.thread, ["t-3"]);
    }

    #[test]
    fn questions_are_named_as_on_the_command_line() {
        for question in Question::value_variants() {
            let name = question.to_possible_value().unwrap();
            assert_eq!(question.name(), name.get_name());
        }
    }
}
