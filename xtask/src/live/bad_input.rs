//! Bad input gets one clear sentence and a non-zero status.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq};
use super::harness::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("a_file_that_is_not_there", |test| {
        refused(test, &test.path("missing.json.gz"), "no such file")
    })
    .parallel(),
    Test::new("a_folder", |test| refused(test, &test.path(""), "directory")).parallel(),
    Test::new("a_text_file", |test| refused(test, &written(test, b"hello, not a profile\n")?, "not a"))
        .quick()
        .parallel(),
    Test::new("an_empty_file", |test| refused(test, &written(test, b"")?, "empty")).parallel(),
    Test::new("a_program", |test| {
        refused(test, &test.workload("shares"), "not a")?;
        refused(test, &test.workload("shares"), "nyquist record")
    })
    .parallel(),
    Test::new("json_that_is_no_profile", |test| refused(test, &written(test, b"{\"a\":[1,2]}")?, "not a"))
        .parallel(),
    Test::new("a_profile_newer_than_known", newer).parallel(),
    Test::new("a_truncated_gzip", truncated).parallel(),
    Test::new("a_profile_with_indexes_beyond_its_tables", wild_indexes).parallel(),
    Test::new("a_profile_nested_without_end", |test| {
        refused(test, &written(test, &[b'['; 200_000])?, "not a")
    })
    .parallel(),
    Test::new("a_file_that_may_not_be_read", forbidden).parallel(),
    Test::new("a_file_behind_an_option_as_of_perf", behind_an_option).quick().parallel(),
    Test::new("a_rate_that_makes_no_sense", rate).quick().parallel(),
];

fn written(test: &Context<'_>, bytes: &[u8]) -> Result<PathBuf, anyhow::Error> {
    let path = test.fresh("input.json");
    fs::write(&path, bytes)?;
    Ok(path)
}

fn gzipped(test: &Context<'_>, bytes: &[u8]) -> Result<PathBuf, anyhow::Error> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    written(test, &encoder.finish()?)
}

/// Both reading commands refuse the file, with a sentence that names it and says why.
fn refused(test: &Context<'_>, path: &Path, why: &str) -> Verdict {
    for command in [&["report"][..], &["load", "--no-open"]] {
        let finished = test.nyquist(command).path(path).run()?;
        let text = &finished.stderr;
        expect(!finished.status.success(), format_args!("{command:?} accepted {}", path.display()))?;
        expect(finished.status.code().is_some(), format_args!("{command:?} was ended by a signal"))?;
        let name = path.display().to_string();
        expect_contains("stderr", text, &name)?;
        expect_contains("stderr but for the path", &text.replace(&name, "").to_lowercase(), why)?;
        let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("hint:")).count();
        expect(lines == 1 && !text.contains("panicked"), format_args!("not one sentence: {text}"))?;
        expect(finished.stdout.is_empty(), "something was printed on the standard output")?;
    }
    Ok(())
}

/// Who types what perf takes is told what to type.
fn behind_an_option(test: &Context<'_>) -> Verdict {
    for command in ["report", "load", "import", "script", "export", "flamegraph"] {
        let finished = test.nyquist(&[command, "-i", "perf.data"]).run()?;
        expect(finished.status.code() == Some(2), format_args!("{command}: {}", finished.status))?;
        expect_contains("stderr", &finished.stderr, &format!("type: nyquist {command} perf.data"))?;
        expect(!finished.stderr.contains("as a value"), "a tip that leads nowhere")?;
    }
    Ok(())
}

/// One sentence that says what would work, and the command is not started.
fn rate(test: &Context<'_>) -> Verdict {
    let started = test.path("started");
    for (command, rate) in [("record", "0"), ("record", "abc"), ("record", "99999999"), ("top", "0")] {
        let finished = test.nyquist(&[command, "-r", rate, "--", "touch"]).path(&started).run()?;
        expect(finished.status.code() == Some(2), format_args!("{command} -r {rate}: {}", finished.status))?;
        let error = "a rate is a whole number from 1 to 1000000, such as 1000";
        let wanted = format!(
            "error: invalid value '{rate}' for '--rate <HZ>': {error}\n\nFor more information, try '--help'.\n"
        );
        expect_eq("stderr", finished.stderr, wanted)?;
        expect(!started.exists(), "the command was started")?;
    }
    Ok(())
}

fn newer(test: &Context<'_>) -> Verdict {
    let profile =
        json!({"meta": {"preprocessedProfileVersion": 9999, "version": 99}, "threads": [], "libs": []});
    refused(test, &gzipped(test, profile.to_string().as_bytes())?, "9999")
}

fn truncated(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "50"]).run_well()?;
    let bytes = fs::read(&recorded.path)?;
    for length in [bytes.len() - 1, bytes.len() - 9, bytes.len() / 2, 12] {
        let path = written(test, &bytes[..length])?;
        refused(test, &path, "cut off")?;
    }
    Ok(())
}

fn wild_indexes(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "50"]).run_well()?;
    for table in ["/shared/stackTable/frame/0", "/shared/frameTable/func/0", "/shared/funcTable/name/0"] {
        let mut json = recorded.profile.json.clone();
        if let Some(index) = json.pointer_mut(table) {
            *index = json!(99_999_999);
        }
        for command in [&["report"][..], &["report", "--json"]] {
            let path = gzipped(test, json.to_string().as_bytes())?;
            let finished = test.nyquist(command).path(&path).run()?;
            let panicked = finished.stderr.contains("panicked") || finished.status.code().is_none();
            expect(!panicked, format_args!("{command:?} of {table}: {}", finished.stderr))?;
        }
    }
    Ok(())
}

fn forbidden(test: &Context<'_>) -> Verdict {
    let path = written(test, b"{}")?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o000);
    fs::set_permissions(&path, mode)?;
    let finished = test.nyquist(&["report"]).path(&path).by_plain_user().run()?;
    expect(!finished.status.success(), "it was accepted")?;
    expect_contains("stderr", &finished.stderr.to_lowercase(), "permission denied")
}
