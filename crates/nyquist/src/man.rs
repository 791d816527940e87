//! The man pages, generated from the same definitions as `--help`.

use crate::failure::Failure;
use crate::identity::as_invoking_user;
use std::fs;
use std::io;
use std::path::Path;

/// Writes a page for the command and each of its subcommands into a folder.
pub(crate) fn write_pages(command: clap::Command, folder: &Path) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        fs::create_dir_all(folder)?;
        clap_mangen::generate_to(command, folder)
    };
    as_invoking_user(write)?
        .map_err(|error| Failure::because(format!("cannot write man pages to {}", folder.display()), &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory as _;

    #[test]
    fn each_command_that_is_shown_has_a_page() {
        let folder = std::env::temp_dir().join(format!("nyquist-man-{}", std::process::id()));
        write_pages(Cli::command(), &folder).unwrap();
        let page = |name: &str| fs::read_to_string(folder.join(name));
        let record = page("nyquist-record.1").unwrap();
        let shown = Cli::command().get_subcommands().filter(|command| !command.is_hide_set()).count();
        let written = fs::read_dir(&folder).unwrap().count();
        fs::remove_dir_all(&folder).unwrap();
        assert!(record.contains(".TH") && record.contains("\\-\\-rate"), "{record}");
        assert!(written > shown, "{written} pages of {shown} commands");
    }
}
