//! The programs that the tests need, and how they are installed on Debian.

mod lists;

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, OnceLock};

use anyhow::{Context as _, Result, bail};

use lists::{ARM, BROWSER, COMPILER, DEBIAN, EMULATOR, LINTS, MINGW, Need, TESTS, WINE, ZIG};

use crate::sys;

/// Whether missing packages are installed. `cargo xtask test` sets it by `--install`. Benchmarks and releases, which
/// are run by hand, install what they need.
static INSTALLS: OnceLock<bool> = OnceLock::new();

/// Sets whether missing packages are installed from now on.
pub(crate) fn set_installing(installs: bool) {
    // A run has one set of options.
    let _ = INSTALLS.set(installs);
}

/// Whether this run installs what it needs.
pub(crate) fn installs() -> bool {
    *INSTALLS.get().unwrap_or(&true)
}

/// Prepares a run of these steps and topics. With `--install`, as root on Debian, installs what they use. Fails if
/// a package is missing without which no test can run, and prints which others are missing. Tests that need one of
/// those are skipped or fail.
///
/// # Errors
/// A package that every run needs is missing.
pub(crate) fn prepare(names: &[&str]) -> Result<()> {
    let used: Vec<&'static Need> = used_by(names).collect();
    install_if_root(used.iter().copied());
    let missing: Vec<&Need> = missing(used).collect();
    for need in &missing {
        eprintln!("missing: {} ({}), in the Debian package {}", need.what, need.purpose, need.package);
    }
    let packages = packages_of(&missing);
    if !packages.is_empty() {
        eprintln!("--install, as root on Debian, or `apt-get install {}` gets them", packages.join(" "));
    }
    if missing.iter().any(|need| need.users.is_empty()) {
        bail!("programs are missing that every run needs");
    }
    Ok(())
}

/// What these steps and topics use, and what every run needs.
fn used_by(names: &[&str]) -> impl Iterator<Item = &'static Need> {
    TESTS.iter().filter(|need| need.users.is_empty() || need.users.iter().any(|user| names.contains(user)))
}

/// Installs a browser if there is none, as root on Debian. Tests that run in parallel call this, and apt-get
/// allows one call at a time.
pub(crate) fn install_browser() {
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _alone = INSTALLING.lock();
    install_if_root(BROWSER);
}

/// Installs what builds nyquist for 64-bit ARM and runs it, as root on Debian. Returns the packages that are
/// still missing.
pub(crate) fn install_arm() -> Vec<&'static str> {
    install_if_root(ARM);
    missing_of(ARM)
}

/// Installs what builds for Windows and runs that, as root on Debian. Returns the packages that are still missing.
pub(crate) fn install_windows() -> Vec<&'static str> {
    install_all(&[COMPILER, MINGW, WINE])
}

/// Installs what builds for macOS, as root on Debian. Returns the packages that are still missing.
pub(crate) fn install_macos() -> Vec<&'static str> {
    install_all(&[COMPILER, ZIG])
}

/// Installs what lints for other systems, as root on Debian. Returns the packages that are still missing.
pub(crate) fn install_lints() -> Vec<&'static str> {
    install_all(&[COMPILER, LINTS, MINGW, ZIG])
}

/// Installs what runs programs of Windows, as root on Debian. Returns the packages that are still missing.
pub(crate) fn install_wine() -> Vec<&'static str> {
    install_all(&[MINGW, WINE])
}

/// Installs what builds releases for Windows, or for Linux and macOS, as root on Debian. Returns the packages that
/// are still missing.
pub(crate) fn install_release(for_windows: bool) -> Vec<&'static str> {
    install_all(&[COMPILER, if for_windows { MINGW } else { ZIG }])
}

/// Installs what runs programs of other processors, as root on Debian. Returns the packages that are still
/// missing.
pub(crate) fn install_emulator() -> Vec<&'static str> {
    install_if_root(EMULATOR);
    missing_of(EMULATOR)
}

/// Whether Debian packages can be made here. They are made on Debian and on systems like it.
pub(crate) fn can_make_debian_packages() -> bool {
    missing_of(DEBIAN).is_empty()
}

/// Installs these lists, as root on Debian. Returns the packages that are still missing.
fn install_all(lists: &[&'static [Need]]) -> Vec<&'static str> {
    for needs in lists {
        install_if_root(*needs);
    }
    lists.iter().flat_map(|needs| missing_of(needs)).collect()
}

/// Installs what is missing, as root on Debian, if this run installs anything. What cannot be installed stays
/// missing, and is printed.
fn install_if_root(needs: impl IntoIterator<Item = &'static Need>) {
    let packages = packages_of(&missing(needs).collect::<Vec<_>>());
    if packages.is_empty() || !installs() || !sys::is_root() || !is_there("apt-get") {
        return;
    }
    println!("installing {}", packages.join(" "));
    if let Err(error) = apt_get(&["update", "-qq"]).and_then(|()| install(&packages)) {
        println!("{error:#}");
        // One package that this system does not have must not keep the others away.
        for package in packages {
            if let Err(error) = install(&[package]) {
                println!("{package}: {error:#}");
            }
        }
    }
}

fn missing(needs: impl IntoIterator<Item = &'static Need>) -> impl Iterator<Item = &'static Need> {
    needs.into_iter().filter(|need| !is_there(need.what))
}

/// The missing packages of a list.
fn missing_of(needs: &'static [Need]) -> Vec<&'static str> {
    packages_of(&missing(needs).collect::<Vec<_>>())
}

fn packages_of(needs: &[&Need]) -> Vec<&'static str> {
    let mut packages: Vec<&str> = needs.iter().map(|need| need.package).collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

fn is_there(what: &str) -> bool {
    if what.starts_with('/') {
        return Path::new(what).exists();
    }
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(what).exists()))
}

fn install(packages: &[&str]) -> Result<()> {
    apt_get(&[&["install", "-qq", "-y", "--no-install-recommends"], packages].concat())
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    let status = Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .status()
        .context("cannot start apt-get")?;
    if !status.success() {
        bail!("apt-get {} failed ({status})", arguments.join(" "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A test that starts a program whose package is listed for others alone would be skipped on a machine where
    /// the package could be installed.
    #[test]
    fn packages_are_listed_for_topics_that_use_them() {
        let folder = crate::paths::root().join("xtask/src/live/topics");
        let topics: Vec<&str> = crate::live::TOPICS.iter().map(|topic| topic.name).collect();
        let mut seen = 0;
        for topic in &topics {
            let Ok(source) = fs::read_to_string(folder.join(format!("{topic}.rs"))) else { continue };
            seen += 1;
            for need in TESTS.iter().filter(|need| !need.users.is_empty()) {
                let is_used = source.contains(&format!("\"{}\"", need.what));
                assert!(!is_used || need.users.contains(topic), "{topic} starts {}", need.what);
            }
        }
        assert!(seen * 2 > topics.len(), "the topics are not in {}", folder.display());
        for user in TESTS.iter().flat_map(|need| need.users) {
            assert!(topics.contains(user) || crate::test::is_step(user), "{user} is no step and no topic");
        }
    }

    #[test]
    fn a_named_run_asks_for_what_it_uses_alone() {
        let used = |names: &[&str]| used_by(names).map(|need| need.what).collect::<Vec<_>>();
        assert!(used(&["attach"]).contains(&"gdb") && used(&["attach"]).contains(&"gcc"));
        assert!(!used(&["recording"]).contains(&"gdb") && !used(&["recording"]).contains(&"node"));
        assert!(used(&["stacks"]).contains(&"musl-gcc"));
    }
}
