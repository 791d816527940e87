//! The Debian package. It holds the static programs, so that it depends on nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::archive::gz;
use super::check;
use super::files::{Files, empty_folder};
use super::printed::printed;
use super::project::Project;
use super::target::Target;

/// The maintainer of the package.
const MAINTAINER: &str = "The nyquist developers";

/// The folders of what an archive has in `man` and `completions`, by how a file's name begins and ends there, and
/// the name that the system looks for: `*` is the part between.
const COMPLETIONS: [(&str, &str, &str); 3] = [
    ("completions/", ".bash", "usr/share/bash-completion/completions/*"),
    ("completions/_", "", "usr/share/zsh/vendor-completions/_*"),
    ("completions/", ".fish", "usr/share/fish/vendor_completions.d/*.fish"),
];

/// What the package is made of.
pub(super) struct Parts<'a> {
    /// The two programs.
    pub(super) programs: &'a Files,
    /// Man pages and completions, as archives have them.
    pub(super) pages: &'a Files,
    /// README, changelog and licences.
    pub(super) documents: &'a Files,
}

/// The package's file name.
pub(super) fn name(version: &str, architecture: &str) -> String {
    format!("nyquist_{version}_{architecture}.deb")
}

/// The files that the package installs, by their paths without the first slash.
pub(super) fn installed(parts: &Parts<'_>) -> Result<Files> {
    let mut files = Files::default();
    files.add_below("usr/bin", parts.programs);
    for (path, file) in parts.pages.iter() {
        if let Some(page) = path.strip_prefix("man/man1/") {
            files.add(format!("usr/share/man/man1/{page}.gz"), gz(&file.bytes)?);
        } else if let Some(place) = place_of_completions(path) {
            files.add(place, file.bytes.clone());
        }
    }
    let document = |name: &str| {
        let file = parts.documents.iter().find(|(path, _)| *path == name);
        file.map(|(_, file)| file.bytes.as_slice()).with_context(|| format!("there is no {name}"))
    };
    let folder = "usr/share/doc/nyquist";
    files.add(format!("{folder}/README.md"), document("README.md")?);
    files.add(format!("{folder}/changelog.gz"), gz(document("CHANGELOG.md")?)?);
    files.add(format!("{folder}/copyright"), copyright(document("LICENSE-MIT")?));
    Ok(files)
}

/// Where a completion script is installed. Debian has no place for those of PowerShell.
fn place_of_completions(path: &str) -> Option<String> {
    COMPLETIONS.iter().find_map(|(begin, end, place)| {
        let command = path.strip_prefix(begin)?.strip_suffix(end)?;
        let is_whole = !command.contains('.') && !command.starts_with('_');
        is_whole.then(|| place.replace('*', command))
    })
}

/// The text of both licences, one of them by the file that every Debian has.
fn copyright(mit: &[u8]) -> Vec<u8> {
    let begin = "nyquist is licensed under either of the Apache License 2.0 or the MIT license, at your option.\n\n\
                 The Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0. The MIT license:\n\n";
    [begin.as_bytes(), mit].concat()
}

/// The control file of the package.
pub(super) fn control(project: &Project, architecture: &str, bytes: u64) -> String {
    let Project { version, repository, description, .. } = project;
    let kilobytes = bytes.div_ceil(1024);
    format!(
        "Package: nyquist\n\
         Version: {version}\n\
         Architecture: {architecture}\n\
         Maintainer: {MAINTAINER}\n\
         Installed-Size: {kilobytes}\n\
         Section: devel\n\
         Priority: optional\n\
         Homepage: {repository}\n\
         Description: {description}\n \
         nyquist shows where a program's time goes, every frame named, in the Firefox\n \
         Profiler, in a viewer of its own or in the terminal. It records commands and\n \
         running processes, and reads the recordings of perf and of many others.\n"
    )
}

/// Makes the package in a folder, checks it, and returns its path and a sentence about what was checked.
pub(super) fn make(
    target: &Target,
    architecture: &str,
    project: &Project,
    parts: &Parts<'_>,
    out: &Path,
    work: &Path,
) -> Result<(PathBuf, String)> {
    let folder = work.join("deb");
    empty_folder(&folder)?;
    let files = installed(parts)?;
    files.write_below(&folder)?;
    let mut about = Files::default();
    about.add("DEBIAN/control", control(project, architecture, files.bytes()));
    about.write_below(&folder)?;
    let package = out.join(name(&project.version, architecture));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zxz", "--threads-max=1", "--build"]).arg(&folder).arg(&package);
    printed(build.env("SOURCE_DATE_EPOCH", project.time.to_string()))?;
    let checked = check_package(&package, target, &project.version, &files, work)
        .with_context(|| format!("{} is wrong", package.display()))?;
    fs::remove_dir_all(&folder)?;
    Ok((package, checked))
}

/// Lists and unpacks the package by dpkg's own program, and runs what it installs.
fn check_package(
    package: &Path,
    target: &Target,
    version: &str,
    files: &Files,
    work: &Path,
) -> Result<String> {
    let list = printed(Command::new("dpkg-deb").arg("--contents").arg(package))?;
    for line in list.lines() {
        ensure!(line.contains(" root/root "), "a file belongs to somebody: {line}");
    }
    for path in files.paths() {
        ensure!(list.lines().any(|line| line.ends_with(&format!(" ./{path}"))), "it does not install {path}");
    }
    let depends = printed(Command::new("dpkg-deb").arg("--field").arg(package).arg("Depends"))?;
    ensure!(depends.trim().is_empty(), "it depends on {}", depends.trim());
    let folder = work.join("unpacked-deb");
    empty_folder(&folder)?;
    printed(Command::new("dpkg-deb").arg("--extract").arg(package).arg(&folder))?;
    check::programs(&folder.join("usr/bin"), target, version, work, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project() -> Project {
        Project {
            version: "1.2.3".to_owned(),
            repository: "https://example.org/nyquist".to_owned(),
            description: "A profiler".to_owned(),
            time: 1_700_000_000,
        }
    }

    #[test]
    fn the_control_file_has_a_field_on_each_line() {
        let control = control(&project(), "arm64", 2049);
        for field in ["Package: nyquist", "Version: 1.2.3", "Architecture: arm64", "Installed-Size: 3"] {
            assert!(control.lines().any(|line| line == field), "{field}: {control}");
        }
        let is_field = |line: &str| line.split_once(": ").is_some_and(|(name, _)| !name.contains(' '));
        assert!(control.lines().all(|line| line.starts_with(' ') || is_field(line)), "{control}");
        assert!(control.ends_with('\n') && !control.contains("Depends"), "{control}");
        assert!(control.lines().all(|line| line.len() <= 80), "{control}");
    }

    #[test]
    fn files_are_where_debian_looks_for_them() {
        let place = |path| place_of_completions(path).unwrap_or_default();
        assert_eq!(place("completions/nyquist.bash"), "usr/share/bash-completion/completions/nyquist");
        assert_eq!(
            place("completions/cargo-nyquist.fish"),
            "usr/share/fish/vendor_completions.d/cargo-nyquist.fish"
        );
        assert_eq!(place("completions/_nyquist"), "usr/share/zsh/vendor-completions/_nyquist");
        assert_eq!(place("completions/_nyquist.ps1"), "");
    }

    #[test]
    fn the_package_has_pages_and_licences() {
        let (mut programs, mut pages, mut documents) = (Files::default(), Files::default(), Files::default());
        programs.add_program("nyquist", b"program".to_vec());
        pages.add("man/man1/nyquist.1", "page");
        pages.add("completions/_nyquist.ps1", "script");
        for name in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            documents.add(name, name);
        }
        let parts = Parts { programs: &programs, pages: &pages, documents: &documents };
        let files = installed(&parts).unwrap();
        let requested = [
            "usr/bin/nyquist",
            "usr/share/doc/nyquist/README.md",
            "usr/share/doc/nyquist/changelog.gz",
            "usr/share/doc/nyquist/copyright",
            "usr/share/man/man1/nyquist.1.gz",
        ];
        assert_eq!(files.paths().collect::<Vec<_>>(), requested);
        assert_eq!(files, installed(&parts).unwrap());
        assert_eq!(name("1.2.3", "amd64"), "nyquist_1.2.3_amd64.deb");
    }
}
