//! `cargo xtask bench spool`: what a spool costs the recorder, its bytes for each sample, and the time to recover.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::cost::{Cost, Measuring};
use super::spread::cell;
use crate::builds;
use crate::sys;
use crate::workloads;

/// How long and how often.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How often each is measured, in turn
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Seconds of each recording
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// Measures this program and builds none
    #[arg(long, value_name = "PATH")]
    nyquist: Option<PathBuf>,
}

/// What is recorded: its name, and the command.
const SUBJECTS: [(&str, &str); 3] = [
    ("two busy threads", "exec FOLDER/endless 2"),
    ("200 threads", "exec FOLDER/many_threads 1000000 200"),
    ("processes that come and go", "while :; do /bin/true; done"),
];

/// Measures and prints the tables.
pub(crate) fn run(options: &Options) -> Result<()> {
    let nyquist = match &options.nyquist {
        Some(path) => fs::canonicalize(path).with_context(|| format!("cannot find {}", path.display()))?,
        None => builds::release()?,
    };
    let workloads = workloads::build_all()?;
    let folder = crate::paths::target().join("bench-spool");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let limit = Duration::from_secs(u64::from(options.seconds) + 120);
    let measuring = Measuring { folder: &folder, measured: &workloads.join("measured"), limit };
    println!(
        "\n| recorded | spool | the recorder's CPU time, ms a second | its private memory, MB |\n|---|---|---|---|"
    );
    for (name, command) in SUBJECTS {
        let command = command.replace("FOLDER", &workloads.display().to_string());
        let mut rows = [("with", Vec::new()), ("without", Vec::new())];
        for _ in 0..options.rounds {
            for (spool, costs) in &mut rows {
                costs.push(cost(&measuring, &nyquist, &command, *spool == "with", options.seconds)?);
            }
        }
        for (spool, costs) in rows {
            let seconds = f64::from(options.seconds);
            let cpu = cell(1, costs.iter().map(|cost| cost.cpu * 1e3 / seconds));
            let memory = cell(1, costs.iter().map(|cost| cost.anonymous_mb));
            println!("| {name} | {spool} | {cpu} | {memory} |");
        }
    }
    println!(
        "\n| recorded | samples | bytes of the spool for each | time to recover, s |\n|---|---|---|---|"
    );
    for (name, command) in SUBJECTS {
        let command = command.replace("FOLDER", &workloads.display().to_string());
        let Recovery { samples, bytes, seconds } = recovery(&folder, &nyquist, &command, options.seconds)?;
        println!("| {name} | {samples} | {:.1} | {seconds:.2} |", bytes as f64 / samples.max(1) as f64);
    }
    Ok(())
}

/// A shell with a program that runs until this is dropped.
struct Running(Child);

impl Running {
    fn start(command: &str) -> Result<Self> {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null());
        Ok(Self(shell.spawn().context("cannot start sh")?))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn args(folder: &Path, nyquist: &Path, pid: u32, more: &[&str]) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec![nyquist.into()];
    args.extend(["record", "-q", "-s", "-o"].map(OsString::from));
    args.extend([folder.join("profile.json").into(), "-p".into(), pid.to_string().into()]);
    args.extend(more.iter().map(OsString::from));
    args
}

fn cost(
    measuring: &Measuring<'_>,
    nyquist: &Path,
    command: &str,
    has_spool: bool,
    seconds: u32,
) -> Result<Cost> {
    let running = Running::start(command)?;
    let spool = format!("--spool={}", private(&measuring.folder.join("spools"))?.display());
    let option = if has_spool { spool.as_str() } else { "--no-spool" };
    measuring.cost(&args(measuring.folder, nyquist, running.0.id(), &["-d", &seconds.to_string(), option]))
}

/// A folder that only this user may use.
fn private(folder: &Path) -> Result<&Path> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    Ok(folder)
}

/// What was recovered, and how long it took.
struct Recovery {
    samples: u64,
    bytes: u64,
    seconds: f64,
}

/// Kills a recorder, and recovers its recording.
fn recovery(folder: &Path, nyquist: &Path, command: &str, seconds: u32) -> Result<Recovery> {
    let running = Running::start(command)?;
    let spools = private(&folder.join("killed"))?.to_owned();
    let spool = format!("--spool={}", spools.display());
    let args = args(folder, nyquist, running.0.id(), &[&spool]);
    let mut recorder = Command::new(&args[0]).args(&args[1..]).stdin(Stdio::null()).spawn()?;
    sleep(Duration::from_secs(u64::from(seconds)));
    sys::signal_process(recorder.id(), libc::SIGKILL)?;
    recorder.wait()?;
    let recover = |more: &[&str]| -> Result<Vec<u8>> {
        let output = Command::new(nyquist).args(["recover", "-q", &spool]).args(more).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(output.stdout)
    };
    let list: Value = serde_json::from_slice(&recover(&["--json"])?)?;
    let began = Instant::now();
    recover(&["-o", &folder.join("recovered.json.gz").display().to_string()])?;
    let took = began.elapsed().as_secs_f64();
    recover(&["--discard"])?;
    let number = |key: &str| list["recordings"][0][key].as_u64().unwrap_or_default();
    Ok(Recovery { samples: number("samples"), bytes: number("bytes"), seconds: took })
}
