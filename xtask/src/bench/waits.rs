//! The cost of a context switch to a program while its waits are recorded, beside perf.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::cost::Measuring;
use super::record::describe;
use super::recorder;
use super::spread::cell;
use crate::steps::{cargo, succeeds};
use crate::workloads;

/// The folder, and the amount of work.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The folder for recordings
    #[arg(long, default_value = "target/bench-waits")]
    folder: PathBuf,
    /// Measures this program and does not build one
    #[arg(long, value_name = "PATH")]
    nyquist: Option<PathBuf>,
    /// How many context switches the program makes
    #[arg(long, default_value_t = 400_000)]
    switches: u64,
    /// How often each is measured
    #[arg(long, default_value_t = 5)]
    rounds: u32,
}

/// A way to run the program.
struct Way {
    name: &'static str,
    args: Vec<OsString>,
}

/// The cost of a run, in nanoseconds for each switch.
struct Figures {
    /// How long the program took.
    wall: f64,
    /// All CPU time: the program's and the recorder's.
    cpu: f64,
}

/// Measures and prints the table.
pub(crate) fn run(options: &Options) -> Result<()> {
    let nyquist = match &options.nyquist {
        Some(path) => path.canonicalize().context("no such program")?,
        None => {
            ensure!(succeeds(cargo(&["build", "--release", "-p", "nyquist"]))?, "nyquist cannot be built");
            crate::paths::target().join("release/nyquist")
        }
    };
    let workloads = workloads::build_all()?;
    fs::create_dir_all(&options.folder)?;
    let folder = options.folder.canonicalize()?;
    describe(&recorder::all(&nyquist))?;
    let measured = workloads.join("measured");
    let measuring = Measuring { folder: &folder, measured: &measured, limit: Duration::from_mins(2) };
    let ways = ways(&nyquist, &folder);
    let mut rows: Vec<Vec<Result<Figures>>> = ways.iter().map(|_| Vec::new()).collect();
    for round in 1..=options.rounds {
        for (way, row) in ways.iter().zip(&mut rows) {
            eprintln!("round {round}: {}", way.name);
            row.push(measure(&measuring, way, &workloads.join("switches"), options.switches));
        }
    }
    println!("\n## Waiting: {} context switches\n", options.switches);
    println!("| recorder | the program took, µs a switch | CPU time of both, µs a switch |");
    println!("|---|---|---|");
    for (way, row) in ways.iter().zip(rows) {
        let cells = match row.into_iter().collect::<Result<Vec<_>>>() {
            Ok(row) => {
                let wall = cell(2, row.iter().map(|figures| figures.wall / 1e3));
                format!("{wall} | {}", cell(2, row.iter().map(|figures| figures.cpu / 1e3)))
            }
            Err(error) => format!("{error:#} | "),
        };
        println!("| {} | {cells} |", way.name);
    }
    Ok(())
}

fn ways(nyquist: &Path, folder: &Path) -> [Way; 5] {
    let output = |name: &str| folder.join(name).into_os_string();
    let nyquist = |options: &[&str]| {
        let mut args = vec![nyquist.as_os_str().to_owned(), "record".into(), "-s".into(), "-q".into()];
        args.extend(options.iter().map(OsString::from));
        args.extend(["-o".into(), output("waits.json.gz"), "--".into()]);
        args
    };
    let perf = |options: &[&str]| {
        let mut args: Vec<OsString> = vec!["perf".into()];
        args.extend(options.iter().map(OsString::from));
        args.extend(["-o".into(), output("waits.data"), "--".into()]);
        args
    };
    [
        Way { name: "none", args: Vec::new() },
        Way { name: "nyquist record", args: nyquist(&[]) },
        Way { name: "nyquist record --off-cpu", args: nyquist(&["--off-cpu"]) },
        Way {
            name: "perf record -e sched:sched_switch -g",
            args: perf(&["record", "-q", "-e", "sched:sched_switch", "-g"]),
        },
        Way { name: "perf trace -s", args: perf(&["trace", "-s"]) },
    ]
}

fn measure(measuring: &Measuring<'_>, way: &Way, switches: &Path, count: u64) -> Result<Figures> {
    let took = measuring.folder.join("took");
    let mut args = way.args.clone();
    args.extend([switches.as_os_str().to_owned(), count.to_string().into(), took.clone().into()]);
    let cost = measuring.cost(&args)?;
    let seconds: f64 = fs::read_to_string(&took)?.trim().parse().context("the program said nothing")?;
    let each = |seconds: f64| seconds * 1e9 / count as f64;
    Ok(Figures { wall: each(seconds), cpu: each(cost.cpu) })
}
