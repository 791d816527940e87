//! Running one step: prints a heading, the step's own output, and how long it took.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::tally::Tally;

/// Runs a step under a heading and counts it.
pub(crate) fn step(tally: &mut Tally, name: &str, run: impl FnOnce(&mut Tally) -> Result<bool>) {
    match timed(name, || run(tally)) {
        Ok(true) => tally.pass(),
        Ok(false) | Err(_) => tally.fail(name),
    }
}

/// Runs a step that counts its own tests. An error of the step itself counts as one more failure.
pub(crate) fn counting_step(tally: &mut Tally, name: &str, run: impl FnOnce(&mut Tally) -> Result<bool>) {
    if timed(name, || run(tally)).is_err() {
        tally.fail(name);
    }
}

fn timed(name: &str, run: impl FnOnce() -> Result<bool>) -> Result<bool> {
    println!("\n== {name} ==");
    let began = Instant::now();
    let outcome = run();
    if let Err(error) = &outcome {
        println!("error: {error:#}");
    }
    let verdict = if matches!(outcome, Ok(true)) { "passed" } else { "FAILED" };
    println!("-- {name}: {verdict} in {:.1} s", began.elapsed().as_secs_f64());
    outcome
}

/// A cargo command at the workspace's root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(crate::paths::root());
    command
}

/// Runs a command to its end. Returns whether it succeeded.
pub(crate) fn succeeds(mut command: Command) -> Result<bool> {
    println!("$ {}", in_words(&command));
    Ok(command.status().with_context(|| format!("cannot start {command:?}"))?.success())
}

/// Like `succeeds`, but passes every line of the standard output to `see` before printing it.
pub(crate) fn succeeds_seen(mut command: Command, mut see: impl FnMut(&str)) -> Result<bool> {
    println!("$ {}", in_words(&command));
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start {command:?}"))?;
    let output = child.stdout.take().context("the output is piped")?;
    for line in BufReader::new(output).lines() {
        let line = line?;
        see(&line);
        println!("{line}");
    }
    Ok(child.wait()?.success())
}

/// Like `succeeds`, but prints nothing. A program that does not exist does not succeed.
pub(crate) fn succeeds_quietly(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn in_words(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let args = std::iter::once(program).chain(command.get_args());
    args.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
