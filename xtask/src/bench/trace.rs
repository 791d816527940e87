//! `cargo xtask bench trace`: the cost of reading a large Chrome trace, beside speedscope's importer.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::cost::Measuring;
use crate::builds;
use crate::workloads;

/// The threads of the trace.
const THREADS: u64 = 8;
/// The functions that its events name.
const FUNCTIONS: u64 = 3000;

/// The measurement.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The size of the trace in MB
    #[arg(long, default_value_t = 192)]
    megabytes: u64,
    /// How often each is measured, in turn
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// The folder of speedscope's npm package, as `npm install speedscope` makes it
    #[arg(long, value_name = "FOLDER")]
    speedscope: Option<PathBuf>,
    /// Measures this program and builds none
    #[arg(long, value_name = "PATH")]
    nyquist: Option<PathBuf>,
}

/// Measures and prints a table.
pub(crate) fn run(options: &Options) -> Result<()> {
    let nyquist = match &options.nyquist {
        Some(path) => fs::canonicalize(path).with_context(|| format!("cannot find {}", path.display()))?,
        None => builds::release()?,
    };
    let measured = workloads::build_all()?.join("measured");
    let folder = crate::paths::target().join("bench-trace");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let trace = folder.join("trace.json");
    make(&trace, options.megabytes * 1_000_000)?;
    let measuring = Measuring { folder: &folder, measured: &measured, limit: Duration::from_mins(10) };
    let args: Vec<OsString> =
        vec![nyquist.into(), "report".into(), "--json".into(), trace.clone().into_os_string()];
    println!("\n{} MB of a Chrome trace", options.megabytes);
    println!("\n| program | seconds, round by round | most memory, MB |\n|---|---|---|");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        let cost = measuring.cost(&args)?;
        ours.push((cost.wall, cost.anonymous_mb));
        if let Some(package) = &options.speedscope {
            theirs.push(speedscope(package, &trace)?);
        }
    }
    print_row("`nyquist report`", &ours);
    print_row("speedscope, in Chromium", &theirs);
    Ok(())
}

fn print_row(name: &str, measured: &[(f64, f64)]) {
    if measured.is_empty() {
        return;
    }
    let seconds: Vec<String> = measured.iter().map(|(seconds, _)| format!("{seconds:.2}")).collect();
    let memory = measured.iter().map(|(_, memory)| *memory).fold(0.0, f64::max);
    println!("| {name} | {} | {memory:.0} |", seconds.join(", "));
}

/// Writes a trace of about this many bytes, with the fields of Chromium's own events. Calls follow each other
/// on several threads, and one in four lies within the previous one.
fn make(path: &Path, bytes: u64) -> Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let mut state = 1_u64;
    let mut below = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    out.write_all(b"{\"traceEvents\":[")?;
    let mut written = 0;
    let mut now = [0_u64; THREADS as usize];
    for index in 0.. {
        let (tid, inner) = (index % THREADS, index / THREADS % 4 == 3);
        let duration = if inner { 2 } else { 8 + below(20) };
        let time = &mut now[tid as usize];
        let start = if inner { *time - 4 } else { *time };
        let (name, line) = (below(FUNCTIONS), below(5000));
        let event = format!(
            "{}\n{{\"name\":\"function_{name}_of_module_{}\",\"cat\":\"devtools.timeline,v8\",\"ph\":\"X\",\"ts\":{start}.{:03},\
             \"dur\":{duration}.5,\"pid\":1234,\"tid\":{tid},\"args\":{{\"data\":{{\"url\":\"https://example.com/script.js\",\
             \"lineNumber\":{line},\"columnNumber\":3}}}}}}",
            if index == 0 { "" } else { "," },
            name % 37,
            below(400),
        );
        out.write_all(event.as_bytes())?;
        if !inner {
            *time += duration + 2;
        }
        written += event.len() as u64;
        if written >= bytes {
            break;
        }
    }
    out.write_all(b"]}\n")?;
    Ok(out.flush()?)
}

/// How many seconds speedscope takes to show a file, and by how much the browser's memory grows.
fn speedscope(package: &Path, trace: &Path) -> Result<(f64, f64)> {
    let playwright = crate::paths::target().join("front-end");
    ensure!(
        playwright.join("node_modules/playwright-core").is_dir(),
        "{} has no playwright-core: `cargo xtask test viewer` installs it",
        playwright.display()
    );
    let mut node = Command::new("node");
    node.arg(crate::paths::root().join("benches/trace/speedscope.mjs")).arg(package).arg(trace);
    let output = node.env("PLAYWRIGHT_HOME", playwright).output().context("node cannot be run")?;
    ensure!(output.status.success(), "speedscope.mjs: {}", String::from_utf8_lossy(&output.stderr));
    let measured: Value = serde_json::from_slice(&output.stdout)?;
    let number = |key: &str| measured[key].as_f64().unwrap_or(f64::NAN);
    Ok((number("seconds"), number("memory_mb")))
}
