//! nyquist in place of samply: samply's command line under samply's name, and the tools that call samply.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, expect_measured, skip};
use super::invocation::Invocation;
use super::profile::Profile;
use super::test::Test;

const MINUTES: Duration = Duration::from_mins(20);

/// Why some of these tests run alone.
const HEAVY: &str = "builds with all CPUs";

pub(super) const TESTS: &[Test] = &[
    Test::new("under_its_name_version_49_is_written", records).quick(),
    Test::new("every_option_is_taken_or_says_why_not", options),
    Test::new("a_wrappers_sigint_saves_at_once", interrupted)
        .exclusive("measures how soon the profile is saved"),
    Test { limit: MINUTES, ..Test::new("cargo_samply_works", cargo_samply) }.exclusive(HEAVY),
    Test { limit: MINUTES, ..Test::new("hotpath_0_17_reports_cpu_time", |test| hotpath(test, "=0.17.0")) }
        .exclusive(HEAVY),
    Test { limit: MINUTES, ..Test::new("the_newest_hotpath_reports_cpu_time", |test| hotpath(test, "*")) }
        .only_in_all("the newest version is another one any day")
        .exclusive(HEAVY),
];

/// The path of the program under test with the name `samply`.
pub(super) fn link(test: &Context<'_>) -> Result<PathBuf> {
    let folder = test.path("as-samply");
    fs::create_dir_all(&folder)?;
    let link = folder.join("samply");
    if !link.exists() {
        std::os::unix::fs::symlink(test.nyquist_path(), &link)?;
    }
    Ok(link)
}

fn records(test: &Context<'_>) -> Verdict {
    let output = test.path("p.json.gz");
    let work = test.workload("ending").display().to_string();
    let call = test.program(link(test)?).args(&["record", "--save-only", "-o"]).path(&output);
    call.args(&["--", "MARK=1", &work, "50", "exit", "0"]).run()?.succeeded()?;
    let profile = Profile::read(&output)?;
    expect_eq("the version", profile.version(), 49)?;
    expect_measured(profile.total() > 20.0, "there are hardly any samples")?;
    let version = test.program(link(test)?).args(&["--version"]).run()?.succeeded()?;
    expect_contains("--version", &version.stdout_text(), "samply 0.13.1")
}

/// All options of samply's `record`, with values.
const ALL_OPTIONS: &[&str] = &[
    "-r",
    "500",
    "-d",
    "5",
    "--iteration-count",
    "1",
    "-i",
    "--profile-name",
    "a name",
    "--main-thread-only",
    "--reuse-threads",
    "--fold-recursive-prefix",
    "--unlink-aux-files",
    "--per-cpu-threads",
    "--jit-markers",
    "--cswitch-markers",
    "--include-args=3",
    "--unstable-presymbolicate",
    "-s",
    "-o",
    "all.json.gz",
    "-n",
    "--address",
    "127.0.0.1",
    "-P",
    "3000+",
    "-v",
    "--symbol-dir",
    "/tmp",
    "--windows-symbol-server",
    "x",
    "--windows-symbol-cache",
    "x",
    "--breakpad-symbol-server",
    "x",
    "--breakpad-symbol-dir",
    "x",
    "--breakpad-symbol-cache",
    "x",
    "--simpleperf-binary-cache",
    "/tmp",
    "--coreclr",
    "--gfx",
    "--browsers",
];

fn options(test: &Context<'_>) -> Verdict {
    let call = test.program(link(test)?).args(&["record"]).args(ALL_OPTIONS).args(&["true"]);
    let finished = call.run()?.succeeded()?;
    for option in ["--coreclr", "--gfx", "--browsers"] {
        let is_reported =
            finished.stderr.lines().any(|line| line.contains(option) && line.contains("has no effect"));
        expect(is_reported, format_args!("nothing is said of {option}: {}", finished.stderr))?;
    }
    for option in ["--jit-markers", "--cswitch-markers"] {
        expect(
            !finished.stderr.contains(option),
            format_args!("{option} is not taken: {}", finished.stderr),
        )?;
    }
    Ok(())
}

fn interrupted(test: &Context<'_>) -> Verdict {
    let ready = test.path("ready");
    let call = test.program(test.workload("endless")).args(&["2"]);
    let target = call.env("WORKLOAD_READY", ready.display().to_string()).start()?;
    target.wait_for_file(&ready)?;
    let output = test.path("hp.json.gz");
    let pid = target.pid().to_string();
    let call = test.program(link(test)?).args(&["record", "--pid", &pid, "--save-only", "-o"]).path(&output);
    let recorder = call.start()?;
    recorder.wait_until_sampling()?;
    recorder.signal(libc::SIGINT)?;
    let began = Instant::now();
    let finished = recorder.wait()?;
    let took = began.elapsed();
    target.signal(libc::SIGKILL)?;
    target.wait()?;
    expect_eq("the status", finished.code(), 0)?;
    expect_measured(took < Duration::from_secs(4), format_args!("it took {took:?} to save"))?;
    expect_eq("the version", Profile::read(&output)?.version(), 49)
}

/// A call of cargo with the packages of the user who runs the tests.
fn cargo<'a>(test: &'a Context<'a>, args: &[&str]) -> Invocation<'a> {
    with_cargo(test, test.program("cargo").args(args))
}

fn with_cargo<'a>(test: &Context<'_>, call: Invocation<'a>) -> Invocation<'a> {
    let home = std::env::var("HOME").unwrap_or_default();
    let folder =
        |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| format!("{home}/{default}"));
    call.env("CARGO_HOME", folder("CARGO_HOME", ".cargo"))
        .env("RUSTUP_HOME", folder("RUSTUP_HOME", ".rustup"))
        .env("CARGO_TARGET_DIR", test.path("target").display().to_string())
}

/// A tool from the registry. It is taken from `PEERS_DIR`, or installed for this test.
fn tool(test: &Context<'_>, package: &str, version: &str, program: &str) -> Result<PathBuf, Stop> {
    let there = std::env::var_os("PEERS_DIR").map(|folder| Path::new(&folder).join("bin").join(program));
    if let Some(path) = there.filter(|path| path.is_file()) {
        return Ok(path);
    }
    let root = test.path("tools");
    let install = ["install", "--quiet", "--version", version, "--bin", program, "--root"];
    let installed = cargo(test, &install).path(&root).args(&[package]).run()?;
    if !installed.status.success() {
        return skip(format!(
            "{package} is not available: {}",
            installed.stderr.lines().last().unwrap_or_default()
        ));
    }
    Ok(root.join("bin").join(program))
}

fn write(test: &Context<'_>, dependencies: &str, main: &str) -> Result<()> {
    let toml = format!("[package]\nname = \"demo\"\nversion = \"1.0.0\"\nedition = \"2024\"\n{dependencies}");
    fs::create_dir_all(test.path("src"))?;
    fs::write(test.path("Cargo.toml"), toml)?;
    fs::write(test.path("src/main.rs"), main)?;
    Ok(())
}

const WORK: &str = "fn work(rounds: u64) -> u64 {
    (0..rounds * 10_000_000).fold(1, |hash: u64, round| (hash ^ round).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(7))
}
";

fn cargo_samply(test: &Context<'_>) -> Verdict {
    let program = tool(test, "cargo-samply", "*", "cargo-samply")?;
    write(test, "", &format!("#[inline(never)]\n{WORK}fn main() {{ println!(\"{{}}\", work(30)); }}\n"))?;
    let folder = link(test)?.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let call = test.program(program).args(&["samply", "--samply-args=--save-only -o cs.json.gz"]);
    with_cargo(test, call).env("PATH", path).run()?.succeeded()?;
    let profile = Profile::read(&test.path("cs.json.gz"))?;
    expect_eq("the version", profile.version(), 49)?;
    expect_measured(profile.total_share("demo::work") > 0.8, "the program was not recorded")
}

/// Checks hotpath's report of a program's CPU time, once with samply's name for the recorder, and once with
/// the environment variable.
fn hotpath(test: &Context<'_>, version: &str) -> Verdict {
    let wrapper = tool(test, "hotpath", "*", "hotpath-samply")?;
    let dependencies = format!(
        "[dependencies]\nhotpath = {{ version = \"{version}\", features = [\"hotpath\", \"hotpath-cpu\"] }}\n[profile.release]\ndebug = 1\n"
    );
    let main = format!(
        "{WORK}#[hotpath::measure]\nfn heavy() -> u64 {{ work(std::hint::black_box(4)) }}\n\
         #[hotpath::measure]\nfn light() -> u64 {{ work(std::hint::black_box(1)) }}\n\
         #[hotpath::main]\nfn main() {{ println!(\"{{}}\", (0..40).fold(0, |sum, _| sum ^ heavy() ^ light())); }}\n"
    );
    write(test, &dependencies, &main)?;
    if !cargo(test, &["fetch"]).run()?.status.success() {
        return skip("the registry of packages cannot be reached");
    }
    cargo(test, &["build", "--release", "--quiet"]).run()?.succeeded()?;
    for (recorder, variable) in [(link(test)?, "66"), (test.nyquist_path().to_owned(), "49")] {
        let report = test.fresh("hotpath.json");
        test.program(test.path("target/release/demo"))
            .env("HOTPATH_SAMPLY_WRAPPER_BIN", wrapper.display().to_string())
            .env("HOTPATH_SAMPLY_BIN", recorder.display().to_string())
            .env("NYQUIST_PROFILE_VERSION", variable)
            .env("HOTPATH_OUTPUT_FORMAT", "json")
            .env("HOTPATH_OUTPUT_PATH", report.display().to_string())
            .run()?
            .succeeded()?;
        let report: Value = serde_json::from_slice(&fs::read(&report)?)?;
        let samples = |name: &str| {
            let mut rows = report["functions_cpu"]["data"].as_array().into_iter().flatten();
            let row = rows.find(|row| row["name"].as_str().is_some_and(|own| own.ends_with(name)));
            row.and_then(|row| row["samples"].as_f64()).unwrap_or(0.0)
        };
        let share = samples("heavy") / (samples("heavy") + samples("light"));
        expect_measured((0.7..0.9).contains(&share), format_args!("heavy has {share:.3} of both: {report}"))?;
    }
    Ok(())
}
