//! The programs that are recorded: what they are called, and their words.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::bench::Bench;

/// What Python does: it makes and writes objects, most of them in its own arenas.
const PYTHON: &str =
    "import json; x=[{'a': [i] * 10, 'b': str(i)} for i in range(N)]; json.loads(json.dumps(x))";

/// A program.
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) args: Vec<OsString>,
}

/// Programs that are not there are left out. `size` is the amount of work: 1 takes a few seconds.
pub(super) fn programs(bench: &Bench<'_>, size: f64) -> Result<Vec<Program>> {
    let pairs = (bench.pairs as f64 * size) as u64;
    let mut programs = vec![Program {
        name: "allocations and frees",
        args: vec![bench.workloads.join("allocates").into(), "pairs".into(), pairs.to_string().into()],
    }];
    let count = |most: f64| (most * size) as u64;
    let (rustc, jq, python) = ("/usr/bin/rustc", "/usr/bin/jq", "/usr/bin/python3");
    if Path::new(rustc).exists() {
        let source = bench.folder.join("compiled.rs");
        fs::write(&source, rust_source(count(60.0).max(10)))?;
        let output = bench.folder.join("compiled.rlib");
        let options = ["--edition=2021", "--crate-type=rlib", "-Awarnings", "-o"].map(OsString::from);
        let args = [vec![rustc.into()], options.to_vec(), vec![output.into(), source.into()]].concat();
        programs.push(Program { name: "rustc (Debian's)", args });
    }
    if Path::new(jq).exists() {
        let file = bench.folder.join("parsed.json");
        let objects: Vec<_> = (0..count(150_000.0))
            .map(|n| format!("{{\"id\":{n},\"name\":\"name {n}\",\"list\":[{n},2,3,\"x\"],\"is\":true}}"))
            .collect();
        fs::write(&file, format!("[{}]", objects.join(",")))?;
        programs
            .push(Program { name: "jq, a JSON parser", args: vec![jq.into(), "length".into(), file.into()] });
    }
    if Path::new(python).exists() {
        let script = PYTHON.replace('N', &count(300_000.0).to_string());
        programs
            .push(Program { name: "python3, json", args: vec![python.into(), "-c".into(), script.into()] });
    }
    Ok(programs)
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
