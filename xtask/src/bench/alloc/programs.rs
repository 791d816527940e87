//! The programs that are recorded: what they are called, and their words.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::bench::Bench;

/// What Python does: it makes and writes objects, most of them in its own arenas.
const PYTHON: &str =
    "import json; x=[{'a': [i] * 10, 'b': str(i)} for i in range(N)]; json.loads(json.dumps(x))";

/// A program.
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) args: Vec<OsString>,
    /// Variables of its environment, which make it do the same each time.
    variables: &'static [(&'static str, &'static str)],
}

impl Program {
    fn new(name: &'static str, args: Vec<OsString>) -> Self {
        Self { name, args, variables: &[] }
    }

    /// A tool that is to run it, without random addresses: where objects are sorted or hashed by their addresses, their
    /// order would differ each time.
    pub(super) fn under(&self, tool: impl AsRef<Path>) -> Command {
        let mut command = Command::new("setarch");
        command.arg("-R").arg(tool.as_ref()).envs(self.variables.iter().copied());
        command
    }
}

/// Programs that are not there are left out. `size` is the amount of work: 1 takes a few seconds.
pub(super) fn programs(bench: &Bench<'_>, size: f64) -> Result<Vec<Program>> {
    let pairs = (bench.pairs as f64 * size) as u64;
    let allocates = bench.workloads.join("allocates").into();
    let args = vec![allocates, "pairs".into(), pairs.to_string().into()];
    let mut programs = vec![Program::new("allocations and frees", args)];
    programs.extend(compiler(bench, size, "rustc (Debian's)", &[])?);
    programs.extend(json_parser(bench, size)?);
    programs.extend(python(size));
    Ok(programs)
}

/// Programs that allocate the same in each run.
pub(super) fn deterministic(bench: &Bench<'_>) -> Result<Vec<Program>> {
    let size = 0.05;
    let args = vec![bench.workloads.join("allocates").into(), "sums".into(), "4".into()];
    let mut programs = vec![Program::new("`allocates sums 4`", args)];
    programs.extend(json_parser(bench, size)?);
    let variables = &[("PYTHONHASHSEED", "0"), ("PYTHONMALLOC", "malloc")];
    programs.extend(python(size / 10.0).map(|program| Program { variables, ..program }));
    programs.extend(compiler(bench, size, "rustc (Debian's)", &[])?);
    // Its threads allocate when they come to it, so its peak is another each time. Here it has one at a time.
    let alone = ["-Zno-parallel-backend", "-Ccodegen-units=1"];
    let variables = &[("RUSTC_BOOTSTRAP", "1")];
    let one = compiler(bench, size, "rustc (Debian's), one thread", &alone)?;
    programs.extend(one.map(|program| Program { variables, ..program }));
    Ok(programs)
}

/// A part of the most work, which a program does at the size 1.
fn part_of(most: f64, size: f64) -> u64 {
    (most * size) as u64
}

fn compiler(bench: &Bench<'_>, size: f64, name: &'static str, more: &[&str]) -> Result<Option<Program>> {
    const RUSTC: &str = "/usr/bin/rustc";
    if !Path::new(RUSTC).exists() {
        return Ok(None);
    }
    let source = bench.folder.join("compiled.rs");
    fs::write(&source, rust_source(part_of(60.0, size).max(10)))?;
    let output = bench.folder.join("compiled.rlib");
    let options = [RUSTC, "--edition=2021", "--crate-type=rlib", "-Awarnings"];
    let options = options.iter().chain(more).map(OsString::from);
    let args = options.chain(["-o".into(), output.into(), source.into()]).collect();
    Ok(Some(Program::new(name, args)))
}

fn json_parser(bench: &Bench<'_>, size: f64) -> Result<Option<Program>> {
    const JQ: &str = "/usr/bin/jq";
    if !Path::new(JQ).exists() {
        return Ok(None);
    }
    let file = bench.folder.join("parsed.json");
    let objects: Vec<_> = (0..part_of(150_000.0, size))
        .map(|n| format!("{{\"id\":{n},\"name\":\"name {n}\",\"list\":[{n},2,3,\"x\"],\"is\":true}}"))
        .collect();
    fs::write(&file, format!("[{}]", objects.join(",")))?;
    Ok(Some(Program::new("jq, a JSON parser", vec![JQ.into(), "length".into(), file.into()])))
}

fn python(size: f64) -> Option<Program> {
    const PYTHON3: &str = "/usr/bin/python3";
    let script = PYTHON.replace('N', &part_of(300_000.0, size).to_string());
    let program = Program::new("python3, json", vec![PYTHON3.into(), "-c".into(), script.into()]);
    Path::new(PYTHON3).exists().then_some(program)
}

/// Functions with generic code, which takes the compiler some time.
fn rust_source(functions: u64) -> String {
    let function = |n: u64| {
        format!(
            "pub fn f{n}(x: &[u32]) -> Vec<String> {{ let mut m = std::collections::BTreeMap::new(); for (i, v) in x.iter().enumerate() {{ m.entry(v % {}).or_insert_with(Vec::new).push(i); }} m.iter().map(|(k, v)| format!(\"{{k}} {{v:?}} {n}\")).collect() }}\n",
            n + 2
        )
    };
    (0..functions).map(function).collect()
}
