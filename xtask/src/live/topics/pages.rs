//! The pages that take a program from slow to fast, and those that show answers: their commands run, and print what
//! they show.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::context::Context;
use super::expect::{Verdict, expect_measured, skip};
use super::page::follow;
use super::python::managed_python;
use super::test::Test;
use super::tool_chain::with_tool_chain;

/// Why these tests run alone.
const HEAVY: &str = "builds programs, and measures them";

pub(super) const TESTS: &[Test] = &[
    long("readme", readme),
    long("the_page_for_agents", agents),
    long("the_page_of_cargo_nyquist", cargo),
    long("a_cpp_program_from_slow_to_fast", cpp),
    long("a_python_extension_from_slow_to_fast", python),
    long("a_tokio_server_from_slow_to_fast", tokio),
];

const fn long(name: &'static str, run: fn(&Context<'_>) -> Verdict) -> Test {
    Test { limit: Duration::from_mins(10), ..Test::new(name, run) }.exclusive(HEAVY)
}

fn page(name: &str) -> Result<String> {
    fs::read_to_string(crate::paths::root().join(name)).with_context(|| format!("cannot read {name}"))
}

/// A copy of a folder of `workloads` in the test's own.
fn copied(test: &Context<'_>, name: &str) -> Result<PathBuf> {
    let source = crate::paths::root().join("workloads").join(name);
    test.program("cp").args(&["-r"]).path(&source).path(&test.path(name)).run()?.succeeded()?;
    Ok(test.path(name))
}

/// The package `word_count` with its text.
fn word_count(test: &Context<'_>) -> Verdict {
    let folder = copied(test, "word_count")?;
    let run = |line: &str| {
        let line = format!("cd '{}' && {line}", folder.display());
        with_tool_chain(test, test.program("bash").args(&["-ec", &line])).run()
    };
    if !run("cargo fetch --locked")?.status.success() {
        return skip("the registry of packages cannot be reached");
    }
    run("cargo run -q --release --example make_text > text.txt")?.succeeded()?;
    Ok(())
}

fn readme(test: &Context<'_>) -> Verdict {
    word_count(test)?;
    follow(test, &page("README.md")?, "word_count", str::to_owned)
}

/// The handles differ between builds, so they are looked up.
fn agents(test: &Context<'_>) -> Verdict {
    word_count(test)?;
    let with_handles = |command: &str| {
        let handle = |name: &str| {
            format!(
                "$(nyquist query $FILE functions '{name}' $STATE --limit 1 --json | grep -om1 'f-[0-9]*')"
            )
        };
        let file = command.split_whitespace().find(|word| word.ends_with(".json.gz")).unwrap_or_default();
        let state = if command.contains("--off-cpu") { "--off-cpu" } else { "" };
        let name = if file.starts_with("server") { "worker" } else { "count_words" };
        let args = command.split_whitespace().map(|word| match word.strip_prefix("f-") {
            Some(_) => handle(name).replace("$FILE", file).replace("$STATE", state),
            None => word.to_owned(),
        });
        args.collect::<Vec<_>>().join(" ")
    };
    fs::copy(test.workload("documented"), test.path("word_count/server"))?;
    follow(test, &page("docs/agents.md")?, "word_count", with_handles)
}

fn cargo(test: &Context<'_>) -> Verdict {
    word_count(test)?;
    let program = test.path("word_count/src/main.rs");
    fs::write(
        program,
        "fn main() {\n    let sum = (0..300_000_000_u64).fold(0, |sum, i| sum ^ std::hint::black_box(i));\n    std::process::exit(i32::from(sum == 1));\n}\n",
    )?;
    follow(test, &page("docs/cargo.md")?, "word_count", str::to_owned)
}

fn cpp(test: &Context<'_>) -> Verdict {
    copied(test, "order_totals")?;
    follow(test, &page("docs/cpp.md")?, "order_totals", str::to_owned)?;
    each_is_faster(test, "order_totals", &["slow", "reference", "one_pass", "no_stream"])
}

fn python(test: &Context<'_>) -> Verdict {
    let with_python = |command: &str| format!("PATH={}:$PATH\n{command}", managed_python().display());
    let check = with_python(
        "python3.12 -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path(\"include\") + \"/Python.h\"))'",
    );
    if !test.program("bash").args(&["-ec", &check]).run()?.status.success() {
        return skip("python3.12 is not installed with its headers");
    }
    copied(test, "edit_distance")?;
    follow(test, &page("docs/python.md")?, "edit_distance", with_python)?;
    each_is_faster(test, "edit_distance", &["slow", "numbers", "break"])
}

fn tokio(test: &Context<'_>) -> Verdict {
    fs::create_dir_all(test.path("server"))?;
    fs::copy(test.workload("async_server"), test.path("server/async_server"))?;
    follow(test, &page("docs/async.md")?, "server", str::to_owned)
}

/// Each recording of a page has less CPU time than the one before.
fn each_is_faster(test: &Context<'_>, folder: &str, names: &[&str]) -> Verdict {
    let used = |name: &&str| -> Result<f64> {
        let profile = test.path(folder).join(format!("{name}.json.gz"));
        let report = test.nyquist(&["query", "--json"]).path(&profile).run()?.succeeded()?;
        let report: serde_json::Value = serde_json::from_str(&report.stdout_text())?;
        report["cpu_ms"].as_f64().context("no CPU time")
    };
    let used = names.iter().map(used).collect::<Result<Vec<_>>>()?;
    expect_measured(used.is_sorted_by(|before, after| after < before), format_args!("{names:?}: {used:?} ms"))
}
