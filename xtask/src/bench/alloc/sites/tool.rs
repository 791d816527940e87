//! How a tool is run.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// Runs a command that must succeed.
pub(super) fn succeeded(command: &mut Command, what: &str) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{what} cannot be run"))?;
    ensure!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
