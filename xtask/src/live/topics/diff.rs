//! `nyquist diff`: real changes are distinguished from noise.

use std::path::PathBuf;

use serde_json::Value;

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, expect_measured};
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("two_runs_of_one_program_differ_by_noise_alone", noise).in_pairs(SHARES),
    Test::new("a_slowdown_of_10_percent_is_found", slowdown).quick().in_pairs(SHARES),
    Test::new("several_runs_a_side_are_compared_by_means", several).in_pairs(SHARES),
    Test::new("runs_of_different_length_compare_by_share", share).in_pairs(SHARES),
    Test::new("folders_give_a_table_for_each_file", folders),
    Test::new("what_cannot_be_compared_is_refused", refused),
];

/// Records the program of three parts, each of which takes this many milliseconds.
fn parts(test: &Context<'_>, ms: [&str; 3]) -> Result<PathBuf, anyhow::Error> {
    let recording = test.record(&["parts", ms[0], ms[1], ms[2]]).options(&["--rate", "5000"]);
    Ok(recording.run_well()?.path)
}

fn diff(test: &Context<'_>, args: &[&str], files: &[&PathBuf]) -> Result<Value, anyhow::Error> {
    let call = test.nyquist(&["diff", "--json", "--limit", "0"]).args(args);
    let call = files.iter().fold(call, |call, file| call.path(file));
    Ok(serde_json::from_str(&call.run()?.succeeded()?.stdout_text())?)
}

/// The functions that differ by more than noise, and by how much each became slower.
fn changed(json: &Value) -> Vec<(String, f64)> {
    let functions = json["functions"].as_array().into_iter().flatten();
    let changed = functions.filter(|row| row["self"]["is_noise"] == false);
    changed
        .map(|row| {
            let relative = row["self"]["relative"].as_f64().unwrap_or(f64::INFINITY);
            (row["function"].as_str().unwrap_or_default().to_owned(), relative)
        })
        .collect()
}

fn noise(test: &Context<'_>) -> Verdict {
    let source = crate::paths::root().join("workloads/inlines.rs").display().to_string();
    let record = || {
        let output = test.fresh("out").display().to_string();
        let command = ["rustc", "--edition", "2024", "-O", "-o", &output, &source];
        test.record_command(&command).run_well()
    };
    let (one, other) = (record()?, record()?);
    let json = diff(test, &["--all"], &[&one.path, &other.path])?;
    let count = json["function_count"].as_u64().unwrap_or(0);
    expect(count > 100, format_args!("only {count} functions"))?;
    let changed = changed(&json);
    expect_measured(
        changed.len() as u64 * 20 < count,
        format_args!("{} of {count}: {changed:?}", changed.len()),
    )
}

fn slowdown(test: &Context<'_>) -> Verdict {
    let before = parts(test, ["300", "1500", "300"])?;
    let after = parts(test, ["300", "1650", "300"])?;
    let json = diff(test, &[], &[&before, &after])?;
    let changed = changed(&json);
    let found = changed.iter().find(|(name, _)| name == "second_part").map(|(_, change)| *change);
    let holds = found.is_some_and(|change| (change - 0.1).abs() < 0.05);
    expect_measured(holds, format_args!("second_part: {found:?} in {changed:?}"))?;
    // One in a hundred unchanged functions is reported as changed, because that is the certainty that is
    // required.
    let parts = changed.iter().filter(|(name, _)| name.ends_with("_part")).count();
    expect_measured(parts == 1, format_args!("{parts} parts are said to have changed: {changed:?}"))?;
    let call = |above: &str| {
        // The kernel's work for a program differs between runs.
        let call = test.nyquist(&["diff", "--lib", "parts", "--fail-above", above]);
        call.path(&before).path(&after).run()
    };
    let failed = call("5")?;
    expect_eq("the status above 5 %", failed.code(), 1)?;
    expect_contains("stderr", &failed.stderr, "slower by more than 5.0%: second_part (+")?;
    expect_contains("the table", &failed.stdout_text(), "second_part")?;
    call("20")?.succeeded()?;
    let verdict = |above: &str| -> Result<Value, anyhow::Error> {
        let call = test.nyquist(&["diff", "--json", "--lib", "parts", "--fail-above", above]);
        let answer: Value = serde_json::from_str(&call.path(&before).path(&after).run()?.stdout_text())?;
        Ok(answer["verdict"].clone())
    };
    let failed = verdict("5")?;
    expect_eq("the verdict", failed["passed"].as_bool(), Some(false))?;
    expect_eq("what is slower", failed["slower"][0].as_str(), Some("second_part"))?;
    expect_eq("the verdict above 20 %", verdict("20")?["passed"].as_bool(), Some(true))
}

fn folders(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["parts", "50", "200", "50"]).run_well()?;
    for (folder, names) in [("before", ["one", "two", "old"]), ("after", ["one", "two", "new"])] {
        std::fs::create_dir_all(test.path(folder))?;
        for name in names {
            std::fs::copy(&recorded.path, test.path(&format!("{folder}/{name}.json.gz")))?;
        }
    }
    let (before, after) = (test.path("before"), test.path("after"));
    let call = |args: &[&str]| test.nyquist(&["diff", "--all"]).args(args).path(&before).path(&after).run();
    let shown = call(&["--markdown", "--fail-above", "5"])?.succeeded()?;
    let text = shown.stdout_text();
    let headings: Vec<_> = text.lines().filter(|line| line.starts_with("### ")).collect();
    expect_eq("the headings", headings, vec!["### `one.json.gz`", "### `two.json.gz`"])?;
    let rows =
        text.lines().filter(|line| line.starts_with("| ") && line.ends_with("| `second_part` |")).count();
    expect_eq("rows of the function", rows, 2)?;
    expect_contains("the verdict", &text, "**Nothing is slower than accepted.**")?;
    for alone in ["before/old.json.gz", "after/new.json.gz"] {
        expect_contains("the warnings", &shown.stderr, &format!("{alone} has no counterpart"))?;
    }
    let json: Value =
        serde_json::from_str(&call(&["--json", "--fail-above", "5"])?.succeeded()?.stdout_text())?;
    let names: Vec<_> =
        json["comparisons"].as_array().into_iter().flatten().map(|it| it["name"].as_str()).collect();
    expect_eq("the comparisons", names, vec![Some("one.json.gz"), Some("two.json.gz")])?;
    expect_eq("the whole verdict", json["passed"].as_bool(), Some(true))
}

fn several(test: &Context<'_>) -> Verdict {
    let run = |ms| parts(test, ["100", ms, "100"]);
    let before = [run("400")?, run("400")?, run("400")?];
    let after = [run("600")?, run("600")?, run("600")?];
    let call = before.iter().fold(test.nyquist(&["diff"]), |call, file| call.path(file)).args(&["--after"]);
    let text = after.iter().fold(call, |call, file| call.path(file)).run()?.succeeded()?.stdout_text();
    expect_contains("the heading", &text, "mean of 3 runs")?;
    let slower = text.split("Slower").nth(1).unwrap_or_default();
    expect_measured(slower.contains("second_part"), format_args!("second_part did get slower:\n{text}"))?;
    expect_measured(!slower.contains("first_part"), format_args!("first_part did not:\n{text}"))
}

fn share(test: &Context<'_>) -> Verdict {
    let short = parts(test, ["200", "200", "200"])?;
    let long = parts(test, ["500", "500", "500"])?;
    let parts = |args: &[&str]| -> Result<usize, anyhow::Error> {
        let changed = changed(&diff(test, args, &[&short, &long])?);
        Ok(changed.iter().filter(|(name, _)| name.ends_with("_part")).count())
    };
    let (by_share, by_time) = (parts(&["--share"])?, parts(&[])?);
    expect_measured(by_share == 0, format_args!("{by_share} parts with another share"))?;
    expect_measured(by_time == 3, format_args!("{by_time} parts with another time"))
}

fn refused(test: &Context<'_>) -> Verdict {
    let file = test.record(&["shares", "50"]).run_well()?.path;
    let check = |args: &[&str], printed: &str| -> Verdict {
        let finished = test.nyquist(&["diff", "--fail-above", "5"]).path(&file).args(args).run()?;
        expect_eq("the status", finished.code(), 2)?;
        expect_contains("stderr", &finished.stderr, printed)
    };
    check(&[], "a profile before and one after are needed")?;
    check(&["missing.json"], "cannot read missing.json: no such file")?;
    check(&[&file.display().to_string(), "--thread", "x"], "no thread of the profile matches `x`")?;
    let folded = test.path("x.folded");
    std::fs::write(&folded, "main;f 3\n")?;
    check(&[&folded.display().to_string()], "x.folded counts samples")?;
    let of_both = test.nyquist(&["diff", "--all"]).path(&folded).path(&folded).run()?.succeeded()?;
    expect_contains("what is compared", &of_both.stdout_text(), "samples before 3, after 3:")
}
