//! `cargo xtask dist`: archives of the two programs for each target, Debian packages, checksums and the formula
//! for Homebrew. Each archive is unpacked and used before it counts as made.

mod archive;
mod build;
mod check;
mod checksums;
mod contents;
mod deb;
mod files;
mod formula;
mod linkage;
#[cfg(test)]
mod metadata;
mod pages;
mod printed;
mod project;
mod run;
mod step;
mod target;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result};

use checksums::Checksums;
use files::Files;
use project::Project;
pub(crate) use step::run as check_packaging;
use target::{System, TARGETS, Target};

use crate::packages;

/// The options of `cargo xtask dist`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only this target; can be given several times. Without it, all
    #[arg(long = "target", value_name = "T")]
    targets: Vec<String>,
    /// The folder for what is made [default: target/dist]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Man pages and completions are those of this program, and none is built for this machine
    #[arg(long, value_name = "PATH")]
    nyquist: Option<PathBuf>,
}

/// What all targets of a release share.
struct Release {
    project: Project,
    /// Man pages and completions.
    pages: Files,
    /// README, changelog and licences.
    documents: Files,
    /// Where the results go.
    out: PathBuf,
    /// Where everything else goes.
    work: PathBuf,
    sums: Checksums,
}

/// Makes a release. Returns whether all that was requested was made.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let requested = requested(&options.targets)?;
    let out = options.out.clone().unwrap_or_else(|| crate::paths::target().join("dist"));
    let work = crate::paths::target().join("dist-work");
    fs::create_dir_all(&work)?;
    let nyquist = options.nyquist.clone().map_or_else(pages::build, Ok)?;
    let pages = pages::pages_of(&nyquist, &work.join("pages"))?;
    let mut release = Release::new(Project::here()?, pages, out, work)?;
    let mut all_made = true;
    for target in requested {
        let began = Instant::now();
        println!("\n== {} ==", target.triple);
        let made = build::build(target, &release.work)
            .and_then(|folder| contents::programs(target, &folder))
            .and_then(|programs| release.pack(target, &programs, true));
        match made {
            Ok(()) => println!("made in {:.0} s", began.elapsed().as_secs_f64()),
            Err(error) => {
                all_made = false;
                println!("error: no archive for {}: {error:#}", target.triple);
            }
        }
    }
    if release.sums.is_empty() {
        return Ok(false);
    }
    release.finish()?;
    println!("\nThe release is in {}.", release.out.display());
    Ok(all_made)
}

/// The named targets, or all.
fn requested(names: &[String]) -> Result<Vec<&'static Target>> {
    if names.is_empty() {
        return Ok(TARGETS.iter().collect());
    }
    names.iter().map(|name| Target::named(name)).collect()
}

impl Release {
    fn new(project: Project, pages: Files, out: PathBuf, work: PathBuf) -> Result<Self> {
        fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
        fs::create_dir_all(&work).with_context(|| format!("cannot make {}", work.display()))?;
        let documents = contents::documents()?;
        Ok(Self { project, pages, documents, out, work, sums: Checksums::default() })
    }

    /// Packs a target's programs and checks the result. `records` says that they can record.
    fn pack(&mut self, target: &Target, programs: &Files, records: bool) -> Result<()> {
        let version = &self.project.version;
        let files = contents::archive(target, version, &[programs, &self.pages, &self.documents]);
        let pack = if target.system == System::Windows { archive::zip } else { archive::tar_gz };
        let bytes = pack(&files, self.project.time)?;
        let path = self.out.join(target.archive(version));
        fs::write(&path, &bytes).with_context(|| format!("cannot write {}", path.display()))?;
        let checked = check::archive(&path, target, version, &self.work, records)
            .with_context(|| format!("{} is wrong", path.display()))?;
        println!("{}: {} bytes; {checked}", target.archive(version), bytes.len());
        self.sums.add(&target.archive(version), &bytes);
        if let Some(architecture) = target.debian {
            self.pack_for_debian(target, architecture, programs)?;
        }
        Ok(())
    }

    fn pack_for_debian(&mut self, target: &Target, architecture: &str, programs: &Files) -> Result<()> {
        let name = deb::name(&self.project.version, architecture);
        if !packages::can_make_debian_packages() {
            println!("no {name}: dpkg-deb is not installed");
            return Ok(());
        }
        let parts = deb::Parts { programs, pages: &self.pages, documents: &self.documents };
        let (path, checked) = deb::make(target, architecture, &self.project, &parts, &self.out, &self.work)?;
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        println!("{name}: {} bytes; {checked}", bytes.len());
        self.sums.add(&name, &bytes);
        Ok(())
    }

    /// Writes the checksums of what was made, and the formula.
    fn finish(&self) -> Result<()> {
        write(&self.out, "SHA256SUMS", &self.sums.text())?;
        check::checksums(&self.out)?;
        write(&self.out, formula::NAME, &formula::make(&self.project, &self.sums)?)
    }
}

fn write(folder: &Path, name: &str, text: &str) -> Result<()> {
    let path = folder.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}
