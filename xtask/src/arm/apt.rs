//! Access to Debian's packages for 64-bit ARM, beside those of this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

/// Access to Debian's packages for 64-bit ARM, with separate package lists. It installs nothing.
pub(super) struct Apt {
    /// The folder of the lists and of what is downloaded.
    pub(super) folder: PathBuf,
}

impl Apt {
    /// Prepares the folder.
    pub(super) fn new(folder: &Path) -> Result<Self> {
        let folder = folder.join("apt");
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(folder.join(part))?;
        }
        fs::write(folder.join("status"), "")?;
        Ok(Self { folder })
    }

    /// A command of apt that sees these packages alone.
    pub(super) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder);
        for option in ["APT::Architecture=arm64", "APT::Architectures::=arm64", "Acquire::Languages=none"] {
            command.args(["-o", option]);
        }
        for (option, part) in [("State::lists", "lists"), ("Cache", "cache"), ("State::status", "status")] {
            command.arg("-o").arg(format!("Dir::{option}={}", self.folder.join(part).display()));
        }
        command.args(arguments);
        command
    }
}
