//! The commands that the documents show: where each is, and whether a test runs it. One that no test runs has its
//! reason beside it: `<!-- not run: REASON -->` before a block, or at the end of a line. `<!-- all run by TOPIC -->`
//! and `<!-- all not run: REASON -->` are of all blocks behind it, the latter also of sentences.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The programs whose commands are recognized in a block without `$`.
const PROGRAMS: &[&str] = &[
    "apt",
    "brew",
    "cargo",
    "chmod",
    "cp",
    "curl",
    "docker",
    "export",
    "for",
    "gh",
    "git",
    "gzip",
    "install",
    "kubectl",
    "ln",
    "nyquist",
    "perf",
    "pip",
    "python3",
    "sha256sum",
    "ssh",
    "sudo",
    "systemctl",
    "tar",
    "wpr",
    "xperf",
];

/// The beginnings of marks.
const NOT_RUN: &str = "<!-- not run: ";
const RUN_BY: &str = "<!-- run by ";
const TESTED: &str = "<!-- tested -->";

/// A command that a document shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShownCommand {
    /// The document and the line.
    pub(crate) place: String,
    pub(crate) text: String,
    pub(crate) mark: Mark,
}

/// What a document says about a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Nothing: it is one of those that the live tests `documented` run.
    None,
    /// Why it is not run.
    NotRun(String),
    /// The topic of the live tests that run it, or the step that does.
    RunBy(String),
}

impl ShownCommand {
    /// Whether it is a command of nyquist, or of cargo with it.
    pub(crate) fn is_own(&self) -> bool {
        let text = self.text.strip_prefix("sudo ").unwrap_or(&self.text);
        let is_loop = text.starts_with("for ") && text.contains("nyquist ");
        text.starts_with("nyquist ") || text.starts_with("cargo nyquist") || is_loop
    }
}

/// All commands of all documents.
pub(crate) fn all(root: &Path) -> Result<Vec<ShownCommand>> {
    let mut shown = Vec::new();
    for document in documents(root)? {
        let name = document.strip_prefix(root)?.to_string_lossy().into_owned();
        // The changelog tells of what was, and the design records of what was tried.
        let is_history =
            name == "CHANGELOG.md" || name.starts_with("docs/design") || name.ends_with("options.md");
        if !is_history {
            let text = fs::read_to_string(&document).with_context(|| format!("cannot read {name}"))?;
            shown.extend(commands(&name, &text));
        }
    }
    Ok(shown)
}

/// The documents of the project: those at its root, and those below `docs`.
pub(crate) fn documents(root: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![root.join("docs")]);
    let is_document = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "md");
    found.extend(entries(root)?.into_iter().filter(is_document));
    while let Some(folder) = folders.pop() {
        let (inner, files): (Vec<_>, Vec<_>) = entries(&folder)?.into_iter().partition(|path| path.is_dir());
        folders.extend(inner);
        found.extend(files.into_iter().filter(is_document));
    }
    Ok(found)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    Ok(entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?)
}

/// The commands of a document.
fn commands(name: &str, text: &str) -> Vec<ShownCommand> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut shown, mut pending, mut of_rest, mut at) = (Vec::new(), Mark::None, Mark::None, 0);
    while at < lines.len() {
        let line = lines[at];
        let (block, next) = block_at(&lines, at);
        if let Some(block) = block {
            let texts = block_commands(block);
            let first = at + usize::from(line.trim_start().starts_with("```"));
            let mark = if pending == Mark::None { &of_rest } else { &pending };
            for (offset, text) in texts {
                let place = format!("{name}:{}", first + offset + 1);
                shown.push(ShownCommand { place, text, mark: mark.clone() });
            }
            if pending != Mark::RunBy("commands".to_owned()) {
                pending = Mark::None;
            }
        } else if let Some(all) = line.trim().strip_prefix("<!-- all ") {
            of_rest = mark(&format!("<!-- {all}")).unwrap_or(of_rest);
        } else if let Some(mark) = mark(line.trim()) {
            pending = mark;
        } else if line.trim() == "<!-- /tested -->" {
            pending = Mark::None;
        } else {
            let not_run = Some(of_rest.clone()).filter(|mark| matches!(mark, Mark::NotRun(_)));
            let mark = mark_behind(line).or(not_run).unwrap_or(Mark::None);
            shown.extend(inline(line).map(|text| ShownCommand {
                place: format!("{name}:{}", at + 1),
                text: text.to_owned(),
                mark: mark.clone(),
            }));
        }
        at = next;
    }
    shown
}

/// The block of code that begins at a line, and the number of the line behind it.
fn block_at<'a, 't>(lines: &'a [&'t str], at: usize) -> (Option<&'a [&'t str]>, usize) {
    let is_indented = |line: &str| line.starts_with("    ") && !line.trim().is_empty();
    if let Some(language) = lines[at].trim_start().strip_prefix("```") {
        let rest = &lines[at + 1..];
        let length = rest.iter().position(|line| line.trim() == "```").unwrap_or(rest.len());
        let has_prompt = rest[..length].iter().any(|line| line.starts_with("$ "));
        let is_shell = ["sh", "console", "bash"].contains(&language) || language.is_empty() && has_prompt;
        return (Some(if is_shell { &rest[..length] } else { &[] }), at + length + 2);
    }
    let begins = is_indented(lines[at])
        && (at == 0 || lines[at - 1].trim().is_empty() || lines[at - 1].starts_with("<!--"));
    if !begins {
        return (None, at + 1);
    }
    let length = lines[at..].iter().take_while(|line| is_indented(line) || line.trim().is_empty()).count();
    (Some(&lines[at..at + length]), at + length)
}

/// The commands of a block, with the numbers of their lines in it. In a block with `$`, these are the lines that begin
/// with it. A loop is one command.
fn block_commands(block: &[&str]) -> Vec<(usize, String)> {
    let has_prompt = block.iter().any(|line| line.trim_start().starts_with("$ "));
    let (mut found, mut number) = (Vec::new(), 0);
    while let Some(line) = block.get(number).map(|line| line.trim()) {
        let length = match block[number..].iter().position(|line| line.trim() == "done") {
            Some(end) if line.starts_with("for ") => end + 1,
            _ => 1,
        };
        let first = line.split_whitespace().next().unwrap_or_default();
        if has_prompt {
            found.extend(line.strip_prefix("$ ").map(|line| (number, without_comment(line))));
        } else if length > 1 {
            let lines: Vec<_> = block[number..number + length].iter().map(|line| line.trim()).collect();
            found.push((number, lines.join("\n")));
        } else if PROGRAMS.contains(&first) {
            found.push((number, without_comment(line)));
        }
        number += length;
    }
    found
}

/// A command without what explains it: behind a `#`, or behind several spaces.
fn without_comment(line: &str) -> String {
    let line = line.split(" # ").next().unwrap_or_default().trim();
    line.split("   ").next().unwrap_or_default().trim().to_owned()
}

/// The commands of nyquist in a sentence or a table.
fn inline(line: &str) -> impl Iterator<Item = &str> {
    let spans = line.split('`').skip(1).step_by(2);
    spans.filter(|span| {
        let own = span.strip_prefix("sudo ").unwrap_or(span);
        let args = own.strip_prefix("nyquist ").or_else(|| own.strip_prefix("cargo nyquist "));
        args.is_some_and(|args| args.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '-'))
    })
}

/// The mark at the end of a line.
fn mark_behind(line: &str) -> Option<Mark> {
    mark(line[line.find("<!-- ")?..].trim_end_matches([' ', '|']))
}

fn mark(line: &str) -> Option<Mark> {
    let content =
        |start: &str| line.strip_prefix(start)?.strip_suffix("-->").map(|text| text.trim().to_owned());
    if line == TESTED {
        return Some(Mark::RunBy("commands".to_owned()));
    }
    content(NOT_RUN).map(Mark::NotRun).or_else(|| content(RUN_BY).map(Mark::RunBy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::TOPICS;

    #[test]
    fn each_command_is_run_or_says_why_not() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut faults = Vec::new();
        for shown in all(root).unwrap() {
            let fault = match &shown.mark {
                Mark::None if shown.is_own() => None,
                Mark::None => Some("is neither run by a test nor marked as not run"),
                Mark::NotRun(reason) => (reason.len() < 8).then_some("is not run without a reason"),
                Mark::RunBy(name) => {
                    let is_known = name == "commands" || TOPICS.iter().any(|topic| topic.name == name);
                    (!is_known).then_some("is run by no test of this name")
                }
            };
            faults.extend(fault.map(|fault| format!("{}: `{}` {fault}", shown.place, shown.text)));
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn commands_are_found_with_their_marks() {
        let text = "Use `nyquist report` or `nyquist::api`.\n\n    nyquist list   # all\n\n<!-- not run: needs a phone -->\n\
                    ```sh\ncurl x\n```\n| `nyquist top` | <!-- not run: a screen --> |\n```console\n$ nyquist stat ./app\ncargo build\n```\n";
        let found: Vec<_> =
            commands("a.md", text).into_iter().map(|it| (it.place, it.text, it.mark)).collect();
        let not_run = |reason: &str| Mark::NotRun(reason.to_owned());
        let expected = [
            ("a.md:1", "nyquist report", Mark::None),
            ("a.md:3", "nyquist list", Mark::None),
            ("a.md:7", "curl x", not_run("needs a phone")),
            ("a.md:9", "nyquist top", not_run("a screen")),
            ("a.md:11", "nyquist stat ./app", Mark::None),
        ];
        let expected: Vec<_> =
            expected.map(|(place, text, mark)| (place.to_owned(), text.to_owned(), mark)).into();
        assert_eq!(found, expected);
    }
}
