//! Bad input leads to one clear sentence and a non-zero status.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq};
use super::invocation::Invocation;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("a_file_that_is_not_there", |test| {
        refused(test, &test.path("missing.json.gz"), "no such file")
    }),
    Test::new("a_folder_is_refused", |test| refused(test, &test.path(""), "directory")),
    Test::new("a_text_file", |test| refused(test, &written(test, b"hello, not a profile\n")?, "not a"))
        .quick(),
    Test::new("an_empty_file", |test| refused(test, &written(test, b"")?, "empty")),
    Test::new("a_program_is_refused_with_advice", |test| {
        refused(test, &test.workload("shares"), "not a")?;
        refused(test, &test.workload("shares"), "nyquist record")
    }),
    Test::new("json_that_is_no_profile", |test| refused(test, &written(test, b"{\"a\":[1,2]}")?, "not a")),
    Test::new("a_profile_newer_than_known", newer),
    Test::new("a_truncated_gzip", truncated),
    Test::new("a_profile_with_indexes_beyond_its_tables", wild_indexes),
    Test::new("a_profile_nested_without_end", |test| {
        refused(test, &written(test, &[b'['; 200_000])?, "not a")
    }),
    Test::new("a_small_file_of_a_profile_beyond_memory", beyond_memory),
    Test::new("a_file_that_may_not_be_read", forbidden),
    Test::new("a_file_behind_an_option_as_of_perf", behind_an_option).quick(),
    Test::new("words_that_are_not_understood", args).quick(),
    Test::new("unknown_words_are_refused_under_other_names", words_under_other_names),
    Test::new("help_and_versions_are_no_errors", help),
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

/// Both reading commands refuse the file, with a sentence that names the file and the reason.
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

/// Files of some kilobytes whose profiles would need gigabytes. The limit is low so that it is reached soon.
fn beyond_memory(test: &Context<'_>) -> Verdict {
    let meta = r#"{"meta":{"preprocessedProfileVersion":49},"#;
    let files: [(&str, Vec<u8>); 5] = [
        ("libs", format!("{meta}\"libs\":[{}{{}}]}}", "{},".repeat(2_000_000)).into()),
        ("one string", format!("{meta}\"libs\":[{{\"name\":\"{}\"}}]}}", "a".repeat(200_000_000)).into()),
        ("speedscope", speedscope(2_000_000).into()),
        ("folded stacks", [&b"a;b 1\n"[..], &vec![b'x'; 200_000_000], b" 2\n"].concat()),
        // The table of strings contains empty strings.
        ("pprof", [&b"\x0a\x04\x08\x01\x10\x01"[..], &b"\x32\x00".repeat(10_000_000)].concat()),
    ];
    for (what, bytes) in files {
        let path = gzipped(test, &bytes)?;
        let folder = || -> Result<usize, anyhow::Error> { Ok(fs::read_dir(test.path(""))?.count()) };
        let before = folder()?;
        let output = test.path("never.json.gz").display().to_string();
        for command in [&["report"][..], &["load", "--no-open"], &["import", "-s", "-o", &output]] {
            let call = test.nyquist(command).path(&path).env("NYQUIST_MAX_MEMORY", "64M");
            let finished = call.run()?;
            expect_eq(&format!("the status of {command:?} of {what}"), finished.status.code(), Some(1))?;
            let expected = format!("cannot load {}: it needs more than 64 MiB of memory", path.display());
            expect_contains(what, &finished.stderr, &expected)?;
            expect_contains(what, &finished.stderr, "hint: --max-memory")?;
        }
        // Each call writes its output to two files.
        expect_eq(&format!("files left by {what}"), folder()?, before + 6)?;
    }
    Ok(())
}

/// A profile in speedscope's format with this many frames.
fn speedscope(frames: usize) -> String {
    format!(
        r#"{{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{{"frames":[{}{{"name":"a"}}]}},"profiles":[]}}"#,
        r#"{"name":"a"},"#.repeat(frames)
    )
}

/// A user who types perf's options gets a hint.
fn behind_an_option(test: &Context<'_>) -> Verdict {
    for command in ["report", "load", "import", "script", "export", "flamegraph"] {
        let finished = test.nyquist(&[command, "-i", "perf.data"]).run()?;
        expect(finished.status.code() == Some(2), format_args!("{command}: {}", finished.status))?;
        expect_contains("stderr", &finished.stderr, &format!("type: nyquist {command} perf.data"))?;
        expect(!finished.stderr.contains("as a value"), "a tip that leads nowhere")?;
    }
    Ok(())
}

/// Words that nyquist does not accept, the sentence about them, and the hints except the last one.
const WORDS: &[(&str, &str, &[&str])] = &[
    (
        "record --backend nonsense",
        "invalid value 'nonsense' for '--backend <BACKEND>' (possible values: auto, perf, ptrace, suspend, etw)",
        &[],
    ),
    (
        "record --backend prf",
        "invalid value 'prf' for '--backend <BACKEND>' (possible values: auto, perf, ptrace, suspend, etw)",
        &["similar: the value 'perf'"],
    ),
    (
        "record --call-graph lbr",
        "invalid value 'lbr' for '--call-graph <HOW>' (possible values: auto, fp, dwarf, none)",
        &[],
    ),
    ("record -r 0", RATE_0, &[]),
    ("record --rate=0", RATE_0, &[]),
    ("top -r 0", RATE_0, &[]),
    (
        "record -r abc",
        "invalid value 'abc' for '--rate <HZ>': a rate is a whole number from 1 to 1000000, such as 1000",
        &[],
    ),
    ("record --cpu x", "invalid value 'x' for '--cpu <LIST>': not a list of CPUs, as 0-3,8", &[]),
    ("record --cpu 2-1", "invalid value '2-1' for '--cpu <LIST>': not a list of CPUs, as 0-3,8", &[]),
    (
        "record --stack-size 32k",
        "invalid value '32k' for '--stack-size <BYTES>': not a whole number from 8 to 65528",
        &[],
    ),
    (
        "record --stack-size 65529",
        "invalid value '65529' for '--stack-size <BYTES>': not a whole number from 8 to 65528",
        &[],
    ),
    ("record -d x", "invalid value 'x' for '--duration <SECONDS>': not a number of seconds", &[]),
    (
        "record -p x",
        "invalid value 'x' for '--pid <PID,...>': not the number of a process (--name takes names)",
        &[],
    ),
    (
        "record -p 1,-5",
        "invalid value '-5' for '--pid <PID,...>': not the number of a process (--name takes names)",
        &[],
    ),
    ("record -a -p 1", "'--all-cpus' cannot be used with '--pid <PID,...>'", &[]),
    ("record -s --serve", "'--save-only' cannot be used with '--serve'", &[]),
    ("record -d 1 -d 2", "'--duration <SECONDS>' is given more than once", &[]),
];

const RATE_0: &str =
    "invalid value '0' for '--rate <HZ>': a rate is a whole number from 1 to 1000000, such as 1000";

/// Checks for one sentence, hints whose last one names the help, and the status for words that are not
/// understood.
fn expect_not_understood(call: Invocation<'_>, sentence: &str, hints: &[&str], help: &str) -> Verdict {
    let finished = call.run()?;
    let help = format!("`{help} --help` lists ");
    let hints: Vec<&str> = hints.iter().copied().chain([help.as_str()]).collect();
    let expected = format!("error: {sentence}\n\nhint: {}", hints.join("\nhint: "));
    expect(finished.stderr.starts_with(&expected), format_args!("{:?}, not {expected:?}", finished.stderr))?;
    expect_eq("lines that follow", finished.stderr[expected.len()..].matches('\n').count(), 1)?;
    expect_eq("the status", finished.status.code(), Some(2))?;
    expect(finished.stdout.is_empty(), "something was printed on the standard output")
}

/// The command that is given with wrong words is not started.
fn args(test: &Context<'_>) -> Verdict {
    for (line, sentence, hints) in WORDS {
        let (args, started) = (line.split(' ').collect::<Vec<_>>(), test.fresh("started"));
        let call = test.nyquist(&args).args(&["--", "touch"]).path(&started);
        expect_not_understood(call, sentence, hints, &format!("nyquist {}", args[0]))?;
        expect(!started.exists(), format_args!("{line}: the command was started"))?;
    }
    let usage = [
        "usage: nyquist record [OPTIONS] [--] [VAR=VALUE...] COMMAND [ARGS...]",
        "usage: nyquist record [OPTIONS] -p PID,...|--name NAME,... [COMMAND [ARGS...]]",
        "usage: nyquist record [OPTIONS] -a|--cgroup PATH [COMMAND [ARGS...]]",
    ];
    for (line, sentence, hints, help) in [
        ("record", "'<COMMAND>...' is missing", &usage[..], "nyquist record"),
        ("record -p", "'--pid <PID,...>' needs a value", &[], "nyquist record"),
        (
            "record --raet 5 x",
            "there is no option '--raet'",
            &["similar: the option '--rate'"],
            "nyquist record",
        ),
        (
            "record -g x",
            "there is no option '-g'",
            &["callers are always recorded, without -g; --call-graph says how they are found"],
            "nyquist record",
        ),
        (
            "top -e x",
            "there is no option '-e'",
            &[
                "the CPU's cycles or its clock are sampled; `perf record -e` records others, and nyquist reads what it writes",
            ],
            "nyquist top",
        ),
        ("report --tre", "there is no option '--tre'", &["similar: the option '--tree'"], "nyquist report"),
        (
            "report a b",
            "'b' is one argument too many",
            &["usage: nyquist report [OPTIONS] [FILE]"],
            "nyquist report",
        ),
        ("recrod x", "there is no command 'recrod'", &["similar: the command 'record'"], "nyquist"),
        ("cache x", "there is no command 'x'", &[], "nyquist cache"),
    ] {
        let call = test.nyquist(&line.split(' ').collect::<Vec<_>>());
        expect_not_understood(call, sentence, hints, help)?;
    }
    Ok(())
}

/// Each name by which nyquist is called accepts its own set of words.
fn words_under_other_names(test: &Context<'_>) -> Verdict {
    let cargo = || test.program(test.nyquist_path().with_file_name("cargo-nyquist"));
    let not_an_option = ["to pass '--nonsense' as a value, use '-- --nonsense'"];
    let unknown = "there is no option '--nonsense'";
    expect_not_understood(cargo().args(&["--nonsense"]), unknown, &not_an_option, "cargo nyquist run")?;
    expect_not_understood(cargo().args(&["nyquist", "--rate", "0"]), RATE_0, &[], "cargo nyquist run")?;
    let similar = ["similar: the command 'bench'"];
    expect_not_understood(
        cargo().args(&["benhc"]),
        "there is no command 'benhc'",
        &similar,
        "cargo nyquist",
    )?;
    let samply = || Ok::<_, anyhow::Error>(test.program(super::samply::link(test)?));
    expect_not_understood(samply()?.args(&["load", "--nonsense"]), unknown, &not_an_option, "samply load")?;
    let call = samply()?.args(&["record", "--nonsense", "true"]);
    expect_not_understood(call, unknown, &not_an_option, "samply record")?;
    let rate = "invalid value 'x' for '--rate <RATE>': not a number, such as 1.5";
    expect_not_understood(samply()?.args(&["record", "-r", "x", "true"]), rate, &[], "samply record")?;
    expect_not_understood(samply()?.args(&["record"]), "'<COMMAND>...' is missing", &[], "samply record")
}

/// Output that the user requested is no error, and goes to the standard output.
fn help(test: &Context<'_>) -> Verdict {
    for (args, part) in [
        (&["--help"][..], "Usage: nyquist <COMMAND>"),
        (&["record", "--help"], "Usage: nyquist record [OPTIONS]"),
        (&["--version"], "nyquist "),
        (&["cargo", "--help"], "Usage: cargo nyquist"),
    ] {
        let finished = test.nyquist(args).run()?.succeeded()?;
        expect_contains("stdout", &finished.stdout_text(), part)?;
        expect_eq("stderr", finished.stderr, String::new())?;
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
