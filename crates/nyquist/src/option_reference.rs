//! The reference of all options, `docs/reference/options.md`. It is generated from the same definitions as
//! `--help`, and compared with them.

use crate::args::{Cli, cargo::CargoCli};
use clap::{Arg, Command, CommandFactory as _};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const BEGINNING: &str = "# Options

Every command with its arguments and options, their defaults, and the environment variables that stand for them. It is what
`nyquist COMMAND --help` prints. `-h` and `--help` are understood everywhere, and `-V` and `--version`. What the options are for is in
the [guide](../guide.md).
";

/// The document of all options.
fn document() -> String {
    let mut document = Document::default();
    document.text.push_str(BEGINNING);
    for mut command in [Cli::command(), CargoCli::command()] {
        // From here on, global options are part of each command, and usages have full names.
        command.build();
        let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
        documented(&mut command).for_each(|subcommand| document.add_command(&name, subcommand));
    }
    document.text
}

/// The subcommands, without the one that prints their help.
fn documented(command: &mut Command) -> impl Iterator<Item = &mut Command> {
    command.get_subcommands_mut().filter(|subcommand| subcommand.get_name() != "help")
}

/// The text so far.
#[derive(Default)]
struct Document {
    text: String,
    /// The command that first had a group of options, by heading and rows. The group is not listed again.
    listed: BTreeMap<(String, String), String>,
}

impl Document {
    fn add_command(&mut self, prefix: &str, command: &mut Command) {
        if command.is_hide_set() {
            return;
        }
        let name = format!("{prefix} {}", command.get_name());
        let usage = command.render_usage().to_string();
        let usage =
            usage.trim_start_matches("Usage:").lines().map(str::trim).collect::<Vec<_>>().join("\n    ");
        let about = command.get_long_about().or(command.get_about()).map(ToString::to_string);
        let about = about.unwrap_or_default();
        let _ = write!(self.text, "\n## {name}\n\n{}.\n\n    {usage}\n", prose(about.trim_end_matches('.')));
        for (heading, rows) in groups(command) {
            self.add_group(&name, heading, rows);
        }
        documented(command).for_each(|subcommand| self.add_command(&name, subcommand));
    }

    fn add_group(&mut self, command: &str, heading: String, rows: String) {
        let listed = self.listed.get(&(heading.clone(), rows.clone())).filter(|_| !heading.is_empty());
        if let Some(first) = listed {
            let anchor = first.replace(' ', "-");
            let _ = writeln!(self.text, "\n**{heading}**: as [{first}](#{anchor}) has them.");
            return;
        }
        if !heading.is_empty() {
            let _ = writeln!(self.text, "\n**{heading}**");
        }
        self.text.push_str("\n| option | meaning | default | environment |\n|---|---|---|---|\n");
        self.text.push_str(&rows);
        self.listed.insert((heading, rows), command.to_owned());
    }
}

/// The rows of a command's options by heading, in the order of the headings' first occurrence.
fn groups(command: &Command) -> Vec<(String, String)> {
    let mut groups: Vec<(String, String)> = Vec::new();
    let is_shown = |arg: &&Arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str());
    for arg in command.get_arguments().filter(is_shown) {
        let heading = arg.get_help_heading().unwrap_or_default();
        let place = groups.iter().position(|(known, _)| known == heading).unwrap_or_else(|| {
            groups.push((heading.to_owned(), String::new()));
            groups.len() - 1
        });
        groups[place].1.push_str(&row(arg));
    }
    groups
}

/// An argument's row of its table.
fn row(arg: &Arg) -> String {
    let values = arg.get_default_values().iter().map(|value| code(&value.to_string_lossy()));
    let has_default = arg.get_action().takes_values() && !arg.is_hide_default_value_set();
    let default = values.filter(|_| has_default).collect::<Vec<_>>().join(" ");
    let variable = arg.get_env().map(|name| code(&name.to_string_lossy())).unwrap_or_default();
    let cells = [names(arg), meaning(arg), default, variable].map(|cell| cell.replace('|', "\\|"));
    format!("| {} |\n", cells.join(" | "))
}

/// The names of an argument, with its value.
fn names(arg: &Arg) -> String {
    // An argument without a long name is shown by its letter already.
    let letters = arg.get_short_and_visible_aliases().filter(|_| arg.get_long().is_some());
    let letters = letters.unwrap_or_default().into_iter().map(|letter| code(&format!("-{letter}")));
    let aliases = arg.get_visible_aliases().unwrap_or_default();
    let aliases = aliases.into_iter().map(|alias| code(&format!("--{alias}")));
    letters.chain([code(&arg.to_string())]).chain(aliases).collect::<Vec<_>>().join(", ")
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

/// The help text of an argument, and its possible values.
fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut meaning = prose(&help);
    if !arg.get_action().takes_values() {
        return meaning;
    }
    let values = arg.get_possible_values();
    let values = values.iter().filter(|value| !value.is_hide_set()).map(|value| match value.get_help() {
        Some(help) => format!("`{}` ({})", value.get_name(), prose(&help.to_string())),
        None => format!("`{}`", value.get_name()),
    });
    let values = values.collect::<Vec<_>>().join(", ");
    if !values.is_empty() {
        let _ = write!(meaning, ": {values}");
    }
    meaning
}

/// Text of a definition on one line, with Markdown's special characters escaped.
fn prose(text: &str) -> String {
    let mut prose = String::new();
    for word in text.split_whitespace() {
        let separator = if prose.is_empty() { "" } else { " " };
        let _ = write!(prose, "{separator}{}", word.replace('*', "\\*").replace('<', "\\<"));
    }
    prose
}

#[test]
fn the_document_is_that_of_the_definitions() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/options.md");
    let document = document();
    if std::env::var_os("UPDATE_OPTIONS").is_some() {
        fs::write(&path, &document).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let mut lines = document.lines().zip(committed.lines());
    let first = lines.find(|(defined, written)| defined != written);
    assert!(
        committed == document,
        "docs/reference/options.md does not say what the definitions say; refresh it with \
         `UPDATE_OPTIONS=1 cargo test -p nyquist option_reference`; first difference: {first:#?}"
    );
}

#[test]
fn an_option_is_shown_with_all_its_definitions() {
    let document = document();
    for expected in [
        "\n## nyquist record\n",
        "\n## nyquist cache clear\n",
        "\n## cargo nyquist bench\n",
        "| `-r`, `-F`, `--rate <HZ>` | Samples a second, of each running thread | `1000` |  |",
        "| `NYQUIST_MAX_MEMORY` |",
        "`ptrace` (ptrace: user code",
        "**Filters**: as [nyquist report](#nyquist-report) has them.",
    ] {
        assert!(document.contains(expected), "{expected} is not in\n{document}");
    }
    // A hidden option and a hidden command.
    assert!(!document.contains("PROFILER_URL") && !document.contains("nyquist launch"));
}
