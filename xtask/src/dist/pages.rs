//! Man pages and completions. A program that runs on this machine writes them, because they are the same for
//! all targets.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::files::{Files, empty_folder};
use super::printed::printed;
use crate::steps::{cargo, succeeds};

/// The names of completions by shell. `*` stands for the command.
const SHELLS: [(&str, &str); 4] =
    [("bash", "*.bash"), ("zsh", "_*"), ("fish", "*.fish"), ("powershell", "_*.ps1")];

/// The commands that have completions, and the arguments of `nyquist` for them.
const COMMANDS: [(&str, &[&str]); 2] =
    [("nyquist", &["completions"]), ("cargo-nyquist", &["cargo", "completions"])];

/// Builds nyquist for this machine, for its pages. A development build has the same ones in less time.
pub(super) fn build() -> Result<PathBuf> {
    let built =
        succeeds(cargo(&["build", "--quiet", "--locked", "--package", "nyquist", "--bin", "nyquist"]))?;
    ensure!(built, "nyquist does not build for this machine");
    Ok(crate::paths::target().join("debug/nyquist"))
}

/// The pages that a program writes: `man/man1` and `completions`. They stay in the folder.
pub(super) fn pages_of(nyquist: &Path, folder: &Path) -> Result<Files> {
    empty_folder(folder)?;
    let mut pages = Files::default();
    let man = folder.join("man/man1");
    printed(Command::new(nyquist).arg("man").arg(&man))?;
    for entry in fs::read_dir(&man).with_context(|| format!("{} wrote no man pages", nyquist.display()))? {
        let path = entry?.path();
        let name = path.file_name().context("a page has a name")?.to_string_lossy();
        pages.add(format!("man/man1/{name}"), fs::read(&path)?);
    }
    for (command, arguments) in COMMANDS {
        for (shell, name) in SHELLS {
            let script = printed(Command::new(nyquist).args(arguments).arg(shell))?;
            ensure!(!script.is_empty(), "there are no completions of {command} for {shell}");
            pages.add(completions(name, command), script);
        }
    }
    pages.write_below(folder)?;
    Ok(pages)
}

fn completions(name: &str, command: &str) -> String {
    format!("completions/{}", name.replace('*', command))
}
