//! The arguments of `nyquist diff`.

use crate::args::quantity::percent;
use crate::args::{FormatArgs, ReadArgs};
use clap::Args;
use std::path::PathBuf;

/// `nyquist diff`
#[derive(Debug, Args)]
#[command(override_usage = "nyquist diff [OPTIONS] BEFORE AFTER
       nyquist diff [OPTIONS] BEFORE... --after AFTER...")]
#[command(after_help = "Examples:
  nyquist diff old.json.gz new.json.gz                  What got slower and faster
  nyquist diff old1.gz old2.gz --after new1.gz new2.gz  Several runs a side: less is noise
  nyquist diff old.gz new.gz --fail-above 5             Exit with status 1 if a function got slower by more
                                                        than 5 %, and not by chance
  nyquist diff before/ after/ --markdown                A table for each file that both folders have, for a
                                                        comment on a change

Exit status: 0 if there is a comparison, 1 if --fail-above fails, 2 if a file cannot be read or compared.")]
pub(crate) struct DiffArgs {
    /// The profile before and the one after, or all those before where --after is given; or two folders, whose files of
    /// the same name are compared
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The profiles after
    #[arg(long, num_args = 1.., value_name = "FILE")]
    pub(crate) after: Vec<PathBuf>,
    /// Compare shares of the whole, and not times: for runs of different length
    #[arg(long)]
    pub(crate) share: bool,
    /// Exit with status 1 if the whole, or a function with at least 1 % of it, got slower by more than PERCENT of
    /// its own time, and not by chance
    #[arg(long, value_name = "PERCENT", value_parser = |text: &str| percent(text, 0.0..=f64::MAX))]
    pub(crate) fail_above: Option<f64>,
    /// Print Markdown, for a comment on a change
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// Show changes that are noise, too
    #[arg(long)]
    pub(crate) all: bool,
    /// Show at most N functions (0: all)
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

impl DiffArgs {
    /// The profiles before and those after; `None` where it is not clear which is which.
    pub(crate) fn sides(&self) -> Option<(&[PathBuf], &[PathBuf])> {
        match (self.files.as_slice(), self.after.as_slice()) {
            ([before, after], []) => Some((std::slice::from_ref(before), std::slice::from_ref(after))),
            (_, []) => None,
            (before, after) => Some((before, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::args::{Command, command};

    fn sides(argv: &[&str]) -> Option<(usize, usize)> {
        let Command::Diff(args) = command(&[&["diff"], argv].concat()).unwrap() else { panic!("{argv:?}") };
        args.sides().map(|(before, after)| (before.len(), after.len()))
    }

    #[test]
    fn two_files_are_a_side_each_and_more_need_after() {
        assert_eq!(sides(&["a", "b"]), Some((1, 1)));
        assert_eq!(sides(&["a", "b", "--after", "c", "d", "e"]), Some((2, 3)));
        assert_eq!(sides(&["a", "--after", "b"]), Some((1, 1)));
        assert_eq!(sides(&["a"]), None);
        assert_eq!(sides(&["a", "b", "c"]), None);
    }
}
