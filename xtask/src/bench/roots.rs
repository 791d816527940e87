//! How many stacks reach their roots, for programs in several languages and for every recorder.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::measure::Bench;
use super::program::{self, Program};
use super::recorder::{self, Recorder};

const RATE: u32 = 1000;
/// About how long each program runs, in seconds.
const SECONDS: f64 = 2.0;

/// The functions in which a thread's stack begins. They belong to C, C++, Rust, programs written in these,
/// and the dynamic linker, which initializes libraries before the program's `_start`. Go's goroutines and its
/// scheduler have separate stacks.
const ROOTS: &[&str] = &[
    "_start",
    "_dl_start_user",
    "__clone3",
    "clone3",
    "__clone",
    "clone",
    "start_thread",
    "__libc_start_main",
    "runtime.goexit",
    "runtime.mstart",
    "runtime.mcall",
    "runtime.systemstack",
    "runtime.morestack",
    "runtime.rt0_go",
    "runtime.sigreturn",
    "_rt0_amd64_linux",
];

/// Measures and prints the table.
pub(crate) fn measure(bench: &Bench<'_>, recorders: &[Recorder]) -> Result<()> {
    println!("\n## Stacks that go to their roots, %\n");
    // Without names, the root of a stack is not known. nyquist looks up names in the profiles of the others.
    let recorders: Vec<&Recorder> = recorders.iter().filter(|recorder| !recorder.presymbolicates).collect();
    let names: Vec<&str> = recorders.iter().map(|recorder| recorder.name).collect();
    println!("| program | {} |", names.join(" | "));
    println!("|---|{}", "---|".repeat(names.len()));
    let nyquist = recorders.first().and_then(|nyquist| nyquist.program.clone()).context("no nyquist")?;
    for (name, program) in programs(bench) {
        let cells = recorders.iter().map(|recorder| {
            eprintln!("stacks of {name}: {}", recorder.name);
            let share = program.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"));
            let share = share.and_then(|program| whole_share(bench, recorder, &nyquist, program));
            share.map_or_else(|error| format!("{error:#}"), |share| format!("{:.1}", 100.0 * share))
        });
        println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    Ok(())
}

/// The programs, or the reason why one is missing.
fn programs(bench: &Bench<'_>) -> Vec<(&'static str, Result<Program>)> {
    vec![
        ("rustc", program::rustc(bench, SECONDS)),
        ("python3", python()),
        ("node", node()),
        ("java", java()),
        ("gdb", gdb()),
        ("Go", go(bench)),
        ("C, musl", musl(bench)),
        ("C, 80 kB of recursion", Ok(recursion(bench, 300))),
        ("C, 400 kB of recursion", Ok(recursion(bench, 1500))),
    ]
}

fn args(name: &str, command: &[&str]) -> Program {
    Program { name: name.to_owned(), command: command.iter().map(OsString::from).collect() }
}

fn found(program: &str, version: &str) -> Result<()> {
    let requested = Command::new(program).arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status();
    ensure!(requested.is_ok_and(|status| status.success()), "no {program} on this machine");
    Ok(())
}

fn python() -> Result<Program> {
    let requested = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output()?;
    let path = String::from_utf8(requested.stdout)?;
    let script = "import json\n\
                  def tree(n): return {'a': [tree(n - 1), tree(n - 1)]} if n else {'b': 'c' * 9}\n\
                  for i in range(12): json.loads(json.dumps(tree(14)))";
    Ok(args("python3", &[path.trim(), "-c", script]))
}

fn node() -> Result<Program> {
    found("node", "--version")?;
    let script = crate::paths::root().join("workloads/jit.js").display().to_string();
    Ok(args("node", &["node", &script, "2000"]))
}

/// Java, which compiles the program, and then its methods.
fn java() -> Result<Program> {
    found("java", "-version")?;
    let source = crate::paths::root().join("workloads/Jit.java").display().to_string();
    Ok(args("java", &["java", &source]))
}

/// gdb, which reads all debug information of xtask.
fn gdb() -> Result<Program> {
    found("gdb", "--version")?;
    let read = std::env::current_exe()?.display().to_string();
    Ok(args("gdb", &["gdb", "-q", "-nx", "-batch", "-ex", "info types ^Nothing$", &read]))
}

fn go(bench: &Bench<'_>) -> Result<Program> {
    found("go", "version")?;
    let folder = bench.folder.join("go");
    fs::create_dir_all(&folder)?;
    fs::write(
        folder.join("main.go"),
        "package main\n\nimport (\n\t\"fmt\"\n\t\"sort\"\n\t\"sync\"\n)\n\n\
         func work(seed int) int {\n\tcounts := map[string]int{}\n\tfor i := 0; i < 1500000; i++ {\n\
         \t\tcounts[fmt.Sprint(i*seed%5000)]++\n\t}\n\tkeys := make([]string, 0, len(counts))\n\
         \tfor key := range counts {\n\t\tkeys = append(keys, key)\n\t}\n\tsort.Strings(keys)\n\treturn len(keys)\n}\n\n\
         func main() {\n\tvar all sync.WaitGroup\n\tfor i := 1; i <= 4; i++ {\n\t\tall.Add(1)\n\
         \t\tgo func(seed int) { defer all.Done(); work(seed) }(i)\n\t}\n\tall.Wait()\n}\n",
    )?;
    let built = Command::new("go")
        .args(["build", "-o", "program", "main.go"])
        .current_dir(&folder)
        .env("GO111MODULE", "off")
        .env("GOCACHE", folder.join("cache"))
        .status()?;
    ensure!(built.success(), "the Go program cannot be built");
    Ok(args("Go", &[&folder.join("program").display().to_string()]))
}

/// The workload `recursion` with this many calls, each of which uses 270 bytes of stack.
fn recursion(bench: &Bench<'_>, depth: u32) -> Program {
    let program = bench.measured.with_file_name("recursion").display().to_string();
    args("recursion", &[&program, &format!("{:.0}", 1000.0 * SECONDS), &depth.to_string()])
}

/// A program whose C library has no unwind information.
fn musl(bench: &Bench<'_>) -> Result<Program> {
    found("musl-gcc", "--version")?;
    let (sources, program) = (crate::paths::root().join("workloads"), bench.folder.join("musl"));
    let mut gcc = Command::new("musl-gcc");
    gcc.args(["-O2", "-g", "-static", "-I"]).arg(sources.join("common")).arg(sources.join("library_calls.c"));
    ensure!(gcc.arg("-o").arg(&program).status()?.success(), "the program cannot be built");
    Ok(args("C, musl", &[&program.display().to_string(), &format!("{}", 1000.0 * SECONDS)]))
}

/// The share of the samples whose stack reaches its root.
fn whole_share(bench: &Bench<'_>, recorder: &Recorder, nyquist: &Path, program: &Program) -> Result<f64> {
    recorder.program.as_ref().context("not on this machine")?;
    let mut unnamed = recorder.clone();
    unnamed.naming = None;
    bench.recorded(&unnamed, RATE, &program.command)?;
    let recording = bench.folder.join(format!("recording{}", recorder.extension));
    let output = Command::new(&recorder::script(recorder, nyquist)[0])
        .args(&recorder::script(recorder, nyquist)[1..])
        .arg(&recording)
        .stderr(Stdio::null())
        .output()?;
    ensure!(output.status.success(), "its script needs more than a minute");
    share_in_script(&String::from_utf8_lossy(&output.stdout)).context("there are no samples")
}

/// The share of the samples in a script's text whose user stack has a known root. Samples with kernel frames
/// alone are left out, because they have no user stack.
fn share_in_script(text: &str) -> Option<f64> {
    let roots = text.split("\n\n").filter_map(|sample| {
        let mut frames =
            sample.lines().filter(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty());
        let root = frames.next_back()?.trim();
        // The address, the function with or without an offset, and the file in brackets.
        let (_, rest) = root.split_once(' ')?;
        let (function, file) = rest.rsplit_once(" (").unwrap_or((rest, ""));
        let is_kernel = file.starts_with("[kernel") || file.starts_with("[guest");
        (!is_kernel).then(|| function.rsplit_once("+0x").map_or(function, |(name, _)| name).trim())
    });
    let is_known = |root: &str| {
        let name = root.split('@').next().unwrap_or(root);
        let name = name.trim_end_matches(".abi0").trim_end_matches("_impl");
        ROOTS.contains(&name) || name.starts_with("__libc_start_main")
    };
    let roots: Vec<&str> = roots.collect();
    let whole = roots.iter().filter(|root| is_known(root)).count();
    (!roots.is_empty()).then(|| whole as f64 / roots.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::share_in_script;

    #[test]
    fn a_stack_with_a_known_root_is_whole() {
        let text = "app 1 1.0: 1 cycles:\n\t 401000 work+0x10 (/app)\n\t 401020 _start+0x2a (/app)\n\n\
                    app 1 1.1: 1 cycles:\n\t 401000 work (/app)\n\t 402000 [unknown] (/app)\n\n\
                    app 1 1.2: 1 cycles:\n\tffffffff810 do_idle+0x1 ([kernel.kallsyms])\n\n\
                    app 1 1.3: 1 cycles:\n\t 401000 work (/app)\n\t 401020 clone3@@GLIBC_2.34+0x2c (/lib/libc.so.6)\n\n\
                    app 1 1.4: 1 cycles:\n\t 401000 _dl_init+0x10 (/lib/ld.so)\n\t 401020 _dl_start_user (/lib/ld.so)\n";
        assert_eq!(share_in_script(text), Some(3.0 / 4.0));
        assert_eq!(share_in_script(""), None);
    }
}
