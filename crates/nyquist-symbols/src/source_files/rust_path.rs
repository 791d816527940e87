//! Parses paths of source files of Rust's library and crates, in the spelling of compilers and of the Firefox
//! Profiler.

use super::repository_path::path_in_repository;
use std::borrow::Cow;

/// The repository of the compiler and of the standard library.
pub(super) const REPOSITORY: &str = "github.com/rust-lang/rust";

/// A published source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RustPath<'a> {
    /// A file in the compiler's repository, which contains the standard library.
    Compiler {
        /// The commit, in hexadecimal.
        commit: &'a str,
        /// The path in the repository.
        path: &'a str,
    },
    /// A file of a crate.
    Crate {
        /// The folder of its registry, if that is known. The crates that the standard library is built with
        /// have none.
        registry: Option<&'a str>,
        /// `NAME-VERSION`
        package: &'a str,
        /// The path in the crate.
        path: &'a str,
    },
}

impl<'a> RustPath<'a> {
    /// Parses a path in the spelling of compilers or of the Firefox Profiler.
    pub(super) fn of(file: &'a str) -> Option<Self> {
        let known = if let Some(rest) = file.strip_prefix("/rustc/") {
            let (commit, path) = rest.split_once('/')?;
            Self::Compiler { commit, path }
        } else if let Some(rest) = file.strip_prefix("/rust/deps/") {
            let (package, path) = rest.split_once('/')?;
            Self::Crate { registry: None, package, path }
        } else if let Some(rest) = file.strip_prefix("git:") {
            let (path, commit) = rest.strip_prefix(REPOSITORY)?.strip_prefix(':')?.split_once(':')?;
            Self::Compiler { commit, path }
        } else if let Some(rest) = file.strip_prefix("cargo:") {
            let (registry, in_registry) = rest.split_once(':')?;
            let (package, path) = in_registry.split_once(':')?;
            Self::Crate { registry: Some(registry), package, path }
        } else {
            let (registry, in_registry) = file.split_once("/registry/src/")?.1.split_once('/')?;
            let (package, path) = in_registry.split_once('/')?;
            Self::Crate { registry: Some(registry), package, path }
        };
        known.is_sound().then_some(known)
    }

    fn is_sound(&self) -> bool {
        let is_path = |path: &str| !path.is_empty() && !path.starts_with('/') && !path.contains(':');
        match self {
            Self::Compiler { commit, path } => {
                is_path(path) && commit.len() >= 7 && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
            }
            Self::Crate { package, path, .. } => is_path(path) && is_package(package),
        }
    }

    /// Its short path for users: `library/core/src/lib.rs`, `tokio-1.54.1/src/lib.rs`.
    fn short(self) -> Cow<'a, str> {
        match self {
            Self::Compiler { path, .. } => path.into(),
            Self::Crate { package, path, .. } => format!("{package}/{path}").into(),
        }
    }
}

/// Whether this is the folder name of a crate: a name and a version.
fn is_package(package: &str) -> bool {
    let has_version = package
        .match_indices('-')
        .any(|(dash, _)| package[dash + 1..].starts_with(|first: char| first.is_ascii_digit()) && dash > 0);
    has_version && package.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte))
}

/// A source file's short path for users. For files of the standard library and of crates it omits the common
/// folders. For the Firefox Profiler's special paths it is the path in the repository.
pub fn short_source_path(file: &str) -> Cow<'_, str> {
    match RustPath::of(file) {
        Some(known) => known.short(),
        None => path_in_repository(file).unwrap_or(file).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "59807616e1fa2540724bfbac14d7976d7e4a3860";

    #[test]
    fn paths_are_short_where_the_rest_says_nothing() {
        let check = |file: &str, expected: &str| assert_eq!(short_source_path(file), expected, "{file}");
        check(&format!("/rustc/{COMMIT}/library/core/src/lib.rs"), "library/core/src/lib.rs");
        check(&format!("git:github.com/rust-lang/rust:library/a.rs:{COMMIT}"), "library/a.rs");
        check(
            "/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/tokio-1.54.1/src/a.rs",
            "tokio-1.54.1/src/a.rs",
        );
        check("/v/registry/src/github.com-1ecc6299db9ec823/sha-1-0.10.0/src/a.rs", "sha-1-0.10.0/src/a.rs");
        check("/rust/deps/hashbrown-0.16.1/src/raw/mod.rs", "hashbrown-0.16.1/src/raw/mod.rs");
        check("cargo:github.com-1ecc6299db9ec823:a-1.0.0-rc.1+x:src/a.rs", "a-1.0.0-rc.1+x/src/a.rs");
    }

    /// The paths in symbol files of Firefox and Chrome.
    #[test]
    fn files_of_repositories_are_short() {
        let check = |file: &str, expected: &str| assert_eq!(short_source_path(file), expected, "{file}");
        check("hg:hg.mozilla.org/mozilla-central:widget/a.mm:997f00815e6bc28806b7", "widget/a.mm");
        check(
            "git:chromium.googlesource.com/chromium/src:content/gpu/a.cc:4dac2548d4812df2",
            "content/gpu/a.cc",
        );
        check("git:github.com/other/rust:a.rs:59807616e1fa", "a.rs");
        check("git:github.com/rust-lang/rust:library/a.rs:main", "library/a.rs");
        check("s3:gecko-generated-sources:a5d3747707d6/ipc/ipdl/A.cpp:", "ipc/ipdl/A.cpp");
        check("s3:bucket:/a.cpp:", "a.cpp");
    }

    #[test]
    fn other_paths_stay_as_they_are() {
        for file in [
            "",
            "/src/a.rs",
            "/rustc/",
            "/rustc/main/library/a.rs",
            "/rustc/59807616e1fa",
            "/rust/deps/src/a.rs",
            "/x/registry/src/a.rs",
            "/x/registry/src/mirror/lib/a.rs",
            "git:github.com/rust-lang/rust::59807616e1fa",
            "git:github.com/other/rust:a.rs",
            "hg:",
            "hg:a:b",
            "s3:bucket:a5d3/",
            "s3:bucket:a5d3/:",
            "s3:bucket:a5d3/a.cpp",
            "s3:bucket:folder/a.cpp:",
            "s3:bucket:a5d3/a:b.cpp:",
            "svn:host/repository:a.c:1",
            "cargo:x:tokio-1.0.0",
            "cargo:x:-1.0.0:a.rs",
        ] {
            let short = short_source_path(file);
            assert_eq!(short, file);
        }
    }
}
