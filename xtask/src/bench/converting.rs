//! How many samples a second the recorder can process: kept recordings are converted as fast as possible.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use super::perf_data::build_programs;
use super::record::describe;
use super::recorder;
use crate::many_functions::write_functions;
use crate::steps::{cargo, succeeds};
use crate::workloads;

/// The folder to work in, and the programs.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// For the recordings (some 3 GB) and for what the compiler writes meanwhile
    #[arg(long, default_value = "target/bench-converting")]
    folder: PathBuf,
    /// How often each recording is converted
    #[arg(long, default_value_t = 3)]
    rounds: u32,
}

/// How many functions the compiler compiles, which takes some seconds.
const FUNCTIONS: u32 = 1000;

/// How many passes `fixed_work` makes, which take some seconds.
const PASSES: &str = "400000";

/// Records, converts, and prints the cost.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(succeeds(cargo(&["build", "--release", "-p", "nyquist"]))?, "nyquist cannot be built");
    let nyquist = crate::paths::target().join("release/nyquist");
    let converts = build_programs()?.join("converting");
    describe(&recorder::all(&nyquist))?;
    fs::create_dir_all(&options.folder)?;
    let source = options.folder.join("generated.rs");
    write_functions(&source, FUNCTIONS)?;
    let mut rustc = Command::new("rustc");
    rustc.args(["--crate-type=lib", "-O", "-Cdebuginfo=2", "-o"]);
    rustc.arg(options.folder.join("generated.rlib")).arg(source);
    let mut c = Command::new(workloads::build_all()?.join("fixed_work-cfi"));
    c.args([PASSES, "2"]);
    for (name, rate, program) in [("C", "10000", c), ("rustc", "5000", rustc)] {
        println!("\n{name} at {rate} Hz:");
        let recording = options.folder.join(format!("{name}.data"));
        keep(&nyquist, rate, &recording, &program)?;
        let mut convert = Command::new(&converts);
        convert.arg(&recording).arg(options.rounds.to_string());
        ensure!(succeeds(convert)?, "the recording cannot be converted");
    }
    Ok(())
}

/// Records a program, and keeps the kernel's records.
fn keep(nyquist: &Path, rate: &str, recording: &Path, program: &Command) -> Result<()> {
    let mut record = Command::new(nyquist);
    record.args(["record", "--save-only", "--quiet", "-r", rate, "--output"]);
    record.arg(recording.with_extension("json.gz")).arg("--perf-data").arg(recording).arg("--");
    record.arg(program.get_program()).args(program.get_args());
    ensure!(succeeds(record)?, "the program cannot be recorded");
    Ok(())
}
