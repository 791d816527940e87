//! docs/rust.md: its commands are run unchanged, and its statements about the recordings must hold.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, expect_measured, skip};
use super::page::follow;
use super::profile::{Frame, Profile};
use super::test::Test;
use super::tool_chain::with_tool_chain;

/// Why some of these tests run alone.
const HEAVY: &str = "builds with all CPUs";

pub(super) const TESTS: &[Test] = &[Test {
    limit: Duration::from_mins(10),
    ..Test::new("each_step_from_slow_to_fast_is_as_on_the_page", steps)
}
.exclusive(HEAVY)];

/// The files that the page names for its steps, in this order. The program of each step is kept beside its
/// file, without the ending.
const SLOW: &str = "slow.json.gz";
const SET: &str = "set.json.gz";
const QUICK_HASH: &str = "quick_hash.json.gz";
const ONE_BUFFER: &str = "one_buffer.json.gz";
const AGAIN: &str = "again.json.gz";
const STEPS: [&str; 5] = [SLOW, SET, QUICK_HASH, ONE_BUFFER, AGAIN];
const ENDING: &str = ".json.gz";
/// The numbers of the additional recordings of each step.
const RUNS: [u32; 3] = [1, 2, 3];

fn steps(test: &Context<'_>) -> Verdict {
    follow_the_page(test)?;
    record_in_turns(test)?;
    each_step_is_faster(test)?;
    the_list_is_found(test)?;
    the_hashing_is_found(test)?;
    the_memory_is_found(test)?;
    nothing_changes_by_itself(test)
}

/// Runs every command of the page in a copy of the program's folder, and compares what they print with the page.
fn follow_the_page(test: &Context<'_>) -> Verdict {
    let source = crate::paths::root().join("workloads/word_count");
    test.program("cp").args(&["-r"]).path(&source).path(&test.path("word_count")).run()?.succeeded()?;
    let manifest = test.path("word_count/Cargo.toml").display().to_string();
    let fetch = test.program("cargo").args(&["fetch", "--locked", "--manifest-path", &manifest]);
    if !with_tool_chain(test, fetch).run()?.status.success() {
        return skip("the registry of packages cannot be reached");
    }
    let page = fs::read_to_string(crate::paths::root().join("docs/rust.md"))?;
    follow(test, &page, "", with_program_kept)
}

/// A command of the page. If it records, it is followed by a command that keeps the built program.
fn with_program_kept(command: &str) -> String {
    let recorded = command.strip_prefix("cargo nyquist -so ").and_then(|rest| rest.split(ENDING).next());
    let keep = |name| format!("{command}\ncp target/release/word_count {name}");
    recorded.map_or_else(|| command.to_owned(), keep)
}

/// Records the programs of all steps again, in turns. The speed of a shared machine varies by a third. In
/// turns, each program has its share of slow and fast times.
fn record_in_turns(test: &Context<'_>) -> Verdict {
    let programs = STEPS.map(|name| name.trim_end_matches(ENDING)).join(" ");
    let runs = RUNS.map(|run| run.to_string()).join(" ");
    let script = format!(
        "cd word_count; for run in {runs}; do for program in {programs}; do \
         nyquist record -so $program-$run{ENDING} -- ./$program text.txt; done; done"
    );
    with_tool_chain(test, test.program("sh").args(&["-exc", &script])).run()?.succeeded()?;
    Ok(())
}

fn file(test: &Context<'_>, name: &str) -> PathBuf {
    test.path("word_count").join(name)
}

fn profile(test: &Context<'_>, name: &str) -> Result<Profile> {
    Profile::read(&file(test, name))
}

/// The JSON output of a command for one or two profiles.
fn ask(test: &Context<'_>, args: &[&str], files: &[&str]) -> Result<Value> {
    let call = test.nyquist(args).args(&["--json"]);
    let call = files.iter().fold(call, |call, name| call.path(&file(test, name)));
    Ok(serde_json::from_str(&call.run()?.succeeded()?.stdout_text())?)
}

/// The difference in CPU time between the additional recordings of two steps.
fn whole_difference(test: &Context<'_>, before: &str, after: &str) -> Result<Value> {
    let runs =
        |step: &str| RUNS.map(|run| file(test, &format!("{}-{run}{ENDING}", step.trim_end_matches(ENDING))));
    let call = runs(before).iter().fold(test.nyquist(&["diff", "--json"]), |call, run| call.path(run));
    let call = runs(after).iter().fold(call.args(&["--after"]), |call, run| call.path(run));
    let diff: Value = serde_json::from_str(&call.run()?.succeeded()?.stdout_text())?;
    Ok(diff["whole"].clone())
}

/// On the page, the CPU time of the steps is 0.57, 0.73 and 0.80 of the step before, and 0.33 in total. The
/// limits allow for other machines.
fn each_step_is_faster(test: &Context<'_>) -> Verdict {
    let check = |before: &str, after: &str, at_most: f64| -> Verdict {
        let whole = whole_difference(test, before, after)?;
        let ratio =
            whole["after"].as_f64().zip(whole["before"].as_f64()).map(|(after, before)| after / before);
        expect_measured(
            ratio.is_some_and(|ratio| ratio < at_most),
            format_args!("{before} to {after}: {ratio:?}"),
        )
    };
    check(SLOW, SET, 0.75)?;
    check(SET, QUICK_HASH, 0.92)?;
    check(QUICK_HASH, ONE_BUFFER, 0.95)?;
    check(SLOW, ONE_BUFFER, 0.5)
}

/// `memcmp` is first in the report, `contains` takes half of the program's time, and its line is the hottest.
fn the_list_is_found(test: &Context<'_>) -> Verdict {
    let report = ask(test, &["report", "--limit", "1"], &[SLOW])?;
    let first = &report["functions"][0];
    expect_contains("the first function", first["function"].as_str().unwrap_or_default(), "memcmp")?;
    let slow = profile(test, SLOW)?;
    let share = slow.share_with(|frame| frame.function.ends_with("contains"));
    expect_measured(share > 0.4, format_args!("`contains` has {share:.3}"))?;
    let share = slow.total_share("word_count::count_words");
    expect_measured(share > 0.9, format_args!("`count_words` has {share:.3}"))?;
    // The source file has changed since then, but the profile contains the line numbers.
    let annotated = ask(test, &["annotate", "count_words", "--source"], &[SLOW])?;
    let own = annotated["files"].as_array().into_iter().flatten();
    let mut own = own.filter(|file| file["file"].as_str().is_some_and(|name| name.ends_with("src/main.rs")));
    let lines = own.next().and_then(|file| file["lines"].as_array()).context("no lines of its own file")?;
    let hottest =
        lines.iter().max_by_key(|line| line["total"].as_u64()).and_then(|line| line["line"].as_u64());
    expect_eq("the hottest line", hottest, Some(line_of(".contains(")?))?;
    let diff = ask(test, &["diff", "--limit", "0"], &[SLOW, SET])?;
    let rows = diff["functions"].as_array().into_iter().flatten();
    let mut faster =
        rows.filter(|row| row["self"]["is_noise"] == false && row["self"]["change"].as_f64() < Some(0.0));
    let found = faster.any(|row| row["function"].as_str().is_some_and(|name| name.contains("memcmp")));
    expect(found, "`memcmp` is not said to have got faster")
}

/// The line with this text in the first version of the program.
fn line_of(text: &str) -> Result<u64> {
    let source = fs::read_to_string(crate::paths::root().join("workloads/word_count/src/main.rs"))?;
    let line = source.lines().position(|line| line.contains(text)).context("no such line")?;
    Ok(line as u64 + 1)
}

fn the_hashing_is_found(test: &Context<'_>) -> Verdict {
    let hashing = |name| -> Result<f64> {
        Ok(profile(test, name)?.share_with(|frame| frame.function.contains("sip::")))
    };
    let (before, after) = (hashing(SET)?, hashing(QUICK_HASH)?);
    expect_measured(
        before > 0.12 && after == 0.0,
        format_args!("SipHash had {before:.3} and has {after:.3}"),
    )?;
    let picture = fs::read_to_string(file(test, "flamegraph.svg"))?;
    expect_contains("the flame graph", &picture, "hash_one")
}

fn the_memory_is_found(test: &Context<'_>) -> Verdict {
    // Some functions of the kernel also free something, but `count_words` does not call them.
    let memory = |name| -> Result<f64> {
        let has = |stack: &[&Frame], part: &str| stack.iter().any(|frame| frame.function.contains(part));
        let fits =
            |stack: &[&Frame]| has(stack, "count_words") && (has(stack, "malloc") || has(stack, "free"));
        Ok(profile(test, name)?.share_of_stacks(fits))
    };
    let (before, after) = (memory(QUICK_HASH)?, memory(ONE_BUFFER)?);
    expect_measured(
        before > 0.08 && after < before / 4.0,
        format_args!("memory had {before:.3} and has {after:.3}"),
    )
}

/// Two recordings of the same program differ by noise, and the page's table marks this as noise.
fn nothing_changes_by_itself(test: &Context<'_>) -> Verdict {
    let diff = ask(test, &["diff", "--all", "--limit", "0"], &[ONE_BUFFER, AGAIN])?;
    let (noise, all) = (diff["noise_count"].as_u64(), diff["function_count"].as_u64());
    let few = noise.zip(all).is_some_and(|(noise, all)| (all - noise) * 20 < all);
    expect_measured(few, format_args!("{noise:?} of {all:?} functions are noise"))?;
    let whole = whole_difference(test, ONE_BUFFER, AGAIN)?;
    let is_noise = whole["is_noise"].as_bool() == Some(true);
    expect_measured(is_noise, format_args!("the whole is not noise: {whole}"))
}
