//! Running a command for what it prints.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The standard output of a command, which has to succeed.
pub(super) fn printed(command: &mut Command) -> Result<String> {
    let finished = command.output().with_context(|| format!("cannot start {command:?}"))?;
    let messages = String::from_utf8_lossy(&finished.stderr);
    ensure!(finished.status.success(), "{command:?} failed ({}): {messages}", finished.status);
    Ok(String::from_utf8_lossy(&finished.stdout).into_owned())
}
