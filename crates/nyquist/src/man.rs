//! The man pages, generated from the same definitions as `--help`.

use crate::failure::Failure;
use crate::output;
use clap_mangen::Man;
use std::io;
use std::path::Path;

/// Writes a page for the command and each of its subcommands into a folder.
pub(crate) fn write_pages(command: clap::Command, folder: &Path) -> Result<(), Failure> {
    output::create_folders(folder).map_err(|refusal| refusal.failure_at(folder))?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    write_page(&command, folder)
}

fn write_page(command: &clap::Command, folder: &Path) -> Result<(), Failure> {
    for shown in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        write_page(shown, folder)?;
    }
    let page = Man::new(command.clone());
    let path = folder.join(page.get_filename());
    output::replace(&path, &rendered(&page).map_err(|error| Failure::cannot_write(&path, &error))?)
        .map_err(|refusal| refusal.failure_at(&path))
}

fn rendered(page: &Man) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    page.render(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory as _;
    use std::fs;

    #[test]
    fn each_command_that_is_shown_has_a_page() {
        let top = std::env::temp_dir().join(format!("nyquist-man-{}", std::process::id()));
        let folder = top.join("share/man1");
        // Pages of an earlier version are replaced.
        for _ in 0..2 {
            write_pages(Cli::command(), &folder).unwrap();
        }
        let page = |name: &str| fs::read_to_string(folder.join(name));
        let record = page("nyquist-record.1").unwrap();
        let shown = Cli::command().get_subcommands().filter(|command| !command.is_hide_set()).count();
        let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        fs::remove_dir_all(&top).unwrap();
        assert!(record.contains(".TH") && record.contains("\\-\\-rate"), "{record}");
        assert!(names.len() > shown, "{} pages of {shown} commands", names.len());
        assert!(names.iter().all(|name| name.to_string_lossy().ends_with(".1")), "{names:?}");
    }
}
