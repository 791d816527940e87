//! `cargo xtask bench texts`: the cost of reading texts and V8's profiles, beside the collapsers of inferno.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::cost::{Cost, Measuring};
use super::spread::cell;
use crate::builds;
use crate::workloads;

/// The functions that stacks name.
const FUNCTIONS: u64 = 4000;

/// The measurement.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The size of each file in MB
    #[arg(long, default_value_t = 150)]
    megabytes: u64,
    /// How often each is measured, in turn
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// The folder with inferno's programs, as `cargo install inferno` makes it
    #[arg(long, value_name = "FOLDER")]
    inferno: Option<PathBuf>,
    /// Measures this program and builds none
    #[arg(long, value_name = "PATH")]
    nyquist: Option<PathBuf>,
}

/// A file, and the program of inferno that reads it, if there is one.
struct Subject {
    name: &'static str,
    path: PathBuf,
    collapser: Option<&'static str>,
}

/// Measures and prints a table.
pub(crate) fn run(options: &Options) -> Result<()> {
    let nyquist = match &options.nyquist {
        Some(path) => fs::canonicalize(path).with_context(|| format!("cannot find {}", path.display()))?,
        None => builds::release()?,
    };
    let measured = workloads::build_all()?.join("measured");
    let folder = crate::paths::target().join("bench-texts");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let bytes = options.megabytes * 1_000_000;
    let subjects = [
        Subject {
            name: "perf script",
            path: folder.join("a.perf"),
            collapser: Some("inferno-collapse-perf"),
        },
        Subject {
            name: "folded",
            path: folder.join("a.folded"),
            collapser: Some("inferno-collapse-recursive"),
        },
        Subject { name: "V8", path: folder.join("a.cpuprofile"), collapser: None },
    ];
    make_script(&subjects[0].path, bytes)?;
    make_folded(&subjects[1].path, bytes)?;
    make_v8(&subjects[2].path, bytes)?;
    let measuring = Measuring { folder: &folder, measured: &measured, limit: Duration::from_mins(10) };
    println!(
        "\n| file | MB | program | CPU, s | most memory, MB | of the file's size, % |\n|---|---:|---|---|---|---|"
    );
    for subject in &subjects {
        let file = subject.path.clone().into_os_string();
        let ours: Vec<OsString> =
            vec![nyquist.clone().into(), "report".into(), "--json".into(), file.clone()];
        let theirs = options.inferno.as_ref().zip(subject.collapser).map(|(folder, program)| {
            vec![folder.join("bin").join(program).into(), "-n".into(), "1".into(), file]
        });
        let (mut our_costs, mut their_costs) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            our_costs.push(measuring.cost(&ours)?);
            their_costs.extend(theirs.as_ref().map(|args: &Vec<OsString>| measuring.cost(args)).transpose()?);
        }
        print_row(subject, "`nyquist report`", &our_costs)?;
        print_row(subject, subject.collapser.unwrap_or_default(), &their_costs)?;
    }
    Ok(())
}

fn print_row(subject: &Subject, program: &str, costs: &[Cost]) -> Result<()> {
    if costs.is_empty() {
        return Ok(());
    }
    let megabytes = fs::metadata(&subject.path)?.len() as f64 / 1e6;
    let memory = costs.iter().map(|cost| cost.anonymous_mb);
    println!(
        "| {} | {megabytes:.0} | {program} | {} | {} | {} |",
        subject.name,
        cell(2, costs.iter().map(|cost| cost.cpu)),
        cell(0, memory.clone()),
        cell(0, memory.map(|memory| 100.0 * memory / megabytes)),
    );
    Ok(())
}

/// Stacks of a program in which most calls lead to the same callees.
struct Walks(u64);

impl Walks {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// The functions of a stack, the outermost first.
    fn stack(&mut self) -> Vec<u64> {
        let mut function = 0;
        (0..8 + self.below(38))
            .map(|_| {
                let callee = match self.below(100) {
                    0..60 => 1,
                    60..85 => 2,
                    85..97 => 3,
                    _ => 4 + self.below(26),
                };
                function = (function * 7 + callee) % FUNCTIONS;
                function
            })
            .collect()
    }
}

fn name(function: u64) -> String {
    format!("module_{}::handle_{function}<alloc::vec::Vec<u8>>", function % 37)
}

/// Writes pieces of a text until it has this many bytes.
fn make(path: &Path, bytes: u64, mut piece: impl FnMut(&mut Walks, u64) -> String) -> Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let (mut walks, mut written) = (Walks(1), 0);
    for number in 0.. {
        let text = piece(&mut walks, number);
        out.write_all(text.as_bytes())?;
        written += text.len() as u64;
        if written >= bytes {
            break;
        }
    }
    Ok(out.flush()?)
}

/// The output of `perf script`: eight threads on four CPUs.
fn make_script(path: &Path, bytes: u64) -> Result<()> {
    make(path, bytes, |walks, number| {
        let (tid, cpu) = (100 + number % 8, number % 4);
        let (seconds, micros) = (number / 4000, number % 4000 * 250);
        let mut text =
            format!("app-worker  100/{tid} [{cpu:03}] {seconds}.{micros:06}:     250000 cycles:u: \n");
        for function in walks.stack().into_iter().rev() {
            let offset = function * 13 % 7 * 16;
            let address = 0x7f00_0000_0000 + function * 4096 + offset;
            let (name, lib) = (name(function), function % 9);
            let _ = writeln!(text, "\t    {address:x} {name}+{offset:#x} (/usr/lib/libapp-{lib}.so)");
        }
        text + "\n"
    })
}

fn make_folded(path: &Path, bytes: u64) -> Result<()> {
    make(path, bytes, |walks, _| {
        let names: Vec<String> = walks.stack().into_iter().map(name).collect();
        format!("app;{} {}\n", names.join(";"), 1 + walks.below(9))
    })
}

/// A profile of V8: a third are the nodes of its tree, and the rest is samples, of which many are of the node before.
fn make_v8(path: &Path, bytes: u64) -> Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let mut walks = Walks(1);
    let mut children: Vec<Vec<(u64, usize)>> = vec![Vec::new()];
    let mut functions = vec![0];
    while (functions.len() as u64) * 190 < bytes / 3 {
        let mut node = 0;
        for function in walks.stack() {
            let known =
                children[node].iter().find(|(callee, _)| *callee == function).map(|(_, place)| *place);
            node = known.unwrap_or_else(|| {
                children[node].push((function, functions.len()));
                children.push(Vec::new());
                functions.push(function);
                functions.len() - 1
            });
        }
    }
    out.write_all(b"{\"nodes\":[")?;
    for (node, function) in functions.iter().enumerate() {
        let comma = if node == 0 { "" } else { "," };
        let of_node: Vec<String> = children[node].iter().map(|(_, place)| (place + 1).to_string()).collect();
        write!(
            out,
            "{comma}{{\"id\":{},\"callFrame\":{{\"functionName\":\"handle_{function}\",\"scriptId\":\"{}\",\
             \"url\":\"file:///app/src/module_{}/index.js\",\"lineNumber\":{},\"columnNumber\":3}},\"hitCount\":1,\"children\":[{}]}}",
            node + 1,
            20 + function % 50,
            function % 50,
            function % 900,
            of_node.join(","),
        )?;
    }
    // Each sample is a number of up to six digits, and a difference of three.
    let samples = bytes * 2 / 3 / 11;
    let mut node = 1;
    out.write_all(b"],\"startTime\":0,\"endTime\":1000000000,\"samples\":[1")?;
    for _ in 1..samples {
        if walks.below(3) == 0 {
            node = 1 + walks.below(functions.len() as u64);
        }
        write!(out, ",{node}")?;
    }
    out.write_all(b"],\"timeDeltas\":[0")?;
    for _ in 1..samples {
        write!(out, ",{}", 80 + walks.below(60))?;
    }
    out.write_all(b"]}\n")?;
    Ok(out.flush()?)
}
