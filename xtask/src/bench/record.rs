//! `cargo xtask bench record`: measures all recorders on the same programs, round after round, and prints the
//! tables.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use super::measure::{Bench, Run};
use super::program::{self, CROWD, Program};
use super::recorder::{self, Recorder};
use super::rows::{Row, take_turns};
use super::spread::cell;
use crate::steps::{cargo, succeeds};
use crate::workloads;

/// The duration and the number of measurements.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How often every recorder is measured
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// CPU seconds of each thread where the slowdown is measured; two hundred threads use as much together as
    /// seven
    #[arg(long, default_value_t = 5.0)]
    short: f64,
    /// Seconds of the recordings whose time to save is measured
    #[arg(long, default_value_t = 10.0)]
    long: f64,
    /// Measures this program and builds none
    #[arg(long, value_name = "PATH")]
    nyquist: Option<PathBuf>,
    /// Only these tables
    #[arg(long, value_delimiter = ',')]
    only: Vec<Table>,
}

/// The separate measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Table {
    /// How much slower a busy program gets, and the recorder's CPU time
    Slowdown,
    /// From the command's end to the profile
    Saving,
    /// CPU time by samples, of commands that start many processes
    Builds,
    /// How long attaching takes
    Attach,
    /// Complete stacks of several languages
    Stacks,
    /// For how long the ptrace backend holds threads
    Holds,
}

impl Table {
    const ALL: [Self; 6] =
        [Self::Slowdown, Self::Saving, Self::Builds, Self::Attach, Self::Stacks, Self::Holds];

    fn measure(self, options: &Options, bench: &Bench<'_>, recorders: &[Recorder]) -> Result<()> {
        match self {
            Self::Slowdown => slowdown(options, bench, recorders),
            Self::Saving => saving(options, bench, recorders),
            Self::Builds => super::builds::measure(bench, recorders),
            Self::Attach => {
                super::attach::measure(options.rounds, bench, recorders);
                Ok(())
            }
            Self::Stacks => super::roots::measure(bench, recorders),
            Self::Holds => {
                let nyquist = recorders.first().context("no recorder")?;
                super::holds::measure(options.rounds, options.short, bench, &nyquist.saying_holds())
            }
        }
    }
}

/// Measures and prints the tables.
pub(crate) fn run(options: &Options) -> Result<()> {
    let nyquist = match &options.nyquist {
        // Programs run in folders of their own, so the path must be absolute.
        Some(path) => fs::canonicalize(path).with_context(|| format!("cannot find {}", path.display()))?,
        None => {
            ensure!(succeeds(cargo(&["build", "--release", "-p", "nyquist"]))?, "nyquist cannot be built");
            crate::paths::target().join("release/nyquist")
        }
    };
    let measured = workloads::build_all()?.join("measured");
    let folder = crate::paths::target().join("bench-record");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let bench = Bench { folder: &folder, measured: &measured };
    let recorders = recorder::all(&nyquist);
    describe(&recorders)?;
    let requested = |table: &Table| options.only.is_empty() || options.only.contains(table);
    Table::ALL.into_iter().filter(requested).try_for_each(|table| table.measure(options, &bench, &recorders))
}

/// Prints the machine, and the versions of the other recorders.
pub(super) fn describe(recorders: &[Recorder]) -> Result<()> {
    let cpus = fs::read_to_string("/proc/cpuinfo")?;
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let count = cpus.lines().filter(|line| line.starts_with("processor")).count();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let load = fs::read_to_string("/proc/loadavg")?;
    println!(
        "{count} x {}, Linux {}, load {} before.",
        model.map_or("CPU", |(_, model)| model),
        kernel.trim(),
        load.split(' ').next().unwrap_or_default()
    );
    let mut versions: Vec<String> = recorders.iter().filter_map(recorder::version).collect();
    versions.dedup();
    println!("{}.", versions.join(", "));
    Ok(())
}

/// How much slower a busy program gets, and the recorder's CPU time.
fn slowdown(options: &Options, bench: &Bench<'_>, recorders: &[Recorder]) -> Result<()> {
    println!("\n## Slowdown and the recorder's CPU time\n");
    // The program is built with frame pointers and with unwind tables, so that every mode works.
    for (threads, seconds) in [(1, options.short), (2, options.short), (200, options.short / CROWD)] {
        let program = program::fixed_work(bench, "fp", threads, seconds)?;
        let rates = [1000, 10_000];
        let mut rows = vec![Row::new(None, 0)];
        rows.extend(
            rates.iter().flat_map(|rate| recorders.iter().map(|recorder| Row::new(Some(recorder), *rate))),
        );
        take_turns(options.rounds, bench, &program, &mut rows);
        print_slowdown(&program, &rows);
    }
    Ok(())
}

fn print_slowdown(program: &Program, rows: &[Row<'_>]) {
    println!("### {}\n", program.name);
    println!(
        "| recorder | mode | Hz | command's CPU, s | x unrecorded | command's wall, s | x unrecorded | recorder's CPU meanwhile, s | after, s | samples a CPU second |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let plain = &rows[0].runs;
    for row in rows {
        let ratio = |figure: fn(&Run) -> f64| {
            cell(3, row.runs.iter().zip(plain).map(|(run, plain)| figure(run) / figure(plain)))
        };
        row.print(&[
            row.cell(2, |run| run.command_cpu),
            ratio(|run| run.command_cpu),
            row.cell(2, |run| run.command_wall),
            ratio(|run| run.command_wall),
            row.recorded(3, |run| run.cpu_during),
            row.recorded(3, |run| run.cpu_after),
            row.recorded(0, |run| run.samples.taken / run.command_cpu),
        ]);
    }
    println!();
}

/// How long saving the profile takes after the command's end, and how many samples there are for its CPU
/// time.
fn saving(options: &Options, bench: &Bench<'_>, recorders: &[Recorder]) -> Result<()> {
    const RATE: u32 = 1000;
    println!("\n## From the command's end to the profile, and samples against CPU time\n");
    let programs = [
        program::fixed_work(bench, "cfi", 1, options.long)?,
        program::rustc(bench, options.long)?,
        program::python(bench, options.long)?,
        program::ticks(bench, options.short),
    ];
    let first_time = recorders.first().context("no recorder")?.for_the_first_time();
    for program in programs {
        let rows = recorders.iter().chain([&first_time]).map(|recorder| Row::new(Some(recorder), RATE));
        let mut rows: Vec<_> = rows.collect();
        take_turns(options.rounds, bench, &program, &mut rows);
        print_saving(&program, &rows);
    }
    Ok(())
}

fn print_saving(program: &Program, rows: &[Row<'_>]) {
    println!("### {}\n", program.name);
    println!(
        "| recorder | mode | Hz | command's end to file, ms | naming after that, ms | recorder's CPU meanwhile, s | after, s | naming, s | command's CPU, s | samples | samples / (CPU time x rate) |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for row in rows {
        let naming = |digits, figure: fn(&super::measure::Step) -> f64| {
            cell(digits, row.runs.iter().filter_map(|run| run.naming.as_ref()).map(figure))
        };
        let rate = f64::from(row.rate);
        row.print(&[
            row.cell(0, |run| run.saving * 1e3),
            naming(0, |step| step.wall * 1e3),
            row.cell(3, |run| run.cpu_during),
            row.cell(3, |run| run.cpu_after),
            naming(3, |step| step.cpu),
            row.cell(2, |run| run.command_cpu),
            row.cell(0, |run| run.samples.taken),
            cell(4, row.runs.iter().map(|run| run.samples.taken / run.command_cpu / rate)),
        ]);
    }
    println!();
}
