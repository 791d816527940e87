//! The possible output files, their contents, and the messages if a file cannot be written.

use std::fs;
use std::path::Path;

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, skip};
use super::invocation::{Finished, Invocation};
use super::profile::Profile;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("the_outputs_name_decides_its_format", formats),
    Test::new("another_formats_name_is_refused_first", refused),
    Test::new("descriptors_are_outputs", descriptors),
    Test::new("a_missing_folder_is_reported_first", missing_folder),
    Test::new("a_file_size_limit_is_reported", file_size_limit),
    Test::new("a_small_stack_is_enough", small_stack),
    Test::new("too_few_descriptors_are_reported", few_descriptors),
    Test::new("a_missing_loader_is_named", missing_loader),
    Test::new("cargo_nyquist_shows_its_own_name", cargo_version),
];

fn record<'a>(test: &'a Context<'a>, options: &[&str]) -> Invocation<'a> {
    let call = test.nyquist(&["record", "-s"]).args(options).args(&["--"]);
    call.path(&test.workload("shares")).args(&["50"])
}

fn formats(test: &Context<'_>) -> Verdict {
    let gzip = [0x1f, 0x8b].as_slice();
    for (name, beginning) in [
        ("p.json", b"{".as_slice()),
        ("p.json.gz", gzip),
        ("p", gzip),
        ("p.speedscope.json", b"{".as_slice()),
        ("p.pb.gz", gzip),
        ("p.svg", b"<?xml".as_slice()),
        ("p.html", b"<!".as_slice()),
        ("p.folded", b"shares".as_slice()),
    ] {
        let path = test.path(name);
        record(test, &["-o", &path.display().to_string()]).run()?.succeeded()?;
        let bytes = fs::read(&path)?;
        let found = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
        expect(bytes.starts_with(beginning), format_args!("{name} begins with {found:?}"))?;
    }
    let report = |name: &str| test.nyquist(&["report"]).path(&test.path(name)).run();
    for name in ["p.json", "p.json.gz", "p.speedscope.json", "p.pb.gz", "p.folded"] {
        expect_contains(name, &report(name)?.succeeded()?.stdout_text(), "alpha")?;
    }
    // Imported profiles are written in the same way.
    let imported = test.path("imported.json");
    test.nyquist(&["import", "-s", "-o"]).path(&imported).path(&test.path("p.pb.gz")).run()?.succeeded()?;
    expect(fs::read(&imported)?.starts_with(b"{"), "an imported .json is not plain")
}

fn refused(test: &Context<'_>) -> Verdict {
    let profile = test.path("p.json.gz").display().to_string();
    record(test, &["-o", &profile]).run()?.succeeded()?;
    let check = |call: Invocation<'_>, hint: &str| -> Verdict {
        let line = call.line();
        let finished = call.run()?;
        expect_eq(&line, finished.code(), 1)?;
        expect_contains(&line, &finished.stderr, "is the name of another format")?;
        expect_contains(&line, &finished.stderr, hint)
    };
    for (name, hint) in
        [("perf.data", "--perf-data FILE"), ("p.svg.gz", "leave out"), ("p.json.zst", "leave out")]
    {
        check(record(test, &["-o", name]), hint)?;
        expect(!test.path(name).exists(), format_args!("{name} was written"))?;
    }
    check(record(test, &["--flamegraph", "f.html"]), "nyquist export")?;
    check(test.nyquist(&["flamegraph", &profile, "-o", "f.html"]), "nyquist export")?;
    check(test.nyquist(&["flamegraph", &profile, "-o", "f.json"]), "nyquist export")?;
    check(test.nyquist(&["export", &profile, "-o", "f.svg"]), "-o f.svg` draws a flame graph")?;
    check(test.nyquist(&["export", &profile, "--format", "folded", "-o", "x.pb.gz"]), "leave out --format")
}

/// The path that a shell passes for `>(command)`, and the names of the standard streams.
fn descriptors(test: &Context<'_>) -> Verdict {
    let profile = test.path("made.json.gz").display().to_string();
    record(test, &["-o", &profile]).run()?.succeeded()?;
    let program = test.nyquist_path().display().to_string();
    let shares = test.workload("shares").display().to_string();
    let by_shell = |script: &str| -> Result<Finished, anyhow::Error> {
        let call = test.program("bash").args(&["-c", script]);
        call.env("N", program.clone())
            .env("SHARES", shares.clone())
            .env("P", profile.clone())
            .run()?
            .succeeded()
    };
    for output in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "-"] {
        let script = format!("\"$N\" record -s -o {output} -- \"$SHARES\" 50 > out.json.gz");
        by_shell(&script)?;
        Profile::read(&test.path("out.json.gz"))?;
    }
    by_shell("\"$N\" record -s -o /dev/fd/7 -- \"$SHARES\" 50 7> seven.json.gz")?;
    Profile::read(&test.path("seven.json.gz"))?;
    // Earlier contents of a file are kept.
    by_shell("echo before > more; \"$N\" export \"$P\" --format folded -o /dev/stdout >> more")?;
    let more = fs::read_to_string(test.path("more"))?;
    expect(more.starts_with("before\n") && more.contains(";alpha "), format_args!("appended: {more}"))?;
    by_shell("\"$N\" flamegraph \"$P\" -o /dev/stdout > f.svg")?;
    expect_contains("the picture", &fs::read_to_string(test.path("f.svg"))?, "<svg")?;
    // The command does not inherit the pipe, so the pipe's reader ends when the profile is written.
    let script = "set -e; exec 8> >(cat > piped.json.gz); reader=$!
        \"$N\" record -s -o /dev/fd/8 -- \"$SHARES\" 50; exec 8>&-; wait $reader";
    by_shell(script)?;
    Profile::read(&test.path("piped.json.gz"))?;
    let held = "\"$N\" record -s -o /dev/fd/8 -- sh -c 'test ! -e /proc/self/fd/8' 8> held.json.gz";
    by_shell(held)?;
    let closed = test.program("bash").args(&["-c", "\"$N\" record -s -o /dev/fd/9 true 9< /dev/null"]);
    let finished = closed.env("N", program.clone()).run()?;
    expect_contains("stderr", &finished.stderr, "not open for writing")
}

fn missing_folder(test: &Context<'_>) -> Verdict {
    for output in ["newdir/p", "newdir/", "newdir/inner/p"] {
        for option in ["-o", "--flamegraph", "--perf-data"] {
            let marker = test.fresh("marker");
            let call = test.nyquist(&["record", "-s", option, output, "--", "touch"]).path(&marker);
            let finished = call.run()?;
            expect_eq(output, finished.code(), 1)?;
            expect_contains(output, &finished.stderr, "there is no folder ")?;
            expect_contains(output, &finished.stderr, "hint: mkdir -p ")?;
            expect(!marker.exists(), format_args!("the command ran although {output} cannot be written"))?;
        }
    }
    let marker = test.fresh("marker");
    let finished = test.nyquist(&["record", "-s", "-o", "./", "--", "touch"]).path(&marker).run()?;
    expect_contains("stderr", &finished.stderr, "it is a folder")?;
    expect(!marker.exists(), "the command ran")
}

/// A limit of the file size is like a full disk: a message reports it, and no partial file is left. The
/// recorded program keeps its limit.
fn file_size_limit(test: &Context<'_>) -> Verdict {
    let (folder, temporary) = (test.path("folder"), test.path("temporary"));
    for folder in [&folder, &temporary] {
        fs::create_dir(folder)?;
    }
    let output = folder.join("p.json").display().to_string();
    let call = record(test, &["-o", &output]).under(&["prlimit", "--fsize=4096:4096"]);
    let finished = call.env("TMPDIR", temporary.display().to_string()).run()?;
    expect_eq("the status", finished.code(), 1)?;
    expect_contains("stderr", &finished.stderr, "file too large")?;
    expect_contains("stderr", &finished.stderr, "ulimit -f")?;
    for folder in [&folder, &temporary] {
        expect_eq("files that are left", fs::read_dir(folder)?.count(), 0)?;
    }
    let script = "head -c 9000 /dev/zero > large; exit 3";
    let call = test.nyquist(&["record", "-s", "-o", &output, "--", "bash", "-c", script]);
    let finished = call.under(&["prlimit", "--fsize=4096:4096"]).run()?;
    expect_eq("the large file", fs::metadata(test.path("large"))?.len(), 4096)?;
    // bash reports that the signal has killed its child.
    expect_contains("stderr", &finished.stderr, "File size limit exceeded")
}

fn small_stack(test: &Context<'_>) -> Verdict {
    let limit = ["prlimit", "--stack=196608:196608"];
    let output = test.path("p.json.gz");
    record(test, &["-o", &output.display().to_string()]).under(&limit).run()?.succeeded()?;
    let report = test.nyquist(&["report"]).path(&output).under(&limit).run()?.succeeded()?;
    expect_contains("the report", &report.stdout_text(), "alpha")
}

fn few_descriptors(test: &Context<'_>) -> Verdict {
    for limit in ["--nofile=8:8", "--nofile=12:12", "--nofile=20:20"] {
        let marker = test.fresh("marker");
        let call = test.nyquist(&["record", "-s", "-o", "p.json.gz", "--", "touch"]).path(&marker);
        let finished = call.under(&["prlimit", limit]).run()?;
        expect_eq(limit, finished.code(), 1)?;
        expect_contains(limit, &finished.stderr, "files may be open at once")?;
        expect_contains(limit, &finished.stderr, "ulimit -n")?;
        expect(!marker.exists(), "the command ran")?;
    }
    Ok(())
}

fn missing_loader(test: &Context<'_>) -> Verdict {
    const KNOWN: &[u8] = b"/ld-linux";
    let mut bytes = fs::read("/bin/true")?;
    let Some(at) = bytes.windows(KNOWN.len()).position(|window| window == KNOWN) else {
        return skip("/bin/true has another loader than glibc's");
    };
    bytes[at..at + KNOWN.len()].copy_from_slice(b"/ld-lost_");
    let program = test.path("lost");
    fs::copy("/bin/true", &program)?;
    fs::write(&program, bytes)?;
    let finished = test.nyquist(&["record", "-s", "-o", "p.json.gz"]).path(&program).run()?;
    expect_eq("the status", finished.code(), 127)?;
    expect_contains("stderr", &finished.stderr, "its loader is not: /")?;
    expect_contains("stderr", &finished.stderr, "/ld-lost_")?;
    let output = test.nyquist(&["doctor"]).path(&program).run()?.stdout_text();
    expect_contains("doctor", &output, "its loader /")
}

fn cargo_version(test: &Context<'_>) -> Verdict {
    let beside = test.nyquist_path().with_file_name("cargo-nyquist");
    let finished = test.program(Path::new(&beside)).args(&["nyquist", "--version"]).run()?.succeeded()?;
    expect(finished.stdout_text().starts_with("cargo-nyquist "), finished.stdout_text())
}
