//! The Firefox Profiler's names for published source files, its *special paths*
//! (<https://github.com/firefox-devtools/profiler/blob/main/src/utils/special-paths.ts>). It shows them in a
//! short form, and fetches the source from the web.
//!
//! - `git:github.com/rust-lang/rust:PATH:COMMIT` is of Rust's standard library or compiler.
//! - `cargo:REGISTRY:NAME-VERSION:PATH` is of a crate. The front end fetches it from crates.io, whatever the
//!   name of the registry is. So only crates of crates.io get such names, because another registry's crate of
//!   the same name has other text.

use super::rust_path::{REPOSITORY, RustPath};
use std::borrow::Cow;
use std::path::Path;

/// The special path of a file in the spelling of a compiler, for files of Rust's library and of crates of
/// crates.io. All other paths, and paths whose special form the front end does not support, stay unchanged.
pub fn special_source_path(file: &str) -> Cow<'_, str> {
    if !file.starts_with('/') {
        return Cow::Borrowed(file);
    }
    match RustPath::of(file).filter(is_special) {
        Some(RustPath::Compiler { commit, path }) => format!("git:{REPOSITORY}:{path}:{commit}").into(),
        Some(RustPath::Crate { registry: Some(registry), package, path }) => {
            format!("cargo:{registry}:{package}:{path}").into()
        }
        _ => Cow::Borrowed(file),
    }
}

/// The path on a disk of a file with a special path, in the spelling of compilers. It is the inverse of
/// [`special_source_path`]. Crates are where cargo unpacks them in its home. Without a home, crates stay
/// unchanged, and so do all other paths.
pub fn disk_source_path<'a>(file: &'a str, cargo_home: Option<&Path>) -> Cow<'a, str> {
    if file.starts_with('/') {
        return Cow::Borrowed(file);
    }
    let path = match RustPath::of(file).filter(is_special) {
        Some(RustPath::Compiler { commit, path }) => Some(format!("/rustc/{commit}/{path}")),
        Some(RustPath::Crate { registry: Some(registry), package, path }) => {
            let home = cargo_home.and_then(Path::to_str).map(|home| home.trim_end_matches('/'));
            home.map(|home| format!("{home}/registry/src/{registry}/{package}/{path}"))
        }
        _ => None,
    };
    let path = path.filter(|path| special_source_path(path) == file);
    path.map_or(Cow::Borrowed(file), Cow::Owned)
}

/// Whether the front end supports a file's special path, and finds the same text as the compiler there.
fn is_special(file: &RustPath<'_>) -> bool {
    match *file {
        RustPath::Compiler { commit, path } => is_commit(commit) && is_plain(path),
        RustPath::Crate { registry, package, path } => {
            registry.is_some_and(is_of_crates_io) && is_release(package) && is_plain(path)
        }
    }
}

/// Whether a registry's folder is that of crates.io, with its git index or its sparse index.
pub(super) fn is_of_crates_io(registry: &str) -> bool {
    let of_files = registry.strip_prefix("index.crates.io-");
    registry == "github.com-1ecc6299db9ec823" || of_files.is_some_and(|hash| hash.len() == 16 && is_hex(hash))
}

fn is_commit(commit: &str) -> bool {
    commit.len() == 40 && is_hex(commit)
}

fn is_hex(digits: &str) -> bool {
    digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Whether a crate's version is three numbers, because the front end supports no other.
fn is_release(package: &str) -> bool {
    let Some((name, version)) = package.rsplit_once('-') else { return false };
    let is_number = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = !name.is_empty() && !name.contains(['.', '+']);
    is_name && version.split('.').count() == 3 && version.split('.').all(is_number)
}

/// Whether a path only descends into folders, and consists of characters that a URL may contain.
fn is_plain(path: &str) -> bool {
    !path.chars().any(char::is_control) && path.split('/').all(|part| !["", ".", ".."].contains(&part))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "59807616e1fa2540724bfbac14d7976d7e4a3860";

    /// Paths of compilers, with cargo's home `/home/ann/.cargo`, and their special paths.
    fn pairs() -> [(String, String); 5] {
        let crates = |path: &str| format!("/home/ann/.cargo/registry/src/{path}");
        [
            (
                format!("/rustc/{COMMIT}/library/core/src/lib.rs"),
                format!("git:github.com/rust-lang/rust:library/core/src/lib.rs:{COMMIT}"),
            ),
            (
                format!("/rustc/{COMMIT}/compiler/rustc_span/src/a b.rs"),
                format!("git:github.com/rust-lang/rust:compiler/rustc_span/src/a b.rs:{COMMIT}"),
            ),
            (
                crates("index.crates.io-1949cf8c6b5b557f/tokio-1.54.1/src/lib.rs"),
                "cargo:index.crates.io-1949cf8c6b5b557f:tokio-1.54.1:src/lib.rs".to_owned(),
            ),
            (
                crates("index.crates.io-6f17d22bba15001f/sha-1-0.10.0/build.rs"),
                "cargo:index.crates.io-6f17d22bba15001f:sha-1-0.10.0:build.rs".to_owned(),
            ),
            (
                crates("github.com-1ecc6299db9ec823/nom-7.1.3/src/bytes/complete.rs"),
                "cargo:github.com-1ecc6299db9ec823:nom-7.1.3:src/bytes/complete.rs".to_owned(),
            ),
        ]
    }

    #[test]
    fn published_files_have_special_paths() {
        for (path, special) in pairs() {
            assert_eq!(special_source_path(&path), special);
            assert_eq!(special_source_path(&special), special, "it is one already");
        }
        let elsewhere = "/v/registry/src/index.crates.io-1949cf8c6b5b557f/a-1.0.0/src/lib.rs";
        assert_eq!(
            special_source_path(elsewhere),
            "cargo:index.crates.io-1949cf8c6b5b557f:a-1.0.0:src/lib.rs"
        );
    }

    #[test]
    fn special_paths_become_those_of_compilers() {
        let home = Some(Path::new("/home/ann/.cargo"));
        for (path, special) in pairs() {
            assert_eq!(disk_source_path(&special, home), path);
            assert_eq!(disk_source_path(&path, home), path, "it is one already");
            assert_eq!(disk_source_path(&special, Some(Path::new("/home/ann/.cargo/"))), path);
        }
        let of_crate = "cargo:github.com-1ecc6299db9ec823:nom-7.1.3:src/lib.rs";
        for home in [None, Some(Path::new("relative")), Some(Path::new("/x/registry/src/y"))] {
            assert_eq!(disk_source_path(of_crate, home), of_crate, "{home:?}");
        }
    }

    /// Paths that the front end does not support, or for which it would fetch another file.
    #[test]
    fn other_paths_are_left_alone() {
        let crates = |path: &str| format!("/c/registry/src/index.crates.io-1949cf8c6b5b557f/{path}");
        let upper = COMMIT.to_uppercase();
        for file in [
            String::new(),
            "/src/a.rs".to_owned(),
            "a.rs".to_owned(),
            format!("rustc/{COMMIT}/library/a.rs"),
            format!("/rustc/{upper}/library/a.rs"),
            format!("/rustc/{}/library/a.rs", &COMMIT[..39]),
            format!("/rustc/{COMMIT}0/library/a.rs"),
            format!("/rustc/{COMMIT}"),
            format!("/rustc/{COMMIT}/"),
            format!("/rustc/{COMMIT}//library/a.rs"),
            format!("/rustc/{COMMIT}/library/../a.rs"),
            format!("/rustc/{COMMIT}/library/./a.rs"),
            format!("/rustc/{COMMIT}/library/"),
            format!("/rustc/{COMMIT}/library/a:b.rs"),
            format!("/rustc/{COMMIT}/library/a\nb.rs"),
            format!("/rustc/{COMMIT}\\library\\a.rs"),
            "/rust/deps/hashbrown-0.16.1/src/raw/mod.rs".to_owned(),
            crates("a-1.0.0-rc.1/src/lib.rs"),
            crates("a-1.0.0+x/src/lib.rs"),
            crates("a-1.0/src/lib.rs"),
            crates("a-1.0.0.0/src/lib.rs"),
            crates("a-1..0/src/lib.rs"),
            crates("-1.0.0/src/lib.rs"),
            crates("a-1.0.0-2.0.0/src/lib.rs"),
            crates("a-1.0.0/../../secret"),
            crates("a-1.0.0/"),
            crates("a-1.0.0"),
            "/c/registry/src/github.com-0000000000000000/a-1.0.0/src/lib.rs".to_owned(),
            "/c/registry/src/index.crates.io-1949/a-1.0.0/src/lib.rs".to_owned(),
            "/c/registry/src/index.crates.io.evil-1949cf8c6b5b557f/a-1.0.0/src/lib.rs".to_owned(),
            "/c/registry/src/own.example-1949cf8c6b5b557f/a-1.0.0/src/lib.rs".to_owned(),
            "cargo:own.example-1949cf8c6b5b557f:a-1.0.0:src/lib.rs".to_owned(),
            "cargo:index.crates.io-1949cf8c6b5b557f:a-1.0.0:../../secret".to_owned(),
            format!("git:github.com/other/rust:library/a.rs:{COMMIT}"),
            "hg:hg.mozilla.org/mozilla-central:a.cpp:997f00815e6b".to_owned(),
        ] {
            assert_eq!(special_source_path(&file), file);
            assert_eq!(disk_source_path(&file, Some(Path::new("/c"))), file);
        }
    }

    /// Paths of pieces that may be valid or invalid, so that most rejected paths are nearly valid.
    #[test]
    fn there_and_back_is_the_same() {
        let firsts = ["/c/registry/src/", "/rustc/", "cargo:", "git:github.com/rust-lang/rust:", "/x/", ""];
        let seconds =
            ["index.crates.io-1949cf8c6b5b557f", "github.com-1ecc6299db9ec823", "own-1", COMMIT, "a.rs"];
        let thirds = ["a-1.0.0", "b-2-0.1.2", "a-1.0.0-rc.1", "library", ".."];
        let fourths = ["src/lib.rs", "..", "", COMMIT, "a:b"];
        for (first, second) in firsts.iter().flat_map(|first| seconds.map(|second| (first, second))) {
            for (third, fourth) in thirds.iter().flat_map(|third| fourths.map(|fourth| (third, fourth))) {
                for divider in ["/", ":"] {
                    let file = format!("{first}{second}{divider}{third}{divider}{fourth}");
                    let special = special_source_path(&file);
                    assert_eq!(special_source_path(&special), special, "{file}");
                    let disk = disk_source_path(&special, Some(Path::new("/c")));
                    assert_eq!(special_source_path(&disk), special, "{file}");
                    assert_eq!(disk_source_path(&disk, Some(Path::new("/c"))), disk, "{file}");
                    assert!(disk == file || file.starts_with("cargo:") || file.starts_with("git:"), "{file}");
                }
            }
        }
    }
}
