//! Determines the intended target of a workspace, if the command line does not name one.

use super::build::Build;
use super::calls::{CARGO_FAILED, program};
use super::choose::{self, Candidate};
use crate::args::cargo::CargoArgs;
use crate::failure::Failure;
use crate::identity;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A kind of target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TargetKind {
    /// A program.
    Bin,
    /// An example.
    Example,
    /// A file of benchmarks.
    Bench,
    /// A file of tests.
    Test,
}

/// The selection: cargo's arguments for it, and the name if it is known.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Selection {
    /// The words for cargo.
    pub(super) argv: Vec<OsString>,
    name: Option<String>,
}

/// The path of a program, and its working folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProgramPath {
    /// The program. In the names of benchmarks and tests, a `*` stands for parts that are known only after a
    /// build.
    pub(super) path: PathBuf,
    /// Its working folder.
    pub(super) folder: PathBuf,
}

/// The workspace's packages (`cargo metadata`, format version 1).
#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    packages: Vec<Package>,
    workspace_default_members: Vec<String>,
    target_directory: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Package {
    id: String,
    name: String,
    manifest_path: PathBuf,
    default_run: Option<String>,
    targets: Vec<Target>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

impl TargetKind {
    /// The name in cargo's options and messages.
    fn name(self) -> &'static str {
        match self {
            Self::Bin => "bin",
            Self::Example => "example",
            Self::Bench => "bench",
            Self::Test => "test",
        }
    }

    /// The name for users.
    fn title(self) -> &'static str {
        match self {
            Self::Bin => "program",
            Self::Example => "example",
            Self::Bench => "file of benchmark",
            Self::Test => "test",
        }
    }

    fn is_of(self, target: &Target) -> bool {
        target.kind.iter().any(|kind| kind == self.name())
    }
}

impl Selection {
    /// A target that the user has named.
    pub(super) fn named(kind: TargetKind, name: &str) -> Self {
        Self { argv: vec![format!("--{}", kind.name()).into(), name.into()], name: Some(name.to_owned()) }
    }

    /// The selection of these arguments of cargo.
    pub(super) fn of_words(argv: &[&str]) -> Self {
        Self { argv: argv.iter().map(OsString::from).collect(), name: None }
    }
}

impl Metadata {
    /// Gets the metadata from cargo.
    pub(super) fn read(cargo: &CargoArgs) -> Result<Self, Failure> {
        let mut command = identity::command(program());
        command.args(["metadata", "--no-deps", "--format-version", "1"]).args(cargo.general());
        let output = command.output().map_err(|error| Failure::because("cargo cannot be run", &error))?;
        if !output.status.success() {
            return Err(cargos_failure(&output.stderr));
        }
        serde_json::from_slice(&output.stdout)
            .map_err(|error| Failure::because("the answer of `cargo metadata` cannot be read", &error))
    }

    /// The only target of a kind, or the one that the user chooses. If there is none, cargo will report that.
    pub(super) fn select(&self, kind: TargetKind, cargo: &CargoArgs) -> Result<Selection, Failure> {
        let named = cargo.packages();
        let packages: Vec<&Package> = self.packages(&named).collect();
        let default: Vec<&String> =
            packages.iter().filter_map(|package| package.default_run.as_ref()).collect();
        if let (TargetKind::Bin, [name]) = (kind, default.as_slice()) {
            return Ok(Selection { argv: Vec::new(), name: Some((*name).clone()) });
        }
        let targets =
            packages.iter().flat_map(|package| package.targets.iter().map(move |target| (package, target)));
        let targets: Vec<_> = targets.filter(|(_, target)| kind.is_of(target)).collect();
        let of_several = targets.iter().map(|(package, _)| &package.name).collect::<BTreeSet<_>>().len() > 1;
        let candidate = |&(package, target): &(&&Package, &Target)| {
            let mut selection = Selection::named(kind, &target.name);
            let in_package = if of_several { format!(" (in {})", package.name) } else { String::new() };
            if of_several {
                selection.argv.splice(0..0, ["--package".into(), (&package.name).into()]);
            }
            let argv = selection.argv.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
            let subcommand = if kind == TargetKind::Bench { "bench" } else { "run" };
            Candidate {
                label: format!("{}{in_package}", target.name),
                argv: format!("cargo nyquist {subcommand} {argv}"),
                value: selection,
            }
        };
        match (kind, targets.is_empty()) {
            (TargetKind::Example, true) => Ok(Selection::of_words(&["--example"])),
            (_, true) => none(kind, &packages),
            (_, false) => choose::one(targets.iter().map(candidate).collect(), kind.title(), ""),
        }
    }

    /// The packages that are named, or else the ones that cargo uses by default.
    fn packages<'a>(&'a self, named: &'a [String]) -> impl Iterator<Item = &'a Package> {
        self.packages.iter().filter(move |package| {
            if named.is_empty() {
                self.workspace_default_members.contains(&package.id)
            } else {
                named.contains(&package.name)
            }
        })
    }

    /// The path of the selected program once it is built, and the folder in which cargo will run it.
    pub(super) fn place(
        &self,
        kind: TargetKind,
        selection: &Selection,
        build: &Build,
        here: &Path,
    ) -> ProgramPath {
        let (name, of_kind) = match &selection.name {
            Some(name) => (name.as_str(), kind),
            None => ("", kind),
        };
        let target_folder = build.target_folder().unwrap_or(&self.target_directory);
        let folder = target_folder.join(build.folder());
        let path = match of_kind {
            TargetKind::Bin => folder.join(name),
            TargetKind::Example => folder.join("examples").join(name),
            TargetKind::Bench | TargetKind::Test => {
                folder.join("deps").join(format!("{}-*", name.replace('-', "_")))
            }
        };
        let package = self.packages.iter().find(|package| {
            package.targets.iter().any(|target| target.name == name && of_kind.is_of(target))
        });
        let package = package.and_then(|package| package.manifest_path.parent());
        match kind {
            TargetKind::Bin | TargetKind::Example => {
                let path = path.strip_prefix(here).map(Path::to_owned).unwrap_or(path);
                ProgramPath { path, folder: here.to_owned() }
            }
            TargetKind::Bench | TargetKind::Test => {
                ProgramPath { path, folder: package.unwrap_or(here).to_owned() }
            }
        }
    }
}

/// The selection if there is no target of the kind. For a library alone, the message names targets that
/// can be recorded instead.
fn none(kind: TargetKind, packages: &[&Package]) -> Result<Selection, Failure> {
    let [package] = packages else { return Ok(Selection::default()) };
    let has = |kind: TargetKind| package.targets.iter().any(|target| kind.is_of(target));
    if kind != TargetKind::Bin {
        return Ok(Selection::default());
    }
    let others = [
        (TargetKind::Example, "cargo nyquist example [NAME] records an example"),
        (TargetKind::Bench, "cargo nyquist bench [FILTER] records benchmarks"),
    ];
    let failure = Failure::new(format!("the package {} has no program", package.name));
    let failure =
        others.iter().filter(|(kind, _)| has(*kind)).fold(failure, |failure, (_, hint)| failure.hint(*hint));
    Err(failure.hint("cargo nyquist test NAME records a test of the library").status(CARGO_FAILED))
}

/// Cargo's error as a failure of this program.
fn cargos_failure(stderr: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(stderr);
    let text = text.trim();
    Failure::new(text.strip_prefix("error: ").unwrap_or(text)).status(CARGO_FAILED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::cargo::{CargoCommand, parse};

    const WORKSPACE: &str = r#"{"target_directory":"/w/target","workspace_default_members":["1","2"],"packages":[
        {"id":"1","name":"one","manifest_path":"/w/one/Cargo.toml","default_run":null,"targets":[
            {"name":"one","kind":["lib"]},{"name":"a","kind":["bin"]},{"name":"shared","kind":["bench"]}]},
        {"id":"2","name":"two","manifest_path":"/w/two/Cargo.toml","default_run":null,"targets":[
            {"name":"b","kind":["bin"]},{"name":"c","kind":["bin"]}]},
        {"id":"3","name":"three","manifest_path":"/w/three/Cargo.toml","default_run":"e","targets":[
            {"name":"d","kind":["bin"]},{"name":"e","kind":["bin"]}]},
        {"id":"4","name":"library","manifest_path":"/w/library/Cargo.toml","default_run":null,"targets":[
            {"name":"library","kind":["lib"]},{"name":"speed","kind":["bench"]}]}]}"#;

    fn select(line: &str, kind: TargetKind) -> Result<Vec<OsString>, Failure> {
        let command = parse(line.split_whitespace().map(OsString::from).collect()).unwrap().command;
        let CargoCommand::Run(args) = command else { panic!("{command:?}") };
        let metadata: Metadata = serde_json::from_str(WORKSPACE).unwrap();
        metadata.select(kind, &args.common.cargo).map(|selection| selection.argv)
    }

    #[test]
    fn the_only_target_is_taken() {
        assert_eq!(select("-p one", TargetKind::Bin).unwrap(), ["--bin", "a"]);
        assert_eq!(select("", TargetKind::Bench).unwrap(), ["--bench", "shared"]);
    }

    #[test]
    fn a_default_is_left_to_cargo() {
        assert!(select("-p three", TargetKind::Bin).unwrap().is_empty());
    }

    #[test]
    fn of_a_library_it_is_said_what_can_be_recorded() {
        let failure = select("-p library", TargetKind::Bin).unwrap_err();
        assert_eq!((&*failure.message, failure.status), ("the package library has no program", 101));
        assert_eq!(
            failure.hints,
            [
                "cargo nyquist bench [FILTER] records benchmarks",
                "cargo nyquist test NAME records a test of the library"
            ]
        );
    }

    #[test]
    fn cargo_says_itself_that_there_is_none() {
        assert_eq!(select("", TargetKind::Example).unwrap(), ["--example"]);
        assert!(select("-p unknown", TargetKind::Bin).unwrap().is_empty());
    }

    #[test]
    fn several_are_an_error_with_the_list() {
        let failure = select("", TargetKind::Bin).unwrap_err();
        assert_eq!(
            failure.message,
            "there are 3 programs to choose from:\n  a (in one)\n  b (in two)\n  c (in two)"
        );
        assert_eq!(failure.hints, ["name one, such as: cargo nyquist run --package one --bin a"]);
        assert_eq!(
            select("-p two", TargetKind::Bin).unwrap_err().hints,
            ["name one, such as: cargo nyquist run --bin b"]
        );
    }

    #[test]
    fn cargos_message_is_its_own() {
        let failure = cargos_failure(b"error: could not find `Cargo.toml` in `/`\n");
        assert_eq!((failure.message.as_str(), failure.status), ("could not find `Cargo.toml` in `/`", 101));
    }
}
