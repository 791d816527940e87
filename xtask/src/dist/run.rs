//! How a target's programs are run on this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::target::{System, Target};
use crate::{packages, platforms};

/// How programs of a target are run.
#[derive(Debug)]
pub(super) enum Runner {
    /// This machine's own processor and system run them.
    Native,
    /// An emulator of another processor runs them. It cannot record.
    Emulator(String),
    /// Wine runs them, with its settings in a folder.
    Wine(PathBuf),
}

impl Runner {
    /// The runner of a target's programs, or a sentence that says why there is none.
    pub(super) fn of(target: &Target, work: &Path) -> Result<Self, String> {
        let same_processor = target.architecture() == std::env::consts::ARCH;
        match target.system {
            System::Linux if same_processor => Ok(Self::Native),
            System::Linux => {
                let emulator = format!("qemu-{}-static", target.architecture());
                installed(&packages::install_emulator()).map(|()| Self::Emulator(emulator))
            }
            System::Windows if same_processor => {
                installed(&packages::install_wine()).map(|()| Self::Wine(work.to_owned()))
            }
            System::Windows => Err("Wine runs programs of this machine's processor only".to_owned()),
            System::MacOs => Err("programs of macOS are run on macOS only".to_owned()),
        }
    }

    /// A command that runs a program.
    pub(super) fn command(&self, program: &Path) -> Result<Command> {
        Ok(match self {
            Self::Native => Command::new(program),
            Self::Emulator(emulator) => {
                let mut command = Command::new(emulator);
                command.arg(program);
                command
            }
            Self::Wine(work) => {
                let mut command = Command::new("wine");
                command.arg(program).envs(platforms::wine_environment(work)?);
                command
            }
        })
    }
}

fn installed(missing: &[&str]) -> Result<(), String> {
    if missing.is_empty() { Ok(()) } else { Err(format!("not installed: {}", missing.join(" "))) }
}
