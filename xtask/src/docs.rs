//! Runs the commands that the documentation shows, to check that they work.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::builds;
use crate::steps::succeeds;
use crate::tally::Tally;

/// The documents whose marked commands are run.
const DOCUMENTS: &[&str] = &["README.md"];

/// The marks around the commands to run.
const BEGIN: &str = "<!-- tested -->";
const END: &str = "<!-- /tested -->";

/// Runs every marked block in a shell that stops at the first failure. Each block runs in a separate folder,
/// with the built `nyquist` first in PATH. `$REPO` is the path of the repository.
pub(crate) fn run_commands(_: &mut Tally) -> Result<bool> {
    builds::development()?;
    let folder = crate::paths::target().join("documented-commands");
    fs::create_dir_all(&folder)?;
    let mut all_passed = true;
    for document in DOCUMENTS {
        let path = crate::paths::root().join(document);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let blocks = marked_blocks(&text)?;
        if blocks.is_empty() {
            bail!("{document} has no commands between `{BEGIN}` and `{END}`");
        }
        for block in blocks {
            all_passed &= succeeds(shell(&block, &folder)?)?;
        }
    }
    Ok(all_passed)
}

fn shell(block: &str, folder: &Path) -> Result<Command> {
    let mut path = vec![crate::paths::target().join("debug")];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let mut command = Command::new("bash");
    command
        .args(["-euxo", "pipefail", "-c", block])
        .current_dir(folder)
        .env("PATH", std::env::join_paths(path)?)
        .env("REPO", crate::paths::root());
    Ok(command)
}

/// The contents of the fenced blocks between the markers; a `$ ` before a command is left out.
fn marked_blocks(text: &str) -> Result<Vec<String>> {
    let mut blocks = Vec::new();
    let (mut marked, mut block) = (false, None);
    for line in text.lines() {
        match (line.trim(), &mut block) {
            (BEGIN, None) => marked = true,
            (END, None) if marked => marked = false,
            (fence, None) if marked && fence.starts_with("```") => block = Some(String::new()),
            ("```", Some(_)) => blocks.extend(block.take()),
            (_, Some(block)) => {
                block.push_str(line.strip_prefix("$ ").unwrap_or(line));
                block.push('\n');
            }
            _ => {}
        }
    }
    if marked || block.is_some() {
        bail!("a marked block of commands has no end");
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::marked_blocks;

    #[test]
    fn only_marked_fenced_blocks_are_run() {
        let text = "```sh\nno\n```\n<!-- tested -->\nprose\n```sh\n$ one\ntwo\n```\n<!-- /tested -->\n```\nno\n```\n";
        assert_eq!(marked_blocks(text).unwrap(), ["one\ntwo\n"]);
    }

    #[test]
    fn a_missing_end_is_an_error() {
        assert!(marked_blocks("<!-- tested -->\n```sh\none\n```\n").is_err());
        assert!(marked_blocks("<!-- tested -->\n```sh\none\n").is_err());
    }
}
