//! The step `release` of the tests: packs small programs in place of nyquist, because a release build takes minutes.
//! All else is as in a release: pages, archives, Debian package, checksums and formula, and their checks.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::files::{Files, empty_folder};
use super::printed::printed;
use super::project::Project;
use super::target::Target;
use super::{Release, contents, formula, pages};
use crate::steps::succeeds_quietly;
use crate::tally::Tally;

/// The workflow that makes releases.
const WORKFLOW: &str = ".github/workflows/release.yml";

/// Packs the small programs twice, which must give the same bytes, and checks the other files of releases.
pub(crate) fn run(tally: &mut Tally) -> Result<bool> {
    let folder = crate::paths::target().join("dist-step");
    empty_folder(&folder)?;
    let project = Project::here()?;
    let architecture = std::env::consts::ARCH;
    let target = Target::named(&format!("{architecture}-unknown-linux-musl"))?;
    let program = compile(&folder, &project.version)?;
    let first = made(&folder.join("first"), &project, target, &program)?;
    let second = made(&folder.join("second"), &project, target, &program)?;
    for (name, bytes) in &first {
        ensure!(second.get(name) == Some(bytes), "{name} is not the same when it is made again");
    }
    ensure!(first.len() == second.len() && first.len() >= 3, "made: {:?}", first.keys());
    check_formula(&folder.join("first").join(formula::NAME), tally)?;
    check_workflow(tally)?;
    Ok(true)
}

/// Builds the small program without libraries, as those of releases are.
fn compile(folder: &Path, version: &str) -> Result<PathBuf> {
    let program = folder.join("small");
    let mut compiler = Command::new("gcc");
    compiler.args(["-static", "-O1", "-s", "-o"]).arg(&program).arg(format!("-DVERSION=\"{version}\""));
    printed(compiler.arg(crate::paths::root().join("xtask/src/dist/small.c")))?;
    Ok(program)
}

/// Makes a release of the small program in a folder. Returns all its files.
fn made(out: &Path, project: &Project, target: &Target, program: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let work = out.with_extension("work");
    let pages = pages::pages_of(program, &work.join("pages"))?;
    let mut programs = Files::default();
    for name in contents::PROGRAMS {
        programs.add_program(name, fs::read(program)?);
    }
    let mut release = Release::new(project.clone(), pages, out.to_owned(), work)?;
    release.pack(target, &programs, false)?;
    release.finish()?;
    let entries = fs::read_dir(out)?.map(|entry| {
        let path = entry?.path();
        let name = path.file_name().context("a file has a name")?.to_string_lossy().into_owned();
        Ok((name, fs::read(&path)?))
    });
    entries.collect()
}

/// Checks the syntax of the formula.
fn check_formula(path: &Path, tally: &mut Tally) -> Result<()> {
    if !succeeds_quietly(Command::new("ruby").arg("--version")) {
        tally.skip("release", "ruby is not installed");
        return Ok(());
    }
    for formula in [path.to_owned(), crate::paths::root().join("packaging/homebrew").join(formula::NAME)] {
        printed(Command::new("ruby").arg("-c").arg(formula))?;
    }
    Ok(())
}

/// Checks that the workflow is YAML with jobs, and that it makes releases by this program.
fn check_workflow(tally: &mut Tally) -> Result<()> {
    let path = crate::paths::root().join(WORKFLOW);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(text.contains("cargo xtask dist"), "{WORKFLOW} does not run cargo xtask dist");
    if !succeeds_quietly(Command::new("python3").args(["-c", "import yaml"])) {
        tally.skip("release", "python3 has no yaml");
        return Ok(());
    }
    let program = "import sys, yaml; print(*yaml.safe_load(open(sys.argv[1]))['jobs'])";
    let jobs = printed(Command::new("python3").args(["-c", program]).arg(&path))?;
    ensure!(jobs.split_whitespace().count() > 0, "{WORKFLOW} has no jobs");
    Ok(())
}
