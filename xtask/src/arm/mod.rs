//! What tests and measurements on 64-bit ARM need: nyquist built for it, and the kernel and the shell of a
//! virtual machine.
//!
//! The kernel and the shell come from Debian packages for that architecture. apt-get downloads them, and
//! nothing is installed.

mod apt;
mod archive;
pub(crate) mod machine;
pub(crate) mod perf;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use self::apt::Apt;
use crate::debian_rust;

/// The target that nyquist is built for. The program is statically linked.
const TARGET: &str = "aarch64-unknown-linux-gnu";

/// The parts of the virtual machine.
pub(crate) struct Parts {
    /// The kernel's image.
    pub(crate) kernel: PathBuf,
    /// A statically linked program that contains a shell and its commands.
    pub(crate) busybox: PathBuf,
}

/// The folder of what was built or downloaded.
pub(crate) fn folder() -> PathBuf {
    crate::paths::target().join("arm64")
}

/// Downloads the parts that are missing. This needs what [`crate::packages::install_arm`] installs.
pub(crate) fn parts() -> Result<Parts> {
    let folder = folder();
    fs::create_dir_all(&folder)?;
    let system = folder.join("system");
    if !system.join("complete").exists() {
        get_system(&folder, &system)?;
    }
    let images = fs::read_dir(system.join("boot"))?.flatten().map(|entry| entry.path());
    let is_image =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"vmlinuz"));
    let kernel = images.into_iter().find(is_image).context("the kernel's package has an image")?;
    Ok(Parts { kernel, busybox: system.join("bin/busybox") })
}

/// How nyquist is built.
#[derive(Clone, Copy)]
pub(crate) enum Build {
    /// As it is developed: with checks, and optimised a little.
    Development,
    /// As it is shipped.
    Release,
}

/// Builds nyquist, and returns the stripped program.
pub(crate) fn build_nyquist(how: Build) -> Result<PathBuf> {
    build(how, &["--package", "nyquist", "--bin", "nyquist"], "nyquist")
}

/// Builds an example of one of the project's crates, and returns the stripped program.
pub(crate) fn build_example(package: &str, name: &str) -> Result<PathBuf> {
    let args = ["--package", package, "--no-default-features", "--example", name];
    build(Build::Development, &args, &format!("examples/{name}"))
}

/// Builds a program with Debian's compiler and the matching source of the standard library, in a target folder
/// of its own.
fn build(how: Build, what: &[&str], built: &str) -> Result<PathBuf> {
    let target = crate::paths::target().join("aarch64");
    let (options, profile): (&[&str], _) = match how {
        Build::Development => (&[], "debug"),
        Build::Release => (&["--release"], "release"),
    };
    let mut build = debian_rust::cargo(&[&["build"], what, options].concat(), TARGET, &target);
    build
        // In an emulator, code that is not optimised is too slow to record others on the same CPU.
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
        .env("RUSTFLAGS", "-Ctarget-feature=+crt-static")
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc")
        .env("CC_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-gcc")
        .env("AR_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-ar");
    debian_rust::run(&mut build, TARGET)?;
    let stripped = folder().join(profile).join(built);
    fs::create_dir_all(stripped.parent().context("a program is in a folder")?)?;
    let built = target.join(TARGET).join(profile).join(built);
    succeed(Command::new("aarch64-linux-gnu-strip").arg("-o").arg(&stripped).arg(built))?;
    Ok(stripped)
}

/// Builds a workload for the machine.
pub(crate) fn build_workload(name: &str, flags: &[&str], output: &Path) -> Result<()> {
    let mut compiler = Command::new("aarch64-linux-gnu-gcc");
    compiler.current_dir(crate::paths::root().join("workloads"));
    compiler.args(["-std=gnu17", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-Icommon", "-pthread"]);
    succeed(compiler.args(flags).arg(format!("{name}.c")).arg("-o").arg(output))
}

/// Downloads the newest kernel for virtual machines and the shell from Debian, and unpacks them.
fn get_system(folder: &Path, system: &Path) -> Result<()> {
    let apt = Apt::new(folder)?;
    succeed(&mut apt.command("apt-get", &["update", "-qq"]))?;
    let found = output(
        &mut apt.command("apt-cache", &["search", "--names-only", "^linux-image-.*-cloud-arm64-unsigned$"]),
    )?;
    let kernels = found.lines().filter_map(|line| line.split_whitespace().next());
    let newest =
        kernels.max_by_key(|name| numbers(name)).context("Debian has a kernel for virtual machines")?;
    succeed(&mut apt.command("apt-get", &["download", "-qq", newest, "busybox-static"]))?;
    drop(fs::remove_dir_all(system));
    for entry in fs::read_dir(&apt.folder)?.flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "deb") {
            succeed(Command::new("dpkg-deb").arg("-x").arg(entry.path()).arg(system))?;
        }
    }
    fs::write(system.join("complete"), "")?;
    Ok(())
}

/// The numbers in a name, by which versions are sorted.
fn numbers(name: &str) -> Vec<u64> {
    name.split(|char: char| !char.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

fn succeed(command: &mut Command) -> Result<()> {
    output(command).map(drop)
}

/// The standard output of a command.
fn output(command: &mut Command) -> Result<String> {
    let finished = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !finished.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&finished.stderr));
    }
    Ok(String::from_utf8_lossy(&finished.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        let of = |version: &str| numbers(&format!("linux-image-{version}-cloud-arm64-unsigned"));
        assert!(of("6.12.9+deb12") < of("6.12.117+deb12") && of("6.1.0-56") < of("6.12.9+deb12"));
    }
}
