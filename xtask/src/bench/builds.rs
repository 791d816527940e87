//! The share of CPU time that has samples, for commands that start many processes: a shell loop, `make -j2`,
//! `cargo build`.

use std::fmt::Write as _;
use std::fs;

use anyhow::Result;

use super::measure::Bench;
use super::program::Program;
use super::recorder::Recorder;
use super::rows::{Row, take_turns};
use super::spread::cell;

/// How many CPU seconds each command takes at least.
const MIN_CPU_SECONDS: f64 = 5.0;
const RATE: u32 = 1000;

/// Measures and prints the table.
pub(crate) fn measure(bench: &Bench<'_>, recorders: &[Recorder]) -> Result<()> {
    println!("\n## CPU time with samples, of commands that start many processes\n");
    println!(
        "| recorder | mode | Hz | command | CPU time by wait4, s | CPU time by samples, s | samples' part |"
    );
    println!("|---|---|---|---|---|---|---|");
    let recorders: Vec<&Recorder> = recorders.iter().filter(|recorder| !recorder.presymbolicates).collect();
    for program in [shell_loop(bench)?, make(bench)?, cargo_build(bench)?] {
        let mut rows: Vec<_> = recorders.iter().map(|recorder| Row::new(Some(recorder), RATE)).collect();
        take_turns(1, bench, &program, &mut rows);
        for row in rows {
            row.print(&[
                program.name.clone(),
                row.cell(2, |run| run.command_cpu),
                row.cell(2, |run| run.samples.intervals / f64::from(RATE)),
                cell(3, row.runs.iter().map(|run| run.samples.intervals / f64::from(RATE) / run.command_cpu)),
            ]);
        }
    }
    Ok(())
}

/// The factor by which some work must grow to take [`MIN_CPU_SECONDS`] seconds and a fifth more.
fn times(bench: &Bench<'_>, trial: &Program) -> Result<f64> {
    Ok((1.2 * MIN_CPU_SECONDS / bench.unrecorded(&trial.command)?.command_cpu.max(1e-3)).max(1.0))
}

fn shell(name: &str, script: &str) -> Program {
    Program { name: name.to_owned(), command: ["bash", "-c", script].map(Into::into).into() }
}

fn shell_loop(bench: &Bench<'_>) -> Result<Program> {
    let loop_of = |count: f64| {
        let script = format!("for i in $(seq {count:.0}); do /bin/true; done");
        shell(&format!("{count:.0} x `/bin/true`"), &script)
    };
    let trial = 500.0;
    Ok(loop_of(trial * times(bench, &loop_of(trial))?))
}

fn make(bench: &Bench<'_>) -> Result<Program> {
    let folder = bench.folder.join("make");
    let make_of = |count: usize| -> Result<Program> {
        fs::create_dir_all(&folder)?;
        let objects: Vec<String> = (0..count).map(|number| format!("f{number}.o")).collect();
        for number in 0..count {
            fs::write(folder.join(format!("f{number}.c")), c_source(number)?)?;
        }
        let rule = "%.o: %.c\n\tgcc -O2 -g -c -o $@ $<\n";
        fs::write(folder.join("Makefile"), format!("all: {}\n\n{rule}", objects.join(" ")))?;
        let script = format!("rm -f {0}/*.o; make -s -j2 -C {0}", folder.display());
        Ok(shell("`make -j2` of a C program", &script))
    };
    let trial = 4;
    let count = trial as f64 * times(bench, &make_of(trial)?)?;
    make_of(count as usize)
}

fn c_source(number: usize) -> Result<String> {
    let mut text = String::new();
    for index in 0..200 {
        writeln!(
            text,
            "double f{number}_{index}(double *x, int n) {{ double s = {index}; for (int i = 1; i < n; i++) {{ s += x[i] * x[i \
             - 1] / (s + {index}.5); if (s > 1e{index}) s -= x[i]; }} return s; }}"
        )?;
    }
    Ok(text)
}

/// Several crates, so that compilers run side by side.
fn cargo_build(bench: &Bench<'_>) -> Result<Program> {
    const CRATES: usize = 4;
    let folder = bench.folder.join("cargo");
    let build_of = |functions: usize| -> Result<Program> {
        fs::create_dir_all(&folder)?;
        let members: Vec<String> = (0..CRATES).map(|number| format!("\"c{number}\"")).collect();
        let workspace = format!("[workspace]\nresolver = \"2\"\nmembers = [{}]\n", members.join(", "));
        fs::write(folder.join("Cargo.toml"), workspace)?;
        for number in 0..CRATES {
            let member = folder.join(format!("c{number}"));
            fs::create_dir_all(member.join("src"))?;
            fs::write(
                member.join("Cargo.toml"),
                format!("[package]\nname = \"c{number}\"\nedition = \"2021\"\n"),
            )?;
            fs::write(member.join("src/lib.rs"), rust_source(functions)?)?;
        }
        // The path that cargo itself gives, because a proxy of cargo may need more than this machine has.
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let target = folder.join("target").display().to_string();
        let manifest = folder.join("Cargo.toml").display().to_string();
        let build =
            format!("CARGO_TARGET_DIR={target} '{cargo}' build -q --offline --manifest-path {manifest}");
        Ok(shell("`cargo build`", &format!("rm -rf {target}; {build}")))
    };
    let trial = 50;
    let functions = trial as f64 * times(bench, &build_of(trial)?)?;
    build_of(functions as usize)
}

fn rust_source(functions: usize) -> Result<String> {
    let mut text = String::new();
    for number in 0..functions {
        writeln!(
            text,
            "pub fn f{number}(words: &[String]) -> Vec<String> {{ let mut w: Vec<_> = words.iter().map(|w| \
             format!(\"{{w}}{number}\")).collect(); w.sort_by_key(|w| w.len() * {number}); w }}"
        )?;
    }
    Ok(text)
}
