//! The targets that releases are made for, and the names of their archives.

use anyhow::{Context as _, Result};

/// The systems of the targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    /// Static programs, which run on every distribution.
    Linux,
    /// Programs that only need what every Windows has.
    Windows,
    /// Programs of macOS.
    MacOs,
}

/// A target of releases.
#[derive(Debug)]
pub(super) struct Target {
    /// Its name in Rust.
    pub(super) triple: &'static str,
    /// Its system.
    pub(super) system: System,
    /// Its name in Debian, if a Debian package is made for it.
    pub(super) debian: Option<&'static str>,
}

/// All targets.
pub(super) const TARGETS: &[Target] = &[
    Target { triple: "x86_64-unknown-linux-musl", system: System::Linux, debian: Some("amd64") },
    Target { triple: "aarch64-unknown-linux-musl", system: System::Linux, debian: Some("arm64") },
    Target { triple: "x86_64-pc-windows-gnu", system: System::Windows, debian: None },
    Target { triple: "aarch64-apple-darwin", system: System::MacOs, debian: None },
    Target { triple: "x86_64-apple-darwin", system: System::MacOs, debian: None },
];

impl Target {
    /// The target with this name.
    pub(super) fn named(triple: &str) -> Result<&'static Self> {
        let names = || TARGETS.iter().map(|target| target.triple).collect::<Vec<_>>().join(", ");
        TARGETS
            .iter()
            .find(|target| target.triple == triple)
            .with_context(|| format!("no releases are made for {triple}, but for {}", names()))
    }

    /// The architecture, as Rust names it.
    pub(super) fn architecture(&self) -> &'static str {
        self.triple.split_once('-').map_or(self.triple, |(architecture, _)| architecture)
    }

    /// The only folder at the top of the archive.
    pub(super) fn folder(&self, version: &str) -> String {
        format!("nyquist-{version}-{}", self.triple)
    }

    /// The archive's name.
    pub(super) fn archive(&self, version: &str) -> String {
        let ending = if self.system == System::Windows { ".zip" } else { ".tar.gz" };
        self.folder(version) + ending
    }

    /// The name of a program's file.
    pub(super) fn program(&self, name: &str) -> String {
        let ending = if self.system == System::Windows { ".exe" } else { "" };
        format!("{name}{ending}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_version_and_target() {
        let name = |triple| Target::named(triple).unwrap().archive("1.2.3");
        assert_eq!(name("aarch64-unknown-linux-musl"), "nyquist-1.2.3-aarch64-unknown-linux-musl.tar.gz");
        assert_eq!(name("x86_64-pc-windows-gnu"), "nyquist-1.2.3-x86_64-pc-windows-gnu.zip");
        assert_eq!(Target::named("x86_64-pc-windows-gnu").unwrap().program("nyquist"), "nyquist.exe");
    }

    #[test]
    fn other_targets_are_refused_with_a_list() {
        let refused = format!("{:#}", Target::named("riscv64").unwrap_err());
        assert!(
            refused.contains("no releases") && refused.contains("x86_64-unknown-linux-musl"),
            "{refused}"
        );
    }
}
