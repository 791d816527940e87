//! Completion scripts: those of the definitions, without hidden commands, with the names of events, and with
//! `cargo nyquist`.

use crate::args::{Cli, cargo::CargoCli};
use clap::{Command, CommandFactory as _};
use clap_complete::Shell;

const EVENTS_BASH: &str = include_str!("events.bash");
const NYQUIST_BASH: &str = include_str!("nyquist.bash");
const CARGO_NYQUIST_BASH: &str = include_str!("cargo-nyquist.bash");
const EVENTS_ZSH: &str = include_str!("events.zsh");

/// The script for bash that completes cargo, where nothing of the user's own does.
pub(crate) const CARGO_BASH: &str = include_str!("cargo.bash");

/// The script for fish that completes `cargo nyquist`.
pub(crate) const CARGO_FISH: &str = include_str!("cargo.fish");

/// The programs that have completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Nyquist,
    CargoNyquist,
}

impl Program {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nyquist => "nyquist",
            Self::CargoNyquist => "cargo-nyquist",
        }
    }

    fn command(self) -> Command {
        match self {
            Self::Nyquist => Cli::command(),
            Self::CargoNyquist => CargoCli::command(),
        }
    }
}

/// The completion script of a program for a shell.
pub(crate) fn script(shell: Shell, program: Program) -> String {
    let mut command = visible(&program.command()).propagate_version(true);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, program.name(), &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match (shell, program) {
        (Shell::Bash, Program::Nyquist) => script + EVENTS_BASH + NYQUIST_BASH,
        // `clap_complete` has two names for the commands of a program whose name has a hyphen.
        (Shell::Bash, Program::CargoNyquist) => {
            script.replace("cargo__subcmd__nyquist", "cargo__nyquist") + EVENTS_BASH + CARGO_NYQUIST_BASH
        }
        (Shell::Zsh, program) => zsh(&script, program),
        (Shell::Fish, _) => fish(&script),
        _ => script,
    }
}

/// A command without its hidden subcommands, which `clap_complete` would complete.
fn visible(command: &Command) -> Command {
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set()).map(visible);
    let copy = Command::new(command.get_name().to_owned())
        .args(command.get_arguments().cloned())
        .groups(command.get_groups().cloned())
        .subcommands(shown);
    let copy = command.get_about().into_iter().fold(copy, |copy, about| copy.about(about.clone()));
    command.get_version().into_iter().fold(copy, |copy, version| copy.version(version.to_owned()))
}

/// With the names of events, and with `run` where `cargo nyquist` has an option in place of a command.
fn zsh(script: &str, program: Program) -> String {
    let named = script.replace(":EVENT,...:_default", ":EVENT,...:_nyquist_events");
    let named = named.replace(":EVENT:_default", ":EVENT:_nyquist_events");
    let start = "autoload -U is-at-least\n";
    let named = named.replacen(start, &format!("{start}\n{EVENTS_ZSH}"), 1);
    if program == Program::Nyquist {
        return named;
    }
    let start = "_cargo-nyquist() {\n";
    let run = "    if [[ $CURRENT -gt 1 && $words[2] == -* ]]; then words[2]=(run $words[2]); (( CURRENT++ )); fi\n";
    named.replacen(start, &format!("{start}{run}"), 1)
}

/// With the names of events.
fn fish(script: &str) -> String {
    let names = " -f -a \"(__fish_complete_list , 'nyquist list --names 2>/dev/null')\"";
    let line = |line: &str| {
        let is_event = line.contains(" -l event ") && line.ends_with(" -r");
        format!("{line}{}\n", if is_event { names } else { "" })
    };
    script.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELLS: [Shell; 5] = [Shell::Bash, Shell::Elvish, Shell::Fish, Shell::PowerShell, Shell::Zsh];

    #[test]
    fn hidden_commands_are_not_completed() {
        for shell in SHELLS {
            for (program, shown, hidden) in
                [(Program::Nyquist, "record", "cargo"), (Program::CargoNyquist, "bench", "launch")]
            {
                let script = script(shell, program);
                assert!(script.contains(shown), "{shell} {program:?}");
                let of_clap = script.split("_or_event").next().unwrap();
                let is_word =
                    |word: &str| word.trim_matches(|letter: char| !letter.is_alphanumeric()) == hidden;
                let found = of_clap
                    .lines()
                    .find(|line| line.split([' ', ',', '"', '\'']).any(is_word) && !line.contains('['));
                assert!(found.is_none(), "{shell} {program:?}: {found:?}");
            }
        }
    }

    #[test]
    fn events_are_completed_wherever_there_are_any() {
        let count = |shell, text: &str| script(shell, Program::Nyquist).matches(text).count();
        // Those of `top` are two of its own.
        let options =
            count(Shell::Bash, "                --event)\n                    COMPREPLY=($(compgen -f ");
        assert_eq!(count(Shell::Bash, "                --event)"), options + 1);
        assert!(options > 5, "{options}");
        assert!(count(Shell::Zsh, ":_nyquist_events") >= options);
        assert_eq!(count(Shell::Fish, "nyquist list --names"), options);
    }
}
