//! The cost of an event to a program while the event is recorded with its stack: a tracepoint, a probe of a
//! function, page faults. perf is measured too.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::cost::Measuring;
use super::record::describe;
use super::recorder;
use super::spread::cell;
use crate::steps::{cargo, succeeds};
use crate::workloads;

/// The called function, and perf's name for the probe in it.
const FUNCTION: &str = "called_by_name";
const PROBE: &str = "probe_occurs:called_by_name";

/// The folder, and the amount of work.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The folder for recordings
    #[arg(long, default_value = "target/bench-events")]
    folder: PathBuf,
    /// Measures this program and does not build one
    #[arg(long, value_name = "PATH")]
    nyquist: Option<PathBuf>,
    /// How many events of each kind there are
    #[arg(long, default_value_t = 300_000)]
    events: u64,
    /// How often each is measured, in turn
    #[arg(long, default_value_t = 3)]
    rounds: u32,
}

/// A kind of event: its names in the recorders, and the work of the program.
struct BenchedEvent {
    name: &'static str,
    nyquist: String,
    perf: &'static str,
    /// The program's arguments: calls in each of three places, writes, pages.
    arguments: [u64; 3],
}

/// Measures as root, and prints a table.
pub(crate) fn run(options: &Options) -> Result<()> {
    let nyquist = match &options.nyquist {
        Some(path) => path.canonicalize().context("no such program")?,
        None => {
            ensure!(succeeds(cargo(&["build", "--release", "-p", "nyquist"]))?, "nyquist cannot be built");
            crate::paths::target().join("release/nyquist")
        }
    };
    let workloads = workloads::build_all()?;
    let program = workloads.join("occurs");
    fs::create_dir_all(&options.folder)?;
    let folder = options.folder.canonicalize()?;
    describe(&recorder::all(&nyquist))?;
    let measured = workloads.join("measured");
    let measuring = Measuring { folder: &folder, measured: &measured, limit: Duration::from_mins(5) };
    let _probe = Probe::add(&program)?;
    println!("\n## Events: {} of each kind\n", options.events);
    println!("| event | recorder | CPU time of both, µs an event |\n|---|---|---|");
    for kind in kinds(&program, options.events) {
        let ways = ways(&nyquist, &folder, &kind);
        let mut rows: Vec<Vec<f64>> = ways.iter().map(|_| Vec::new()).collect();
        for round in 1..=options.rounds {
            for ((name, args), row) in ways.iter().zip(&mut rows) {
                eprintln!("{}, round {round}: {name}", kind.name);
                let mut args = args.clone();
                args.push(program.clone().into());
                args.extend(kind.arguments.map(|argument| argument.to_string().into()));
                row.push(measuring.cost(&args)?.cpu * 1e6 / options.events as f64);
            }
        }
        for ((name, _), row) in ways.iter().zip(rows) {
            println!("| {} | {name} | {} |", kind.name, cell(2, row.into_iter()));
        }
    }
    Ok(())
}

fn kinds(program: &Path, events: u64) -> [BenchedEvent; 3] {
    [
        BenchedEvent {
            name: "tracepoint (`syscalls:sys_enter_write`)",
            nyquist: "syscalls:sys_enter_write".to_owned(),
            perf: "syscalls:sys_enter_write",
            arguments: [0, events, 1],
        },
        BenchedEvent {
            name: "call of a function (uprobe)",
            nyquist: format!("{}:{FUNCTION}", program.display()),
            perf: PROBE,
            arguments: [events / 3, 0, 1],
        },
        BenchedEvent {
            name: "page fault",
            nyquist: "page-faults/period=1/".to_owned(),
            perf: "page-faults/period=1/",
            arguments: [0, 0, events],
        },
    ]
}

/// The recorders with their arguments, which stand before those of the program.
fn ways(nyquist: &Path, folder: &Path, kind: &BenchedEvent) -> [(&'static str, Vec<OsString>); 5] {
    let output = |name: &str| folder.join(name).into_os_string();
    let record = |options: &[&str]| {
        let mut args = vec![nyquist.as_os_str().to_owned(), "record".into(), "-s".into(), "-q".into()];
        args.extend(options.iter().map(OsString::from));
        args.extend(["-o".into(), output("events.json.gz"), "--".into()]);
        args
    };
    let mut perf: Vec<OsString> =
        ["perf", "record", "-q", "-g", "-e", kind.perf, "-o"].iter().map(OsString::from).collect();
    perf.extend([output("events.data"), "--".into()]);
    [
        ("none", Vec::new()),
        ("nyquist record", record(&[])),
        ("nyquist record -e", record(&["-e", &kind.nyquist])),
        ("nyquist record -e --call-graph fp", record(&["-e", &kind.nyquist, "--call-graph", "fp"])),
        ("perf record -e -g", perf),
    ]
}

/// perf's probe in the program. The kernel keeps it until it is removed.
struct Probe;

impl Probe {
    fn add(program: &Path) -> Result<Self> {
        remove();
        let added = Command::new("perf").args(["probe", "-q", "-x"]).arg(program).arg(FUNCTION).output();
        let added = added.context("perf cannot be started")?;
        ensure!(added.status.success(), "perf probe: {}", String::from_utf8_lossy(&added.stderr));
        Ok(Self)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        remove();
    }
}

fn remove() {
    let _ = Command::new("perf").args(["probe", "-q", "-d", PROBE]).output();
}
