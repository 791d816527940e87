//! `cargo xtask bench counters`: the CPU time of a recorder with and without counters, beside busy loops.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::cost::Measuring;
use crate::builds;
use crate::workloads;

/// How many processes are recorded at once.
const PROCESSES: [usize; 2] = [1, 200];

/// How long and how often.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How often each is measured, in turn
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Seconds of each recording
    #[arg(long, default_value_t = 10)]
    seconds: u32,
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
    let folder = crate::paths::target().join("bench-counters");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let limit = Duration::from_secs(u64::from(options.seconds) + 120);
    let measuring = Measuring { folder: &folder, measured: &measured, limit };
    println!(
        "\n| processes | counters | the recorder's CPU time, ms a second, round by round |\n|---|---|---|"
    );
    for count in PROCESSES {
        let mut rows = [("with", Vec::new()), ("without", Vec::new())];
        for _ in 0..options.rounds {
            for (name, costs) in &mut rows {
                let loops = Loops::start(count)?;
                let mut args: Vec<OsString> = vec![nyquist.clone().into()];
                args.extend(["record", "-q", "-s", "-d"].map(OsString::from));
                args.extend([options.seconds.to_string().into(), "-o".into()]);
                args.extend([folder.join("profile.json").into(), "-p".into(), loops.pids().into()]);
                args.extend((*name == "without").then(|| "--no-counters".into()));
                costs.push(measuring.cost(&args)?.cpu * 1e3 / f64::from(options.seconds));
            }
        }
        for (name, costs) in rows {
            let costs: Vec<String> = costs.iter().map(|cost| format!("{cost:.1}")).collect();
            println!("| {count} | {name} | {} |", costs.join(", "));
        }
    }
    Ok(())
}

/// Shells that run an empty loop until this is dropped.
struct Loops(Vec<Child>);

impl Loops {
    fn start(count: usize) -> Result<Self> {
        let mut loops = Self(Vec::new());
        for _ in 0..count {
            let mut shell = Command::new("sh");
            shell.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
            loops.0.push(shell.spawn().context("cannot start sh")?);
        }
        Ok(loops)
    }

    /// Their process ids, in the form that `-p` takes.
    fn pids(&self) -> String {
        let pids: Vec<String> = self.0.iter().map(|child| child.id().to_string()).collect();
        pids.join(",")
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            drop(child.kill());
            drop(child.wait());
        }
    }
}
