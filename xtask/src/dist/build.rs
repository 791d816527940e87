//! Builds the two programs for a target, as they are shipped.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::target::{System, Target};
use crate::macos::frameworks;
use crate::zig::Zig;
use crate::{debian_rust, packages};

/// Builds the programs, and returns the folder that they are in. Each target has a folder of its own.
pub(super) fn build(target: &Target, work: &Path) -> Result<PathBuf> {
    let missing = packages::install_release(target.system == System::Windows);
    ensure!(missing.is_empty(), "these Debian packages are not installed: {}", missing.join(" "));
    let folder = work.join("build");
    let mut arguments = ["build", "--release", "--package", "nyquist", "--bins"];
    let mut command = if target.system == System::Windows {
        debian_rust::cargo(&arguments, target.triple, &folder)
    } else {
        arguments[0] = "zigbuild";
        Zig::installed()?.cargo(&arguments, target.triple, &folder)
    };
    let stubs = work.join("frameworks");
    frameworks::write_into(&stubs)?;
    let flags = rust_flags(target.system, &stubs, &moved_folders());
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f")).env_remove("RUSTFLAGS");
    if target.system == System::MacOs {
        // The compiler would strip the program after the linker has signed it, and so make the signature invalid.
        command.env("CARGO_PROFILE_RELEASE_STRIP", "none");
    }
    debian_rust::run(&mut command, target.triple)?;
    Ok(folder.join(target.triple).join("release"))
}

/// The folders of this machine whose names programs must not contain, and what stands there in their place.
pub(super) fn moved_folders() -> Vec<(String, &'static str)> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from).or(home.map(|home| home.join(".cargo")));
    let mut moved: Vec<_> = cargo.map(|cargo| (cargo.display().to_string(), "/cargo")).into_iter().collect();
    moved.push((crate::paths::root().display().to_string(), "/nyquist"));
    moved
}

/// The compiler's flags. They are the same in each run, because other flags build everything anew.
fn rust_flags(system: System, stubs: &Path, moved: &[(String, &str)]) -> Vec<String> {
    let linking = match system {
        // zig has musl and its start files; the compiler's package does not.
        System::Linux => vec!["-Clink-self-contained=no".to_owned()],
        // Otherwise, the programs would need libraries of the linker's package.
        System::Windows => vec!["-Ctarget-feature=+crt-static".to_owned()],
        // The frameworks are not here, but which functions they have. The linker would name the object files.
        System::MacOs => vec![frameworks::flag(stubs), "-Clink-arg=-Wl,-S".to_owned()],
    };
    let hiding = moved.iter().map(|(from, to)| format!("--remap-path-prefix={from}={to}"));
    linking.into_iter().chain(hiding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_hide_the_folders_of_this_machine() {
        let moved = vec![("/home/me/.cargo".to_owned(), "/cargo")];
        let flags = rust_flags(System::Linux, Path::new("/stubs"), &moved);
        assert_eq!(flags, ["-Clink-self-contained=no", "--remap-path-prefix=/home/me/.cargo=/cargo"]);
        let flags = rust_flags(System::MacOs, Path::new("/stubs"), &[]);
        assert_eq!(flags, ["-Lframework=/stubs", "-Clink-arg=-Wl,-S"]);
        assert!(moved_folders().iter().any(|(from, _)| Path::new(from) == crate::paths::root()));
    }
}
