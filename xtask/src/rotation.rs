//! The checks that run in turns, unless `--all` is given. They build or download much, or take long.
//!
//! The turn is the number of commits, so five consecutive commits run all checks once. In a shallow clone the
//! number is not known, and the commit's hash is used.

use std::process::Command;

/// A step or a topic of live tests, and why it is not part of every run.
type RotatedTest = (&'static str, &'static str);

/// The steps of each turn. Each takes about as long as the others.
pub(crate) const TURNS: [&[RotatedTest]; 5] = [
    &[
        ("oracle", "builds other unwinders, symbolizers and readers"),
        ("windows-lints", "lints for two more targets of Windows"),
        ("storms", "starts many thousands of processes"),
    ],
    &[
        ("samply", "builds programs that read samply's profiles"),
        ("platforms-macos", "links for macOS"),
        ("viewer", "opens pages in a browser"),
        ("front_end", "installs the Firefox Profiler's code"),
        ("deep_stacks", "records many deep stacks"),
    ],
    &[
        ("cargo", "builds criterion and its dependencies"),
        ("leaks", "starts very many processes and threads"),
        ("shipped", "builds nyquist as it is shipped for the live tests"),
        ("ptrace_attach", "attaches while threads come and go"),
        ("ptrace_budget", "records more threads than there are CPUs"),
        ("macos-lints", "lints for another target of macOS"),
        ("walkthrough", "builds and records a program step by step"),
    ],
    &[
        ("platforms-windows", "compiles for Windows, and runs that"),
        ("package", "checks each crate alone, and installs the program from its package"),
        ("documented_1", "runs every other command of the documents"),
    ],
    &[
        ("arm_machine", "builds nyquist for another architecture, and runs that in an emulator"),
        ("documented_2", "runs the other half of the commands"),
        ("engines", "installs ClickHouse and Spark"),
    ],
];

/// The turn of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    index: usize,
    /// What the turn's number comes from.
    by: String,
}

impl Turn {
    /// The turn of the commit that is checked out.
    pub(crate) fn of_commit() -> Self {
        let is_shallow =
            git(&["rev-parse", "--is-shallow-repository"]).is_none_or(|answer| answer != "false");
        let count = git(&["rev-list", "--count", "HEAD"]).filter(|_| !is_shallow);
        Self::of(count.as_deref(), git(&["rev-parse", "HEAD"]).as_deref())
    }

    /// The turn with this number, from 1 on; `None` if there is none.
    pub(crate) fn numbered(number: usize) -> Option<Self> {
        let index = number.checked_sub(1).filter(|index| *index < TURNS.len())?;
        Some(Self { index, by: "--turn".to_owned() })
    }

    /// The turn by the number of commits, if that is known, or by the commit's hash.
    fn of(count: Option<&str>, hash: Option<&str>) -> Self {
        let turns = TURNS.len() as u64;
        if let Some(count) = count.and_then(|count| count.parse::<u64>().ok()) {
            return Self { index: (count % turns) as usize, by: format!("commit number {count}") };
        }
        let digits = hash.and_then(|hash| u64::from_str_radix(hash.get(..8)?, 16).ok());
        let by = hash.map_or_else(|| "no commit".to_owned(), |hash| format!("commit {hash}"));
        Self { index: (digits.unwrap_or(0) % turns) as usize, by }
    }

    /// The steps and topics that run in other turns.
    pub(crate) fn left_out(&self) -> Vec<&'static str> {
        let others = TURNS.iter().enumerate().filter(|(index, _)| *index != self.index);
        others.flat_map(|(_, parts)| parts.iter().map(|(name, _)| *name)).collect()
    }

    /// A sentence with the steps that only this turn runs, and those that it leaves out.
    pub(crate) fn description(&self) -> String {
        let own: Vec<&str> = TURNS[self.index].iter().map(|(name, _)| *name).collect();
        format!(
            "Turn {} of {} ({}) runs {}, and not {}: `--all` runs everything.",
            self.index + 1,
            TURNS.len(),
            self.by,
            own.join(", "),
            self.left_out().join(", ")
        )
    }
}

/// The trimmed output of git; `None` if it fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(crate::paths::root()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{TURNS, Turn};
    use crate::live;

    #[test]
    fn each_part_is_a_step_or_a_topic() {
        const STEPS: [&str; 7] = [
            "oracle",
            "package",
            "windows-lints",
            "macos-lints",
            "platforms-macos",
            "platforms-windows",
            "shipped",
        ];
        let is_topic = |name: &str| live::TOPICS.iter().any(|topic| topic.name == name);
        let mut parts = TURNS.iter().flat_map(|parts| parts.iter());
        assert!(parts.all(|(name, _)| STEPS.contains(name) || is_topic(name)));
    }

    #[test]
    fn five_commits_in_a_row_run_everything() {
        let all: Vec<&str> = TURNS.iter().flat_map(|parts| parts.iter().map(|(name, _)| *name)).collect();
        for first in [0, 7, 1234] {
            let turns: Vec<Turn> =
                (first..first + 5).map(|count| Turn::of(Some(&count.to_string()), None)).collect();
            let runs = |name: &&&str| turns.iter().filter(|turn| !turn.left_out().contains(name)).count();
            assert!(all.iter().all(|name| runs(&name) == 1), "from commit {first}");
        }
    }

    #[test]
    fn a_shallow_clone_goes_by_the_hash() {
        let turn = |hash| Turn::of(None, Some(hash)).index;
        assert_eq!(turn("00000007deadbeef00000007deadbeef00000007"), 2);
        assert_eq!((turn("00000009"), turn("é"), turn("")), (4, 0, 0));
        assert_eq!(Turn::of(Some("x"), None), Turn { index: 0, by: "no commit".to_owned() });
    }
}
