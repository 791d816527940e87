//! Finds the source of Rust's standard library and of crates on this machine.
//!
//! The manifest of a rustup toolchain states the commit of its compiler, so the compiler need not be run.

use super::rust_path::RustPath;
use super::source_file::{SourceError, SourceFile, open, open_below};
use super::special_path::is_of_crates_io;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The longest manifest that is read, in bytes. Manifests have 1 MB.
const MAX_MANIFEST_BYTES: u64 = 16 << 20;

/// The minimum number of digits of a commit in a manifest.
const MIN_COMMIT_LEN: usize = 7;

/// The folders of rustup and of cargo.
#[derive(Clone, Debug, Default)]
pub(super) struct RustSources {
    rustup_home: Option<PathBuf>,
    cargo_home: Option<PathBuf>,
    toolchains: OnceLock<Vec<Toolchain>>,
}

/// A toolchain.
#[derive(Clone, Debug)]
struct Toolchain {
    folder: PathBuf,
    /// The first digits of its compiler's commit.
    commit: String,
}

impl RustSources {
    pub(super) fn new(rustup_home: Option<PathBuf>, cargo_home: Option<PathBuf>) -> Self {
        Self { rustup_home, cargo_home, toolchains: OnceLock::new() }
    }

    /// The home of cargo.
    pub(super) fn cargo_home(&self) -> Option<&Path> {
        self.cargo_home.as_deref()
    }

    /// Reads a file of the standard library or of a crate of crates.io. `None` if it is neither. Both are
    /// published, so no debug info needs to name them.
    pub(super) fn read(&self, file: &str) -> Option<Result<SourceFile, SourceError>> {
        match RustPath::of(file)? {
            RustPath::Compiler { commit, path } => Some(self.read_of_compiler(commit, path)),
            RustPath::Crate { package, path, .. } => {
                self.read_of_crate(package, path, is_of_crates_io).map(Ok)
            }
        }
    }

    /// Reads a file of a crate that is not published, which debug info must name, because the registries of a
    /// company contain its secrets.
    pub(super) fn read_unpublished(&self, file: &str) -> Option<SourceFile> {
        match RustPath::of(file)? {
            RustPath::Compiler { .. } => None,
            RustPath::Crate { registry, package, path } => {
                self.read_of_crate(package, path, |folder| registry == Some(folder))
            }
        }
    }

    fn read_of_compiler(&self, commit: &str, path: &str) -> Result<SourceFile, SourceError> {
        let component = if path.starts_with("library/") { "src" } else { "rustc-src" };
        let mut of_commit = self.toolchains().iter().filter(|it| commit.starts_with(&it.commit)).peekable();
        let first = of_commit.peek().copied().and_then(|it| it.folder.file_name());
        let missing = || match &first {
            Some(name) if component == "src" => SourceError::NoRustSource {
                missing: "its toolchain is here without the source of the library".to_owned(),
                command: format!("rustup component add rust-src --toolchain {}", name.to_string_lossy()),
            },
            _ => SourceError::NoRustSource {
                missing: format!(
                    "no toolchain here has the source of rustc {}",
                    commit.get(..9).unwrap_or(commit)
                ),
                command: "rustup component add rust-src".to_owned(),
            },
        };
        let rust = |it: &Toolchain| it.folder.join("lib/rustlib").join(component).join("rust");
        of_commit.find_map(|it| read_below(&rust(it), path)).ok_or_else(missing)
    }

    /// A registry has several folders over time, and a crate is the same in each, because its version is in
    /// its name.
    fn read_of_crate(&self, package: &str, path: &str, is_in: impl Fn(&str) -> bool) -> Option<SourceFile> {
        let folders = fs::read_dir(self.cargo_home.as_ref()?.join("registry/src")).ok()?;
        let mut folders = folders.flatten().filter(|folder| folder.file_name().to_str().is_some_and(&is_in));
        folders.find_map(|folder| read_below(&folder.path().join(package), path))
    }

    fn toolchains(&self) -> &[Toolchain] {
        self.toolchains.get_or_init(|| {
            let folders = self.rustup_home.as_ref().map(|home| fs::read_dir(home.join("toolchains")));
            let folders = folders.and_then(Result::ok).into_iter().flatten().flatten();
            let mut toolchains: Vec<_> = folders.filter_map(|folder| Toolchain::at(folder.path())).collect();
            toolchains.sort_by(|a, b| a.folder.cmp(&b.folder));
            toolchains
        })
    }
}

impl Toolchain {
    fn at(folder: PathBuf) -> Option<Self> {
        let manifest =
            open(&folder.join("lib/rustlib/multirust-channel-manifest.toml"), MAX_MANIFEST_BYTES).ok()?;
        let commit = commit(&manifest.text().ok()?.text)?.to_owned();
        Some(Self { folder, commit })
    }
}

/// The commit in a manifest: the line after `[pkg.rust]` is `version = "1.95.0 (59807616e 2026-04-14)"`.
fn commit(manifest: &str) -> Option<&str> {
    let mut lines = manifest.lines().skip_while(|line| line.trim() != "[pkg.rust]").skip(1);
    let version = lines.next()?.strip_prefix("version")?;
    let commit = version.split_once('(')?.1.split(' ').next()?;
    let is_commit = commit.len() >= MIN_COMMIT_LEN && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then_some(commit)
}

/// Reads a file whose real path is in a folder.
fn read_below(folder: &Path, path: &str) -> Option<SourceFile> {
    let file = open_below(folder, &folder.join(path))?.ok()?.text().ok()?;
    // It is the right version, independent of when it was unpacked.
    Some(SourceFile { modified: None, ..file })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "59807616e1fa2540724bfbac14d7976d7e4a3860";

    /// Separate homes of rustup and cargo for a test.
    fn homes(name: &str) -> PathBuf {
        let homes = std::env::temp_dir().join(format!("nyquist-rust-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&homes);
        let write = |path: &str, text: &str| {
            fs::create_dir_all(homes.join(path).parent().unwrap()).unwrap();
            fs::write(homes.join(path), text).unwrap();
        };
        let manifest = |version: &str| {
            format!(
                "manifest-version = \"2\"\n[pkg.cargo]\nversion = \"1 (f2d3ce0bd 2026-03-21)\"\n\n[pkg.rust]\nversion = \"{version}\"\n"
            )
        };
        let toolchain = |name: &str, path: &str| format!("rustup/toolchains/{name}/lib/rustlib/{path}");
        let manifest_file = "multirust-channel-manifest.toml";
        write(&toolchain("1.95.0", manifest_file), &manifest("1.95.0 (59807616e 2026-04-14)"));
        write(&toolchain("nightly", manifest_file), &manifest("1.97.0-nightly (e50aa6fba 2026-05-19)"));
        write(&toolchain("nightly", "src/rust/library/core/src/lib.rs"), "core\n");
        write(&toolchain("linked", "src/rust/library/core/src/lib.rs"), "other\n");
        write("cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tokio-1.54.1/src/lib.rs", "tokio\n");
        write("cargo/registry/src/secret", "secret\n");
        write("cargo/registry/src/own.example-1949cf8c6b5b557f/own-1.0.0/src/lib.rs", "own\n");
        homes
    }

    fn sources(homes: &Path) -> RustSources {
        RustSources::new(Some(homes.join("rustup")), Some(homes.join("cargo")))
    }

    fn read(homes: &Path, file: &str) -> Option<Result<String, String>> {
        let read = sources(homes).read(file)?;
        Some(read.map(|file| file.text).map_err(|error| error.to_string()))
    }

    #[test]
    fn the_library_is_that_of_the_compilers_commit() {
        let homes = homes("library");
        let nightly = "e50aa6fbaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        for file in [
            format!("/rustc/{nightly}/library/core/src/lib.rs"),
            format!("git:github.com/rust-lang/rust:library/core/src/lib.rs:{nightly}"),
        ] {
            assert_eq!(read(&homes, &file), Some(Ok("core\n".to_owned())), "{file}");
        }
        let message = read(&homes, &format!("/rustc/{COMMIT}/library/core/src/lib.rs")).unwrap().unwrap_err();
        assert_eq!(
            message,
            "its toolchain is here without the source of the library: `rustup component add rust-src --toolchain 1.95.0` gets it"
        );
        let unknown = "0000000000000000000000000000000000000000";
        let message =
            read(&homes, &format!("/rustc/{unknown}/library/core/src/lib.rs")).unwrap().unwrap_err();
        assert_eq!(
            message,
            "no toolchain here has the source of rustc 000000000: `rustup component add rust-src` gets it"
        );
        let outside = format!("/rustc/{nightly}/library/../../../../multirust-channel-manifest.toml");
        assert!(read(&homes, &outside).unwrap().is_err());
        fs::remove_dir_all(homes).unwrap();
    }

    #[test]
    fn a_crate_is_found_by_version_for_any_builder() {
        let homes = homes("crate");
        for file in [
            "/home/ann/.cargo/registry/src/github.com-1ecc6299db9ec823/tokio-1.54.1/src/lib.rs",
            "cargo:github.com-1ecc6299db9ec823:tokio-1.54.1:src/lib.rs",
            "/rust/deps/tokio-1.54.1/src/lib.rs",
        ] {
            assert_eq!(read(&homes, file), Some(Ok("tokio\n".to_owned())), "{file}");
        }
        for file in [
            "/home/ann/.cargo/registry/src/index.crates.io-1/tokio-1.54.2/src/lib.rs",
            "/home/ann/.cargo/registry/src/index.crates.io-1/tokio-1.54.1/../../secret",
            "/home/ann/src/lib.rs",
            "cargo:own.example-1949cf8c6b5b557f:own-1.0.0:src/lib.rs",
            "cargo:index.crates.io-1949cf8c6b5b557f:own-1.0.0:src/lib.rs",
            "/home/ann/.cargo/registry/src/own.example-1949cf8c6b5b557f/own-1.0.0/src/lib.rs",
        ] {
            assert_eq!(read(&homes, file), None, "{file}");
        }
        fs::remove_dir_all(homes).unwrap();
    }

    #[test]
    fn an_unpublished_crate_is_of_its_registry() {
        let homes = homes("unpublished");
        let read = |file: &str| sources(&homes).read_unpublished(file).map(|file| file.text);
        let check =
            |file: &str, expected: Option<&str>| assert_eq!(read(file).as_deref(), expected, "{file}");
        check("cargo:own.example-1949cf8c6b5b557f:own-1.0.0:src/lib.rs", Some("own\n"));
        check("/v/registry/src/own.example-1949cf8c6b5b557f/own-1.0.0/src/lib.rs", Some("own\n"));
        check("cargo:other.example-1949cf8c6b5b557f:own-1.0.0:src/lib.rs", None);
        check("/rust/deps/own-1.0.0/src/lib.rs", None);
        check("cargo:..:src-1.0.0:../secret", None);
        fs::remove_dir_all(&homes).unwrap();
    }

    #[test]
    fn a_manifest_gives_the_commit() {
        let check = |manifest: &str, expected| assert_eq!(commit(manifest), expected, "{manifest}");
        check("[pkg.rust]\nversion = \"1.95.0 (59807616e 2026-04-14)\"", Some("59807616e"));
        check("[pkg.rust]\nversion = \"1.95.0\"", None);
        check("[pkg.rust]\nversion = \"1.95.0 ( 2026)\"", None);
        check("[pkg.rustc]\nversion = \"1 (59807616e x)\"", None);
        check("[pkg.rust]", None);
    }
}
