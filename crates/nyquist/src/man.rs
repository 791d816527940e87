//! The man pages, generated from the same definitions as `--help`.

use crate::args::{Cli, cargo::CargoCli};
use crate::failure::Failure;
use crate::output;
use clap::CommandFactory as _;
use clap_mangen::Man;
use std::io;
use std::path::Path;

/// Writes a page for `nyquist`, `cargo-nyquist` and each of their subcommands into a folder.
pub(crate) fn write_pages(folder: &Path) -> Result<(), Failure> {
    output::create_folders(folder).map_err(|denied| denied.failure_at(folder))?;
    for command in [Cli::command(), CargoCli::command()] {
        let mut command = command.disable_help_subcommand(true);
        command.build();
        write_page(&command, folder)?;
    }
    Ok(())
}

fn write_page(command: &clap::Command, folder: &Path) -> Result<(), Failure> {
    for shown in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        write_page(shown, folder)?;
    }
    let version = command.get_version().unwrap_or_default();
    let page = Man::new(command.clone()).source(format!("nyquist {version}"));
    let path = folder.join(page.get_filename());
    let page = rendered(&page).map_err(|error| Failure::cannot_write(&path, &error))?;
    output::replace(&path, with_examples(&page).as_bytes()).map_err(|denied| denied.failure_at(&path))
}

fn rendered(page: &Man) -> io::Result<String> {
    let mut bytes = Vec::new();
    page.render(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The page with the text behind its options as notes and examples. Examples keep their lines and columns.
fn with_examples(page: &str) -> String {
    let Some((before, rest)) = page.split_once("\n.SH EXTRA\n") else { return page.to_owned() };
    let (text, after) = rest.split_at(rest.find("\n.SH ").map_or(rest.len(), |at| at + 1));
    let (examples, notes): (Vec<_>, Vec<_>) =
        text.lines().filter(|line| *line != "Examples:").partition(|line| line.starts_with("  "));
    let section =
        |heading: &str, lines: &[&str], begin: &str, end: &str| match lines.join("\n").trim_matches('\n') {
            "" => String::new(),
            text => format!(".SH {heading}\n{begin}{text}\n{end}"),
        };
    let notes = section("NOTES", &notes, "", "");
    format!("{before}\n{notes}{}{after}", section("EXAMPLES", &examples, ".nf\n", ".fi\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn each_command_that_is_shown_has_a_page() {
        let top = std::env::temp_dir().join(format!("nyquist-man-{}", std::process::id()));
        let folder = top.join("share/man1");
        // Pages of an earlier version are replaced.
        for _ in 0..2 {
            write_pages(&folder).unwrap();
        }
        let page = |name: &str| fs::read_to_string(folder.join(name));
        let record = page("nyquist-record.1").unwrap();
        let shown = Cli::command().get_subcommands().filter(|command| !command.is_hide_set()).count();
        let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        fs::remove_dir_all(&top).unwrap();
        assert!(record.contains(".TH") && record.contains("\\-\\-rate"), "{record}");
        assert!(names.len() > shown, "{} pages of {shown} commands", names.len());
        assert!(names.iter().all(|name| name.to_string_lossy().ends_with(".1")), "{names:?}");
        for name in ["cargo-nyquist.1", "cargo-nyquist-bench.1"] {
            assert!(names.iter().any(|page| page == name), "{names:?}");
        }
    }

    #[test]
    fn every_page_has_examples_with_their_lines() {
        for mut command in [Cli::command(), CargoCli::command()] {
            command.build();
            let shown =
                command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help");
            for command in shown.chain([&command]) {
                let page = with_examples(&rendered(&Man::new(command.clone())).unwrap());
                let examples = page.split_once(".SH EXAMPLES\n.nf\n").map_or("", |(_, examples)| examples);
                let lines = examples.split(".fi\n").next().unwrap();
                assert!(lines.contains("nyquist"), "{}: {page}", command.get_name());
                assert!(!page.contains(".SH EXTRA"), "{page}");
            }
        }
    }
}
