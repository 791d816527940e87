//! Debian's Rust compiler and the source of its standard library. They always fit each other, so they build
//! for systems whose standard library is not installed.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// A command of Debian's cargo for another system, in a target folder of its own.
pub(crate) fn cargo(arguments: &[&str], target: &str, folder: &Path) -> Command {
    let mut command = Command::new("/usr/bin/cargo");
    prepare(&mut command, arguments, target, folder);
    command
}

/// Makes a command use Debian's compiler for another system, in a target folder of its own.
pub(crate) fn prepare(command: &mut Command, arguments: &[&str], target: &str, folder: &Path) {
    command
        .args(arguments)
        // With `test` each time: otherwise tests have another standard library, and all crates are built again.
        .args(["--locked", "--quiet", "-Zbuild-std=std,test", "--target", target])
        .current_dir(crate::paths::root())
        // The compilers of rustup come first there.
        .env("PATH", "/usr/bin:/bin")
        .env("RUSTC_BOOTSTRAP", "1")
        // Building takes longer than all that is run.
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
        .env("CARGO_TARGET_DIR", folder)
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("RUSTC")
        .env_remove("CARGO");
}

/// What the compiler says where Apple's SDK is not: it looks for it before it links, and does without it.
const NO_SDK: &str = "warning: invoking `\"xcrun\" ";

/// Runs such a command, which must not print a warning.
pub(crate) fn run(command: &mut Command, target: &str) -> Result<()> {
    let built = command.output().with_context(|| format!("cannot start {command:?}"))?;
    // Cargo prints only what the compiler warns of.
    let messages = unexpected(&String::from_utf8_lossy(&built.stderr));
    ensure!(
        built.status.success() && messages.is_empty(),
        "nyquist does not build for {target} without a warning: {messages}"
    );
    Ok(())
}

/// The messages that are not expected. Empty lines are between messages.
fn unexpected(messages: &str) -> String {
    let parts = messages.split("\n\n").filter(|part| !part.trim().is_empty());
    parts.filter(|part| !part.starts_with(NO_SDK)).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::unexpected;

    #[test]
    fn only_the_missing_sdk_is_expected() {
        let no_sdk = "warning: invoking `\"xcrun\" \"--sdk\"` failed\n  |\n  = note: it is needed\n\n";
        assert_eq!(unexpected(no_sdk), "");
        let other = format!("{no_sdk}warning: unused variable\n --> src/main.rs\n\n");
        assert_eq!(unexpected(&other), "warning: unused variable\n --> src/main.rs");
    }
}
