//! The instructions that unwinding takes, which do not depend on the load of the machine. They are counted in
//! a release build, on the stacks of a compiler that is recorded here.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::instructions::collected;
use crate::steps::{cargo, succeeds};

/// The folder.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// For the recording (some 30 MB) and for what the compiler writes meanwhile
    #[arg(long, default_value = "target/bench-unwind")]
    folder: PathBuf,
}

/// The passes over all stacks in two runs. The difference contains only warm passes.
const PASSES: (u32, u32) = (2, 12);

/// How many functions the compiler compiles, which gives some hundreds of samples.
const FUNCTIONS: u32 = 150;

/// Records, counts, and prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = crate::paths::root().join("benches/unwind");
    let mut build = cargo(&["build", "--release", "--quiet", "--manifest-path"]);
    build.arg(workspace.join("Cargo.toml")).args(["--bin", "walk", "--bin", "compile"]);
    build.env_remove("CARGO_TARGET_DIR");
    ensure!(succeeds(build)?, "the benchmark cannot be built");
    std::fs::create_dir_all(&options.folder)?;
    let recording = record(&options.folder)?;
    let program = |name: &str| workspace.join("target/release").join(name);
    let walk = |passes: u32| -> Result<(u64, u64)> {
        let mut walk = Command::new(program("walk"));
        let (instructions, printed) = collected(walk.arg(passes.to_string()).arg(&recording))?;
        let frames = printed.split_whitespace().next().and_then(|frames| frames.parse().ok());
        Ok((instructions, frames.context("no frames")?))
    };
    let ((few, frames_few), (many, frames_many)) = (walk(PASSES.0)?, walk(PASSES.1)?);
    let frames = frames_many - frames_few;
    println!("{:.1} instructions a warm frame, of {frames} frames", (many - few) as f64 / frames as f64);
    let library = compiler_library()?;
    let (instructions, _) = collected(Command::new(program("compile")).arg("1").arg(&library))?;
    println!("{:.1} million instructions for the tables of {}", instructions as f64 / 1e6, library.display());
    Ok(())
}

/// Records the stacks of the running compiler, with copies as large as perf can make them.
fn record(folder: &Path) -> Result<PathBuf> {
    let (source, recording) = (folder.join("source.rs"), folder.join("compiler.data"));
    let mut text = String::new();
    for number in 0..FUNCTIONS {
        writeln!(
            text,
            "pub fn f{number}(v: &[u64]) -> Vec<String> {{ v.iter().map(|x| x ^ {number}).map(|x| x.to_string()).collect() }}"
        )?;
    }
    std::fs::write(&source, text)?;
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-e", "cpu-clock:u", "-F", "199", "--call-graph", "dwarf,65528", "-o"]);
    perf.arg(&recording).args(["--", "rustc", "-O", "--crate-type", "lib", "--out-dir"]);
    perf.arg(folder).arg(source);
    ensure!(succeeds(perf)?, "perf cannot record here");
    Ok(recording)
}

/// The compiler's largest library.
fn compiler_library() -> Result<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output()?;
    let libraries = Path::new(String::from_utf8(output.stdout)?.trim()).join("lib");
    let is_driver = |path: &PathBuf| path.to_string_lossy().contains("librustc_driver");
    let mut files = std::fs::read_dir(&libraries)?.filter_map(|entry| Some(entry.ok()?.path()));
    files.find(is_driver).with_context(|| format!("no librustc_driver in {}", libraries.display()))
}
