//! What programs have allocated, as nyquist, heaptrack and DHAT count it, and the functions that have most of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::bench::Bench;
use super::cost::{heaptrack, report};
use super::programs::{Program, programs};

/// How many functions are compared.
const TOP: usize = 10;

/// What a tool has counted: the sums, and the bytes by the function that called the allocator.
#[derive(Default)]
struct Counted {
    total: f64,
    blocks: f64,
    peak: f64,
    live: f64,
    /// Those of [`MEASURES`].
    sites: [BTreeMap<String, f64>; 3],
}

/// The measures of sites.
const MEASURES: [&str; 3] = ["total", "peak", "live"];

pub(super) fn run(bench: &Bench<'_>) -> Result<()> {
    println!(
        "\n| program | tool | bytes in all | blocks | at the peak | at the end | of nyquist's top {TOP} within 1 %: total, peak, live |\n|---|---|---|---|---|---|---|"
    );
    let mut programs = programs(bench, 0.05)?;
    programs[0].args = vec![bench.workloads.join("allocates").into(), "sums".into(), "4".into()];
    programs[0].name = "a workload";
    for program in programs {
        let own = of_nyquist(bench, &program)?;
        print(&program, "nyquist, each", &own, &own);
        if let Some(args) = heaptrack(bench) {
            print(&program, "heaptrack", &of_heaptrack(bench, args, &program)?, &own);
        }
        if Command::new("valgrind").arg("--version").output().is_ok() {
            print(&program, "DHAT", &of_dhat(bench, &program)?, &own);
        }
    }
    Ok(())
}

fn print(program: &Program, tool: &str, counted: &Counted, own: &Counted) {
    let Counted { total, blocks, peak, live, .. } = counted;
    let agreeing: Vec<_> =
        own.sites.iter().zip(&counted.sites).map(|(own, other)| agreeing(own, other)).collect();
    println!(
        "| {} | {tool} | {total:.0} | {blocks:.0} | {peak:.0} | {live:.0} | {} |",
        program.name,
        if counted.sites.iter().all(BTreeMap::is_empty) { "–".to_owned() } else { agreeing.join(", ") }
    );
}

/// How many of the functions with most have the same in another tool.
fn agreeing(own: &BTreeMap<String, f64>, other: &BTreeMap<String, f64>) -> String {
    let mut top: Vec<_> = own.iter().filter(|(_, bytes)| **bytes > 0.0).collect();
    top.sort_by(|a, b| b.1.total_cmp(a.1));
    top.truncate(TOP);
    let is_same = |(name, bytes): &&(&String, &f64)| {
        other.get(*name).is_some_and(|other| (*other - **bytes).abs() <= 0.01 * **bytes)
    };
    format!("{} of {}", top.iter().filter(is_same).count(), top.len())
}

fn succeeded(command: &mut Command, what: &str) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{what} cannot be run"))?;
    ensure!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

fn of_nyquist(bench: &Bench<'_>, program: &Program) -> Result<Counted> {
    let recording = bench.folder.join("each.json.gz");
    let mut command = Command::new(&bench.nyquist);
    command.args(["record", "-s", "-q", "--alloc", "--alloc-rate", "1", "-o"]).arg(&recording).arg("--");
    succeeded(command.args(&program.args), "nyquist")?;
    let mut counted = Counted::default();
    let sum = |event: &str| anyhow::Ok(report(bench, &recording, event)?["weight"].as_f64().unwrap_or(0.0));
    counted.blocks = sum("allocations")?;
    for (event, sites) in MEASURES.iter().zip(&mut counted.sites) {
        let report = report(bench, &recording, event)?;
        for row in report["functions"].as_array().into_iter().flatten() {
            let (Some(name), Some(own)) = (row["function"].as_str(), row["self"].as_f64()) else { continue };
            *sites.entry(shortened(name)).or_default() += own;
        }
    }
    let [total, peak, live] = MEASURES.map(sum);
    (counted.total, counted.peak, counted.live) = (total?, peak?, live?);
    Ok(counted)
}

/// A name without its parameters and generic arguments, because tools write these differently.
fn shortened(name: &str) -> String {
    name.split(['(', '<']).next().unwrap_or(name).trim().to_owned()
}

/// heaptrack's own sums are rounded when they are printed, so they are added up from its stacks.
fn of_heaptrack(bench: &Bench<'_>, args: Vec<OsString>, program: &Program) -> Result<Counted> {
    let args = [args, program.args.clone()].concat();
    let data = bench.folder.join("heaptrack");
    for ending in ["zst", "gz"] {
        let _ = fs::remove_file(data.with_extension(ending));
    }
    succeeded(Command::new(&args[0]).args(&args[1..]), "heaptrack")?;
    let file = ["zst", "gz"].map(|ending| data.with_extension(ending)).into_iter().find(|path| path.exists());
    let file = file.context("heaptrack has written nothing")?;
    let mut counted = Counted::default();
    for (cost, measure) in [("allocations", None), ("peak", Some(1)), ("leaked", Some(2))] {
        let stacks = bench.folder.join("heaptrack.stacks");
        let mut print = Command::new("heaptrack_print");
        print
            .args(["-p", "0", "-a", "0", "-T", "0", "--flamegraph-cost-type", cost, "-F"])
            .arg(&stacks)
            .arg(&file);
        succeeded(&mut print, "heaptrack_print")?;
        let sum = fold(&stacks, measure.map(|at: usize| &mut counted.sites[at]))?;
        match cost {
            "allocations" => counted.blocks = sum,
            "peak" => counted.peak = sum,
            _ => counted.live = sum,
        }
    }
    Ok(counted)
}

/// The sum of folded stacks, and the sums of their innermost functions.
fn fold(path: &Path, mut sites: Option<&mut BTreeMap<String, f64>>) -> Result<f64> {
    let mut sum = 0.0;
    for (stack, weight) in fs::read_to_string(path)?.lines().filter_map(|line| line.rsplit_once(' ')) {
        let weight: f64 = weight.parse().unwrap_or(0.0);
        sum += weight;
        if let Some(sites) = &mut sites {
            // The file is behind the function.
            let innermost = stack.trim_end_matches(';').rsplit(';').next().unwrap_or(stack);
            let innermost = innermost.split_once(" (").map_or(innermost, |(function, _)| function);
            *sites.entry(shortened(innermost)).or_default() += weight;
        }
    }
    Ok(sum)
}

fn of_dhat(bench: &Bench<'_>, program: &Program) -> Result<Counted> {
    let file = bench.folder.join("dhat.out");
    let mut option = OsString::from("--dhat-out-file=");
    option.push(&file);
    succeeded(Command::new("valgrind").arg("--tool=dhat").arg(option).args(&program.args), "valgrind")?;
    let json: Value = serde_json::from_str(&fs::read_to_string(file)?)?;
    let frames: Vec<&str> = json["ftbl"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut counted = Counted::default();
    for point in json["pps"].as_array().into_iter().flatten() {
        let amount = |key: &str| point[key].as_f64().unwrap_or(0.0);
        counted.total += amount("tb");
        counted.blocks += amount("tbk");
        counted.peak += amount("gb");
        counted.live += amount("eb");
        let indices = point["fs"].as_array().into_iter().flatten().filter_map(Value::as_u64);
        let names = indices.filter_map(|index| frames.get(index as usize)).map(|frame| function_of(frame));
        let Some(site) = names.into_iter().find(|name| !is_allocator(name)) else { continue };
        for (sites, key) in counted.sites.iter_mut().zip(["tb", "gb", "eb"]) {
            *sites.entry(shortened(site)).or_default() += amount(key);
        }
    }
    Ok(counted)
}

/// The function of a frame such as `0x109166: keeps (t.c:2)`.
fn function_of(frame: &str) -> &str {
    let name = frame.split_once(": ").map_or(frame, |(_, rest)| rest);
    name.rsplit_once(" (").map_or(name, |(name, _)| name)
}

/// The functions that valgrind has in the place of the allocator's.
fn is_allocator(name: &str) -> bool {
    [
        "malloc",
        "calloc",
        "realloc",
        "posix_memalign",
        "aligned_alloc",
        "memalign",
        "reallocarray",
        "operator new",
    ]
    .iter()
    .any(|allocator| name.starts_with(allocator))
}
