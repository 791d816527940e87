//! `cargo xtask bench agent`: what the agent takes of an idle and of a busy machine, beside `perf record -a -F 19`,
//! what it sends, and the size of tables beside pprof.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::builds;
use crate::live::harness::receiver::{Receiver, Reply};
use crate::sys::signal_process;

/// How long and how often.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds of each measurement
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Measures this program and builds none
    #[arg(long, value_name = "PATH")]
    nyquist: Option<PathBuf>,
}

/// What is measured.
const RECORDERS: [&str; 5] =
    ["agent --to", "agent --push", "agent --push otlp", "agent --push otlp --off-cpu", "perf record"];

/// What a recorder took.
struct Taken {
    /// CPU time of it and its children, in ms.
    cpu: f64,
    /// The largest memory that is not mapped from a file, in MB.
    memory: f64,
    /// Bytes written.
    bytes: u64,
}

/// Measures and prints a table.
pub(crate) fn run(options: &Options) -> Result<()> {
    let nyquist = match &options.nyquist {
        Some(path) => fs::canonicalize(path).with_context(|| format!("cannot find {}", path.display()))?,
        None => builds::release()?,
    };
    let folder = crate::paths::target().join("bench-agent");
    println!(
        "\n| machine | recorder | CPU, % of one | memory, MB | written or sent, kB a minute |\n|---|---|---|---|---|"
    );
    for machine in ["idle", "busy"] {
        let _loops = (machine == "busy").then(Loops::start).transpose()?;
        for recorder in RECORDERS {
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
            let receiver = Receiver::start(|_, _| Reply::Status(200, ""))?;
            let args = args(recorder, &nyquist, &folder, &receiver.url);
            let mut taken = measure(&args, &folder, options.seconds)?;
            taken.bytes += receiver.posted().iter().map(|posted| posted.body.len() as u64).sum::<u64>();
            let seconds = options.seconds as f64;
            println!(
                "| {machine} | {recorder} | {:.2} | {:.0} | {:.0} |",
                taken.cpu / 10.0 / seconds,
                taken.memory,
                taken.bytes as f64 / 1e3 / seconds * 60.0
            );
        }
    }
    sizes(&nyquist, &folder)
}

/// Prints what a sample of a recording of the whole machine takes in each format.
fn sizes(nyquist: &Path, folder: &Path) -> Result<()> {
    let profile = folder.join("profile.json.gz");
    let _loops = Loops::start()?;
    let run = |args: &[&str]| -> Result<Vec<u8>> {
        let output = Command::new(nyquist).args(args).stderr(Stdio::null()).output()?;
        ensure!(output.status.success(), "nyquist {} fails", args.join(" "));
        Ok(output.stdout)
    };
    let path = profile.display().to_string();
    run(&["record", "-q", "-a", "--rate", "99", "--save-only", "-o", &path, "sleep", "15"])?;
    let report: Value = serde_json::from_slice(&run(&["report", "--json", &path])?)?;
    let samples = report["samples"].as_u64().unwrap_or_default().max(1);
    println!("\n| {samples} samples | bytes a sample |\n|---|---|");
    for format in ["parquet", "pb.gz", "otlp"] {
        let out = folder.join(format!("profile.{format}"));
        run(&["export", "-q", &path, "-o", &out.display().to_string()])?;
        println!("| {format} | {:.1} |", fs::metadata(out)?.len() as f64 / samples as f64);
    }
    Ok(())
}

fn args(recorder: &str, nyquist: &Path, folder: &Path, url: &str) -> Vec<OsString> {
    let agent = ["agent", "-q", "-a"];
    let text: Vec<String> = match recorder {
        "perf record" => ["record", "-q", "-a", "-F", "19", "-g", "-o"].map(str::to_owned).to_vec(),
        "agent --to" => agent.into_iter().chain(["--to"]).map(str::to_owned).collect(),
        "agent --push otlp" => {
            agent.into_iter().map(str::to_owned).chain(["--push".to_owned(), format!("otlp+{url}")]).collect()
        }
        "agent --push otlp --off-cpu" => {
            let push = ["--off-cpu".to_owned(), "--push".to_owned(), format!("otlp+{url}")];
            agent.into_iter().map(str::to_owned).chain(push).collect()
        }
        _ => agent.into_iter().map(str::to_owned).chain(["--push".to_owned(), url.to_owned()]).collect(),
    };
    let program = if recorder == "perf record" { Path::new("perf") } else { nyquist };
    let place = match recorder {
        "perf record" => Some(folder.join("perf.data")),
        "agent --to" => Some(folder.to_owned()),
        _ => None,
    };
    let text = text.into_iter().map(OsString::from);
    [program.into()].into_iter().chain(text).chain(place.map(OsString::from)).collect()
}

/// Runs a recorder for some seconds.
fn measure(args: &[OsString], folder: &Path, seconds: u64) -> Result<Taken> {
    let mut command = Command::new(&args[0]);
    command.args(&args[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("cannot start {}", args[0].display()))?;
    let mut memory = 0_u64;
    for _ in 0..seconds * 10 {
        thread::sleep(Duration::from_millis(100));
        memory = memory.max(anonymous_kb(child.id()));
    }
    let cpu = family(child.id()).into_iter().map(ticks).sum::<u64>() as f64 * 10.0;
    signal_process(child.id(), libc::SIGTERM)?;
    child.wait()?;
    Ok(Taken { cpu, memory: memory as f64 / 1e3, bytes: bytes_below(folder)? })
}

/// A process and its children.
fn family(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<u32> = lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect();
    [pid].into_iter().chain(children).collect()
}

/// The CPU time of a process in clock ticks, of which there are 100 a second.
fn ticks(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = text.rsplit_once(") ").map_or("", |(_, fields)| fields);
    fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

fn anonymous_kb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}

fn bytes_below(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        bytes +=
            if entry.file_type()?.is_dir() { bytes_below(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}

/// A shell in an endless loop for each CPU, until this is dropped.
struct Loops(Vec<Child>);

impl Loops {
    fn start() -> Result<Self> {
        let mut loops = Self(Vec::new());
        for _ in 0..thread::available_parallelism().map_or(2, Into::into) {
            let mut shell = Command::new("sh");
            shell.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
            loops.0.push(shell.spawn().context("cannot start sh")?);
        }
        Ok(loops)
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has ended needs no end.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
