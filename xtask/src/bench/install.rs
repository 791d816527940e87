//! How long `cargo install` takes from source, and how large the programs are: nyquist beside samply.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::cost::{Cost, Measuring};
use super::spread::cell;
use crate::workloads;

/// The folder, and what is installed.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The folder for builds and figures
    #[arg(long, default_value = "target/bench-install")]
    folder: PathBuf,
    /// The version of samply
    #[arg(long, value_name = "VERSION", default_value = "0.13.1")]
    samply: String,
    /// How often each is installed, in turn
    #[arg(long, default_value_t = 1)]
    rounds: u32,
}

/// What is installed: its name, and the arguments of `cargo install` that name it.
type Package = (&'static str, Vec<OsString>);

/// Installs each from nothing, and prints a table. It works offline, because networks differ more than
/// machines do.
pub(crate) fn run(options: &Options) -> Result<()> {
    let measured = workloads::build_all()?.join("measured");
    fs::create_dir_all(&options.folder)?;
    let folder = options.folder.canonicalize()?;
    let measuring = Measuring { folder: &folder, measured: &measured, limit: Duration::from_hours(1) };
    let path = OsString::from(crate::paths::root().join("crates/nyquist"));
    let packages: [Package; 2] = [
        ("nyquist", vec!["--path".into(), path]),
        ("samply", vec!["samply".into(), "--version".into(), options.samply.clone().into()]),
    ];
    let mut rows: [Vec<Cost>; 2] = Default::default();
    for round in 1..=options.rounds {
        for ((name, arguments), row) in packages.iter().zip(&mut rows) {
            eprintln!("round {round}: {name}");
            row.push(install(&measuring, &folder.join(name), arguments).with_context(|| {
                format!(
                    "{name} was not installed: its crates are downloaded by `cargo fetch` and `cargo install samply`"
                )
            })?);
        }
    }
    println!("\n## Installing from source\n");
    println!("| | time, s | CPU time, s | program, MB |\n|---|---|---|---|");
    for ((name, _), row) in packages.iter().zip(rows) {
        println!(
            "| {name} | {} | {} | {:.1} |",
            cell(0, row.iter().map(|cost| cost.wall)),
            cell(0, row.iter().map(|cost| cost.cpu)),
            program_bytes(&folder.join(name), name)? as f64 / 1e6,
        );
    }
    Ok(())
}

/// Builds and installs one package into an empty folder.
fn install(measuring: &Measuring<'_>, root: &Path, package: &[OsString]) -> Result<Cost> {
    if root.exists() {
        fs::remove_dir_all(root)?;
    }
    let mut args = ["cargo", "install", "--offline", "--locked", "--root"].map(OsString::from).to_vec();
    args.extend([root.into(), "--target-dir".into(), root.join("target").into()]);
    args.extend_from_slice(package);
    measuring.cost(&args)
}

/// The size of an installed program.
fn program_bytes(root: &Path, name: &str) -> Result<u64> {
    Ok(fs::metadata(root.join("bin").join(name))?.len())
}
