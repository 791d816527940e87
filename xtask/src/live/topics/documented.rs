//! The commands that the documents show: each one runs, on a program, a process and profiles of the names that the
//! documents use.
//!
//! They take minutes, so each of two turns has every other one. Those that the last commit has changed run always.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::cargo::manifest;
use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, need_root};
use super::invocation::{Finished, Running};
use super::test::Test;
use super::tool_chain::with_tool_chain;
use crate::documented::{Mark, all};

pub(super) const TESTS: &[Test] = &[alone("changed_commands_of_the_documents_run", changed)];

pub(super) const FIRST_HALF: &[Test] = &[alone("every_odd_command_runs", first_half)];

pub(super) const SECOND_HALF: &[Test] = &[alone("every_even_command_runs", second_half)];

const fn alone(name: &'static str, run: fn(&Context<'_>) -> Verdict) -> Test {
    let test = Test { limit: Duration::from_mins(10), ..Test::new(name, run) };
    test.exclusive("records the whole machine, again and again")
}

/// The names that the documents have for programs.
const PROGRAMS: &[&str] = &[
    "app",
    "server",
    "old",
    "new",
    "client",
    "bench-old",
    "bench-new",
    "bench-base",
    "bench-head",
    "target/release/server",
    "target/release/bench",
    "app.exe",
];

/// The names that the documents have for profiles.
const PROFILES: &[&str] = &[
    "profile.json.gz",
    "before.json.gz",
    "after.json.gz",
    "before",
    "after",
    "old",
    "new",
    "b1",
    "b2",
    "b3",
    "a1",
    "a2",
    "a3",
    "p.json.gz",
    "BEFORE",
    "AFTER",
    "unlocked.json.gz",
    "base/one.json.gz",
    "head/one.json.gz",
    "server.json.gz",
    "slow.json.gz",
    "base-1.json.gz",
    "head-1.json.gz",
    "old.pb.gz",
    "new.pb.gz",
    "B1",
    "B2",
    "B3",
    "A1",
    "A2",
    "A3",
];

/// The commands that look at a profile without more words.
const READING: &[&str] = &["report", "list", "doctor", "query", "cache", "guide", "flamegraph", "script"];

fn first_half(test: &Context<'_>) -> Verdict {
    try_all(test, &every_other(0)?)
}

fn second_half(test: &Context<'_>) -> Verdict {
    try_all(test, &every_other(1)?)
}

/// The commands that the last commit, or a change since then, has added to the documents.
fn changed(test: &Context<'_>) -> Verdict {
    let added = added_lines()?;
    let is_new = |text: &str| {
        let first = text.lines().next().unwrap_or_default();
        added.iter().any(|line| line.contains(first))
    };
    let commands: Commands = commands()?.into_iter().filter(|(text, _)| is_new(text)).collect();
    if commands.is_empty() { Ok(()) } else { try_all(test, &commands) }
}

/// The lines that the documents of the last commit's parent do not have. Of a shallow clone, none.
fn added_lines() -> Result<Vec<String>> {
    let root = crate::paths::root();
    let parent = ["diff", "--unified=0", "--no-color", "--no-ext-diff", "HEAD^", "--", "*.md"];
    let output = Command::new("git").args(parent).current_dir(root).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| line.strip_prefix('+')).map(str::to_owned).collect())
}

/// Commands, each with a place where it is.
type Commands = BTreeMap<String, String>;

/// All commands that no other test runs.
fn commands() -> Result<Commands> {
    let mut places = Commands::new();
    for shown in all(&crate::paths::root())? {
        if shown.mark == Mark::None && shown.is_own() {
            places.entry(shown.text).or_insert(shown.place);
        }
    }
    Ok(places)
}

fn every_other(first: usize) -> Result<Commands> {
    Ok(commands()?.into_iter().skip(first).step_by(2).collect())
}

fn try_all(test: &Context<'_>, places: &Commands) -> Verdict {
    need_root()?;
    prepare(test)?;
    let targets = [call(test, "./app forever").start()?, call(test, "./server forever").start()?];
    let mut faults = Vec::new();
    for (text, place) in places {
        if let Err(fault) = try_one(test, text, targets[0].pid()) {
            faults.push(format!("{place}: `{text}`: {fault:#}"));
        }
    }
    for target in targets {
        target.signal(libc::SIGKILL)?;
        target.wait()?;
    }
    expect(
        faults.is_empty(),
        format_args!("{} of {} commands:\n{}", faults.len(), places.len(), faults.join("\n")),
    )
}

/// Makes the programs, the profiles and a package.
fn prepare(test: &Context<'_>) -> Result<()> {
    for folder in ["target/release", "base", "head", "src", "benches", "examples", "tests"] {
        fs::create_dir_all(test.path(folder))?;
    }
    for program in PROGRAMS {
        fs::copy(test.workload("documented"), test.path(program))?;
    }
    fs::write(test.path("Cargo.toml"), manifest("app", ""))?;
    for source in ["src/main.rs", "benches/sorting.rs", "examples/demo.rs", "tests/speed.rs"] {
        fs::write(test.path(source), "fn main() {}\n#[test]\nfn deep_nesting() {}\n")?;
    }
    let events = "page-faults,context-switches";
    let record = format!("nyquist record -q -s --off-cpu -e {events} -o made.json.gz ./app");
    call(test, &record).run()?.succeeded()?;
    for profile in PROFILES {
        // Programs and profiles have the same names on different pages.
        if !PROGRAMS.contains(profile) {
            fs::copy(test.path("made.json.gz"), test.path(profile))?;
        }
    }
    for command in [
        "nyquist record -q -s --perf-data perf.data -o with.json.gz ./app",
        "nyquist export made.json.gz -o cpu.pb.gz",
    ] {
        call(test, command).run()?.succeeded()?;
    }
    Ok(())
}

fn call<'a>(test: &'a Context<'a>, line: &str) -> super::invocation::Invocation<'a> {
    with_tool_chain(test, test.program("bash").args(&["-c", line])).env("BROWSER", "true")
}

/// Runs a command, or, where it is only a part of one, looks for its options in the help.
fn try_one(test: &Context<'_>, text: &str, pid: u32) -> Result<()> {
    // Commands before it have recorded into files of the same names.
    for name in ["profile.json.gz", "before.json.gz", "after.json.gz"] {
        fs::copy(test.path("made.json.gz"), test.path(name))?;
    }
    let own = text.strip_prefix("sudo ").unwrap_or(text);
    let (is_cargo, args) = match own.strip_prefix("cargo nyquist") {
        Some(args) => (true, args),
        None => (false, own.trim_start_matches("nyquist ")),
    };
    let mut args = args.split_whitespace();
    let command = args.next().unwrap_or_default();
    let options: Vec<&str> = args.collect();
    let is_part = text.contains(['[', '…'])
        || !is_cargo && !READING.contains(&command) && options.iter().all(|word| word.starts_with('-'));
    if is_part {
        return has_help(test, is_cargo, command, &options);
    }
    let line = prepared(text, pid);
    let finished = ended(call(test, &line).start()?)?;
    // A comparison says by its status whether something is slower.
    let is_verdict = line.contains("--fail-above") && finished.code() == 1;
    if !is_verdict {
        finished.succeeded()?;
    }
    Ok(())
}

/// The command with this machine's values in place of the document's.
fn prepared(text: &str, pid: u32) -> String {
    let own = text.strip_prefix("sudo ").unwrap_or(text).replace(" sudo ", " ");
    let changes = [
        (" -d 10", " -d 0.2"),
        (" -d 2", " -d 0.2"),
        ("sleep 10", "sleep 0.2"),
        ("sleep 5", "sleep 0.2"),
        ("-r 20 ", "-r 2 "),
        ("-r 10 ", "-r 2 "),
        (" list PROGRAM", " list"),
        (" FILE", " profile.json.gz"),
        (" OUT", " out.json.gz"),
        (" NAME", " app"),
        (" PROGRAM", " app"),
        (" FUNCTION", " parse"),
        (" PID", " 4711"),
        (" TID", " 4711"),
        ("--range 1.2s-3s", "--range 0s-3s"),
        ("--range 1s-3s", "--range 0s-3s"),
        ("--range 2s-5s", "--range 0s-5s"),
        ("--thread worker", "--thread app"),
        ("doctor profile.json.gz", "doctor ./app"),
        ("nyquist top ", "nyquist top --batch -n 1 "),
        ("--batch -n 1 --web", "--web"),
        ("nyquist setup", "nyquist setup --dry-run"),
        ("--dry-run --dry-run", "--dry-run"),
    ];
    let changed = changes.iter().fold(own, |line, (from, to)| line.replace(from, to));
    let changed = changed.replace("4711", &pid.to_string());
    // A recording of running processes ends by itself.
    let is_endless =
        [" -p ", " -t ", " -a "].iter().any(|word| changed.contains(word)) && !changed.contains(" -d ");
    let changed =
        if is_endless { changed.replace("nyquist record ", "nyquist record -d 0.2 ") } else { changed };
    match changed.strip_prefix("cargo nyquist") {
        Some(rest)
            if rest.contains(" --dry-run") || rest.contains("--help") || rest.contains("completions") =>
        {
            changed
        }
        Some(rest) => {
            let end = [" -- ", " && "].iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
            let (options, own) = rest.split_at(end);
            format!("cargo nyquist{options} --dry-run{own}")
        }
        None => changed,
    }
}

/// Whether the help of a command has these options.
fn has_help(test: &Context<'_>, is_cargo: bool, command: &str, options: &[&str]) -> Result<()> {
    let program = if is_cargo { "cargo nyquist" } else { "nyquist" };
    let help = call(test, &format!("{program} {command} --help")).run()?.succeeded()?.stdout_text();
    for option in options.iter().filter(|option| option.starts_with("--")) {
        let name = option.split('=').next().unwrap_or_default();
        let found = expect_contains(&format!("help of {command}"), &help, name);
        found.map_err(|stop| anyhow::anyhow!("{stop:?}"))?;
    }
    Ok(())
}

/// Waits for the end of a command, and ends one that serves a profile until it is ended.
fn ended(running: Running<'_>) -> Result<Finished> {
    let serves = || (running.stdout_so_far() + &running.stderr_so_far()).contains("Ctrl-C ends");
    if running.wait_until("it serves", serves).is_ok() {
        running.signal(libc::SIGINT)?;
    }
    running.wait()
}
