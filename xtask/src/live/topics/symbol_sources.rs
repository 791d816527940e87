//! Other sources of names than the files themselves: the cache, debuginfod, and the user's folders.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, need_root};
use super::file_server::FileServer;
use super::invocation::Invocation;
use super::json_docs::Documents;
use super::names::expect_lines;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("what_was_looked_up_is_kept_shown_and_removed", retained).quick(),
    Test::new("without_the_cache_nothing_is_kept", not_kept),
    Test::new("under_sudo_the_cache_is_the_users", users_cache),
    Test::new("lines_are_there_by_debuginfod", by_debuginfod).quick(),
    Test::new("debuginfod_lies_and_is_not_trusted", lying),
    Test::new("source_comes_by_debuginfod", source),
    Test::new("ctrl_c_gives_up_a_download_and_saves", gives_up),
    Test::new("doctor_shows_every_place", doctor),
];

fn cache(test: &Context<'_>, args: &[&str]) -> Result<Value> {
    let finished = test.nyquist(&["cache", "--json"]).args(args).run()?.succeeded()?;
    Ok(serde_json::from_str(&finished.stdout_text())?)
}

/// How many answers about the workload `shares` the cache contains.
fn answers(test: &Context<'_>) -> Result<u64> {
    let shown = cache(test, &[])?;
    let modules = shown["answers"]["modules"].as_array().context("no modules")?;
    let own = |module: &&Value| module["path"].as_str().is_some_and(|path| path.ends_with("/shares"));
    Ok(modules.iter().filter(own).filter_map(|module| module["answers"].as_u64()).sum())
}

fn retained(test: &Context<'_>) -> Verdict {
    expect_eq("before the first recording", answers(test)?, 0)?;
    expect_lines(&test.record(&["shares", "300"]).run_well()?)?;
    let first = answers(test)?;
    expect(first > 3, format_args!("{first} answers are kept of shares"))?;
    // With the cache, names and lines are the same.
    expect_lines(&test.record(&["shares", "300"]).run_well()?)?;
    let shown = cache(test, &[])?;
    Documents::read()?.hold(&["cache"], &shown)?;
    let text = test.nyquist(&["cache"]).run()?.succeeded()?.stdout_text();
    expect_contains("what is shown", &text, "Names that were looked up: ")?;
    expect_contains("what is shown", &text, "/shares")?;
    let removed = cache(test, &["clear", "--downloads"])?;
    expect_eq("with the downloads", removed["removed_bytes"].as_u64(), Some(0))?;
    expect(answers(test)? >= first, "clearing the downloads removed names")?;
    let removed = test.nyquist(&["cache", "clear"]).run()?.succeeded()?.stdout_text();
    expect_contains("messages", &removed, "Removed ")?;
    expect_eq("after it", answers(test)?, 0)
}

fn not_kept(test: &Context<'_>) -> Verdict {
    test.record(&["shares", "200"]).options(&["--no-cache"]).run_well()?;
    expect_eq("with the option", answers(test)?, 0)?;
    test.record(&["shares", "200"]).with(|call| call.env("NYQUIST_NO_CACHE", "1")).run_well()?;
    expect_eq("with the variable", answers(test)?, 0)?;
    test.record(&["shares", "200"]).with(|call| call.env("NYQUIST_NO_CACHE", "0")).run_well()?;
    expect(answers(test)? > 0, "a variable that says no took effect")
}

fn users_cache(test: &Context<'_>) -> Verdict {
    const NOBODY: u32 = 65534;
    need_root()?;
    let caches = test.path("caches");
    let id = NOBODY.to_string();
    let by_sudo = |call: Invocation<'_>| -> Verdict {
        let call = call.env("SUDO_UID", id.clone()).env("SUDO_GID", id.clone()).env("SUDO_USER", "nobody");
        call.env("XDG_CACHE_HOME", caches.display().to_string()).run()?.succeeded()?;
        Ok(())
    };
    by_sudo(test.record(&["shares", "200"]).prepare().call)?;
    let mut folders = vec![caches.clone()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        expect_eq(&format!("the owner of {}", folder.display()), fs::metadata(&folder)?.uid(), NOBODY)?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                files += 1;
                expect_eq("the owner of a file", entry.metadata()?.uid(), NOBODY)?;
                expect_eq("the file's mode", entry.metadata()?.mode() & 0o777, 0o600)?;
            }
        }
    }
    expect(files > 0, "nothing was kept")
}

/// The debug file of `shares-build-id`, and its path on a server.
fn debug_info(test: &Context<'_>) -> Result<(String, Vec<u8>)> {
    let id = crate::workloads::build_id(&test.workload("shares-build-id"))?;
    let file = test.workload(&format!(".build-id/{}/{}.debug", &id[..2], &id[2..]));
    Ok((format!("/buildid/{id}/debuginfo"), fs::read(file)?))
}

fn by_debuginfod(test: &Context<'_>) -> Verdict {
    let (path, bytes) = debug_info(test)?;
    let server = FileServer::of(HashMap::from([(path.clone(), bytes.clone())]))?;
    let url = server.url.clone();
    let recording = || {
        let url = url.clone();
        test.record(&["shares-build-id", "500"]).with(move |call| call.env("DEBUGINFOD_URLS", url.clone()))
    };
    // If no server is named, no server is queried, and no lines are found.
    test.record(&["shares-build-id", "100"]).run_well()?;
    expect(server.requests().is_empty(), "a server was queried that was not named")?;
    // Answers that were kept without the debug file do not prevent that it is used.
    expect_lines(&recording().run_well()?)?;
    let count = || server.requests().iter().filter(|request| **request == path).count();
    expect_eq("how often it was requested", count(), 1)?;
    let id = path.split('/').nth(2).unwrap_or_default();
    let retained = test.path(".cache/debuginfod_client").join(id).join("debuginfo");
    expect_eq("what is in the cache that debuginfod's clients share", fs::read(&retained)? == bytes, true)?;
    expect_lines(&recording().run_well()?)?;
    expect_eq("how often it was requested after the second recording", count(), 1)
}

fn lying(test: &Context<'_>) -> Verdict {
    let (path, _) = debug_info(test)?;
    let other = fs::read(test.workload("shares-O0"))?;
    let server = FileServer::of(HashMap::from([(path, other)]))?;
    let url = server.url.clone();
    let recorded = test
        .record(&["shares-build-id", "200"])
        .options(&["-v"])
        .with(move |call| call.env("DEBUGINFOD_URLS", url.clone()))
        .run_well()?;
    expect_contains("what -v says", &recorded.finished.stderr, "debuginfo: another file (")?;
    let has_lines = recorded.profile.frame_of(|frame| frame.function == "alpha" && frame.line.is_some());
    expect(has_lines.is_none(), "lines come from the debug info of another program")
}

/// Compiles a program with debug info. Returns the program and its source.
fn compiled(test: &Context<'_>) -> Result<(PathBuf, PathBuf)> {
    let folder = test.path("src");
    fs::create_dir_all(&folder)?;
    let (source, program) = (folder.join("spin.c"), test.path("spin"));
    let text = "int main(void) {\n    volatile unsigned long n = 0;\n    while (n < 300000000) n++; /* the hot line */\n    return 0;\n}\n";
    fs::write(&source, text)?;
    let status = Command::new("gcc")
        .args(["-g", "-O1", "-Wl,--build-id", "-o"])
        .arg(&program)
        .arg(&source)
        .status()
        .context("cannot start gcc")?;
    ensure!(status.success(), "gcc failed");
    Ok((program, source))
}

fn source(test: &Context<'_>) -> Verdict {
    let (program, source) = compiled(test)?;
    let profile = test.path("spin.json.gz");
    let call = test.nyquist(&["record", "-s", "-o"]).path(&profile).path(&program);
    call.run()?.succeeded()?;
    let text = fs::read(&source)?;
    fs::remove_file(&source)?;
    let path = format!("/buildid/{}/source{}", crate::workloads::build_id(&program)?, source.display());
    let server = FileServer::of(HashMap::from([(path.clone(), text)]))?;
    let annotate = |url: &str| -> Result<String> {
        let call = test.nyquist(&["annotate", "main", "--source"]).path(&profile);
        Ok(call.env("DEBUGINFOD_URLS", url).run()?.succeeded()?.stdout_text())
    };
    let without = annotate("")?;
    expect(!without.contains("the hot line"), "the source was shown without being there")?;
    let with = annotate(&server.url)?;
    expect(
        with.contains("the hot line"),
        format_args!("no source: {with}; requests: {:?}", server.requests()),
    )
}

fn gives_up(test: &Context<'_>) -> Verdict {
    let server = FileServer::silent()?;
    let prepared = test.record(&["shares-build-id", "200"]).prepare();
    let call = prepared.call.env("DEBUGINFOD_URLS", server.url.clone());
    let mut running = call.on_terminal().start()?;
    running.wait_until("a download to begin", || !server.requests().is_empty())?;
    running.press_ctrl_c()?;
    let finished = running.wait()?;
    expect_contains("messages", &finished.stderr, "the lookup of names was stopped early")?;
    expect(prepared.profile.exists(), "no profile was saved")?;
    let left = parts(&test.path(".cache/debuginfod_client"))?;
    expect(left.is_empty(), format_args!("files were left behind: {left:?}"))
}

/// The files in the folders of debuginfod's cache.
fn parts(cache: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(cache)? {
        let path = entry?.path();
        if path.is_dir() {
            let listed: Result<Vec<_>, _> =
                fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect();
            files.extend(listed?);
        }
    }
    Ok(files)
}

fn doctor(test: &Context<'_>) -> Verdict {
    let server = FileServer::of(HashMap::new())?;
    let call = test.nyquist(&["doctor", "-v"]).path(&test.workload("shares-build-id"));
    let call =
        call.env("DEBUGINFOD_URLS", server.url.clone()).env("_NT_SYMBOL_PATH", "srv*/c*https://s.example");
    let output = call.run()?.succeeded()?.stdout_text();
    let id = crate::workloads::build_id(&test.workload("shares-build-id"))?;
    for part in [
        format!("/usr/lib/debug/.build-id/{}/{}.debug: no such file", &id[..2], &id[2..]),
        format!("/.debug/.build-id/{}/{}/debug: no such file", &id[..2], &id[2..]),
        format!("{}/buildid/{id}/debuginfo: no such file", server.url),
        format!("debuginfod is queried: {}", server.url),
        "of _NT_SYMBOL_PATH: https://s.example".to_owned(),
        "symbol lookups are cached in ".to_owned(),
    ] {
        expect_contains("messages", &output, &part)?;
    }
    let output = test.nyquist(&["doctor"]).path(&test.workload("shares")).run()?.succeeded()?.stdout_text();
    expect_contains("without the variable", &output, "debuginfod is not queried: DEBUGINFOD_URLS is not set")
}
