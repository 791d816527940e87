//! `cargo nyquist`: the build, the chosen target and the recorded program are compared with those of `cargo`.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, expect_measured, skip};
use super::invocation::{Finished, Invocation};
use super::profile::Profile;
use super::test::Test;
use super::tool_chain::with_tool_chain;

/// Why some of these tests run alone.
const HEAVY: &str = "builds with all CPUs";

pub(super) const TESTS: &[Test] = &[
    Test::new("run_records_an_optimised_program_with_names", run).quick().exclusive(HEAVY),
    Test::new("a_program_sees_what_cargo_run_shows_it", surroundings),
    Test::new("a_test_sees_what_cargo_test_shows_it", test_surroundings),
    Test::new("statuses_are_the_programs_and_cargos", statuses),
    Test::new("several_programs_are_listed", several),
    Test::new("a_program_is_chosen_on_a_terminal", chosen),
    Test::new("a_dry_run_prints_commands_that_work", dry_run),
    Test::new("an_example_is_recorded", example),
    Test::new("a_benchmark_is_run_as_cargo_bench_runs_it", bench),
    Test {
        limit: Duration::from_mins(10),
        ..Test::new("a_criterion_benchmark_runs_without_analysis", criterion)
    }
    .exclusive(HEAVY),
    Test::new("one_test_runs_alone", one_test),
    Test { limit: Duration::from_mins(3), ..Test::new("frame_pointers_lose_no_flag", frame_pointers) },
    Test { limit: Duration::from_mins(3), ..Test::new("a_runner_of_any_kind_is_replaced", runners) },
    Test::new("builds_that_give_poor_profiles_are_warned_of", warnings),
];

/// The source of a program that computes, with an inlined function.
pub(super) const BUSY: &str = r"
#[inline(always)]
fn scramble(number: u64) -> u64 {
    let mut hash = number;
    for _ in 0..200 {
        hash = (hash ^ (hash >> 7)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    hash
}

#[inline(never)]
pub fn compute(rounds: u64) -> u64 {
    (0..rounds).map(scramble).fold(0, |sum, hash| sum ^ hash)
}
";

pub(super) fn manifest(name: &str, rest: &str) -> String {
    format!(
        "[package]\nname = \"{name}\"\nversion = \"1.2.3\"\nedition = \"2024\"\ndescription = \"a b\"\n{rest}"
    )
}

/// A `main` function with `body`, after [`BUSY`].
fn main_with(body: &str) -> String {
    format!("{BUSY}\nfn main() {{\n{body}\n}}\n")
}

const COMPUTE: &str = r#"let words: Vec<String> = std::env::args().skip(1).collect(); println!("{words:?} {}", compute(600_000));"#;

/// Writes files into the test's own folder, in which programs run.
fn write(test: &Context<'_>, files: &[(&str, &str)]) -> Result<()> {
    for (name, text) in files {
        let path = test.path(name);
        fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
        fs::write(path, text)?;
    }
    Ok(())
}

/// A call of cargo that builds into the test's own folder.
fn cargo<'a>(test: &'a Context<'a>, args: &[&str]) -> Invocation<'a> {
    let target = test.path("target").display().to_string();
    with_tool_chain(test, test.program("cargo").args(args)).env("CARGO_TARGET_DIR", target)
}

pub(super) fn cargo_nyquist<'a>(test: &'a Context<'a>, args: &[&str]) -> Invocation<'a> {
    cargo(test, &[&["nyquist"], args].concat())
}

fn run(test: &Context<'_>) -> Verdict {
    let toml = manifest("demo", "[profile.release]\nstrip = true\n");
    write(test, &[("Cargo.toml", &toml), ("src/main.rs", &main_with(COMPUTE))])?;
    let finished = cargo_nyquist(test, &["-s", "--rate", "2000", "--", "-o", "x"]).run()?.succeeded()?;
    expect_contains("stdout", &finished.stdout_text(), r#"["-o", "x"]"#)?;
    expect_eq("Cargo.toml", fs::read_to_string(test.path("Cargo.toml"))?, toml)?;
    let profile = Profile::read(&test.path("profile.json.gz"))?;
    let share = profile.total_share("demo::scramble");
    expect_measured(share > 0.8, format_args!("the inlined function has {share:.3}"))?;
    let frame = profile
        .stacks()
        .flat_map(|(stack, _)| stack)
        .find(|frame| frame.function == "demo::scramble" && frame.inline_depth > 0);
    let frame = frame.context("no frame is inlined")?;
    expect(frame.line.is_some(), "there is no line")?;
    expect_contains("the file", frame.file.as_deref().unwrap_or_default(), "src/main.rs")
}

/// Prints the working directory and all variables.
const SHOW: &str = r#"println!("in {}", std::env::current_dir().unwrap().display());
    let mut all: Vec<_> = std::env::vars().filter(|(name, _)| name != "_" && name != "SHLVL").collect();
    all.sort();
    for (name, value) in all { println!("{name}={value}"); }
    println!("at build {:?}", option_env!("FROM_BUILD"));"#;

const BUILD_SCRIPT: &str = r#"fn main() { println!("cargo::rustc-env=FROM_BUILD=1"); println!("cargo::rustc-link-search=native={}", std::env::var("OUT_DIR").unwrap()); }"#;

fn surroundings(test: &Context<'_>) -> Verdict {
    write(
        test,
        &[
            ("Cargo.toml", &manifest("demo", "")),
            ("src/main.rs", &format!("fn main() {{ {SHOW} }}")),
            ("build.rs", BUILD_SCRIPT),
            (".cargo/config.toml", "[env]\nFROM_CONFIG = { value = \"here\", relative = true }\n"),
        ],
    )?;
    let plain = ["--config", "profile.release.debug=\"limited\"", "--config", "profile.release.strip=false"];
    let expected = cargo(test, &[&["run", "--release", "-q"], &plain[..]].concat()).run()?.succeeded()?;
    let found = cargo_nyquist(test, &["-s", "-q"]).run()?.succeeded()?;
    expect_contains("what cargo run shows", &expected.stdout_text(), "FROM_CONFIG=")?;
    same_lines(&found.stdout_text(), &expected.stdout_text())
}

fn test_surroundings(test: &Context<'_>) -> Verdict {
    let shown = format!("#[test]\nfn shows() {{ {SHOW} }}\n");
    write(
        test,
        &[
            ("Cargo.toml", "[workspace]\nmembers = [\"inner\"]\nresolver = \"3\"\n"),
            ("inner/Cargo.toml", &manifest("inner", "")),
            ("inner/src/lib.rs", &shown),
            ("inner/build.rs", BUILD_SCRIPT),
        ],
    )?;
    let call = cargo(test, &["test", "--release", "-q", "--lib", "--", "--nocapture", "--test-threads=1"]);
    let expected = call.run()?.succeeded()?;
    let found = cargo_nyquist(test, &["test", "shows", "-s", "-q"]).run()?.succeeded()?;
    expect(test.path("profile.json.gz").exists(), "the profile is not where the command was typed")?;
    expect_contains("the folder", &found.stdout_text(), "/inner\n")?;
    same_lines(&own_lines(&found), &own_lines(&expected))
}

/// The lines that the program itself prints, without libtest's output and without names that change with each
/// build.
fn own_lines(finished: &Finished) -> String {
    let text = finished.stdout_text();
    let own =
        text.lines().filter(|line| line.contains('=') || line.contains("in /") || line.contains("at build"));
    own.map(|line| line.trim_start_matches("test shows ... ")).collect::<Vec<_>>().join("\n")
}

fn same_lines(found: &str, expected: &str) -> Verdict {
    // Under the recorder, a program also gets a variable that says where its markers go.
    let differs = ["LD_LIBRARY_PATH=", "OUT_DIR=", "NYQUIST_MARKER_DIR="];
    let of_build = |line: &&str| differs.iter().any(|name| line.starts_with(name));
    let without_hashes = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !of_build(line)).map(str::to_owned).collect()
    };
    for line in text_difference(&without_hashes(found), &without_hashes(expected)) {
        expect(false, format_args!("only one has {line:?}"))?;
    }
    let search_path =
        |text: &str| text.lines().any(|line| line.starts_with("LD_LIBRARY_PATH=") && line.contains("/out"));
    expect_eq("the search path of libraries", search_path(found), search_path(expected))
}

fn text_difference<'a>(found: &'a [String], expected: &'a [String]) -> Vec<&'a String> {
    let only =
        |these: &'a [String], those: &'a [String]| these.iter().filter(move |line| !those.contains(line));
    only(found, expected).chain(only(expected, found)).collect()
}

fn statuses(test: &Context<'_>) -> Verdict {
    let finished = cargo_nyquist(test, &["-s"]).run()?;
    expect_eq("the status without Cargo.toml", finished.code(), 101)?;
    expect_contains("stderr", &finished.stderr, "could not find `Cargo.toml`")?;
    let exits = "std::process::exit(std::env::args().nth(1).unwrap().parse().unwrap());";
    write(
        test,
        &[("Cargo.toml", &manifest("demo", "")), ("src/main.rs", &format!("fn main() {{ {exits} }}"))],
    )?;
    for code in [0, 42] {
        let finished = cargo_nyquist(test, &["-s", "--", &code.to_string()]).run()?;
        expect_eq("the program's status", finished.code(), code)?;
    }
    fs::remove_file(test.path("profile.json.gz"))?;
    for args in [&["--bin", "nope"][..], &["--example", "nope"], &["example"], &["bench", "--bench", "nope"]]
    {
        let finished = cargo_nyquist(test, &[args, &["-s"]].concat()).run()?;
        expect_eq(&format!("the status of {args:?}"), finished.code(), 101)?;
        expect_contains("stderr", &finished.stderr, "error: ")?;
    }
    let finished = cargo_nyquist(test, &["bench", "-s"]).run()?;
    expect_eq("the status without benchmarks", finished.code(), 101)?;
    expect_contains("stderr", &finished.stderr, "there are no benchmarks")?;
    expect_contains("stderr", &finished.stderr, "hint: `cargo nyquist run`")?;
    fs::write(test.path("src/main.rs"), "fn main() { missing(); }")?;
    let finished = cargo_nyquist(test, &["-s"]).run()?;
    expect_eq("the status of a failed build", finished.code(), 101)?;
    expect_contains("stderr", &finished.stderr, "cannot find function `missing`")?;
    expect(!test.path("profile.json.gz").exists(), "there is a profile of nothing")?;
    expect_eq("wrong words", cargo_nyquist(test, &["benhc"]).run()?.code(), 2)
}

/// Makes a workspace with two packages and three programs.
fn workspace(test: &Context<'_>) -> Result<()> {
    let says = |name: &str| format!("fn main() {{ println!(\"this is {name}\"); }}");
    write(
        test,
        &[
            ("Cargo.toml", "[workspace]\nmembers = [\"one\", \"two\"]\nresolver = \"3\"\n"),
            ("one/Cargo.toml", &manifest("one", "")),
            ("one/src/main.rs", &says("one")),
            ("two/Cargo.toml", &manifest("two", "")),
            ("two/src/bin/second.rs", &says("second")),
            ("two/src/bin/third.rs", &says("third")),
        ],
    )
}

fn several(test: &Context<'_>) -> Verdict {
    workspace(test)?;
    let finished = cargo_nyquist(test, &["-s"]).run()?;
    expect_eq("the status", finished.code(), 101)?;
    for part in ["3 programs", "one (in one)", "second (in two)", "third (in two)", "--package one --bin one"]
    {
        expect_contains("stderr", &finished.stderr, part)?;
    }
    expect(!test.path("target").exists(), "something was built")?;
    for args in [&["--bin", "third"][..], &["-p", "two", "--bin", "third"], &["run", "--bin", "third"]] {
        let finished = cargo_nyquist(test, &[args, &["-s"]].concat()).run()?.succeeded()?;
        expect_contains("stdout", &finished.stdout_text(), "this is third")?;
    }
    let finished = cargo_nyquist(test, &["-s", "-p", "one"]).run()?.succeeded()?;
    expect_contains("stdout", &finished.stdout_text(), "this is one")
}

fn chosen(test: &Context<'_>) -> Verdict {
    workspace(test)?;
    let mut running = cargo_nyquist(test, &["-s"]).on_terminal().start()?;
    running.type_line("2")?;
    let finished = running.wait()?.succeeded()?;
    expect_contains("the terminal", &finished.stderr, "Which program?")?;
    expect_contains("the terminal", &finished.stderr, "this is second")?;
    let mut running = cargo_nyquist(test, &["-s"]).on_terminal().start()?;
    running.type_line("4")?;
    let finished = running.wait()?;
    expect_eq("the status of a number that is not there", finished.code(), 101)
}

fn dry_run(test: &Context<'_>) -> Verdict {
    write(test, &[("Cargo.toml", &manifest("demo", "")), ("src/main.rs", &main_with(COMPUTE))])?;
    let call = cargo_nyquist(test, &["--dry-run", "-s", "-o", "it's.json.gz", "--", "a b"]);
    let printed = call.run()?.succeeded()?.stdout_text();
    expect(!test.path("target").exists(), "something was built")?;
    let lines: Vec<&str> = printed.lines().collect();
    expect_eq("the number of commands", lines.len(), 2)?;
    for line in lines {
        let home = std::env::var("HOME")?;
        let target = test.path("target").display().to_string();
        let call = test.program("sh").args(&["-c", line]).env("CARGO_TARGET_DIR", target);
        call.env("HOME", home).run()?.succeeded()?;
    }
    let profile = Profile::read(&test.path("it's.json.gz"))?;
    expect_measured(
        profile.total_share("demo::compute") > 0.5,
        "the second command did not record the program",
    )
}

fn example(test: &Context<'_>) -> Verdict {
    write(
        test,
        &[
            ("Cargo.toml", &manifest("demo", "")),
            ("src/lib.rs", ""),
            ("examples/shown.rs", &main_with(COMPUTE)),
            ("examples/other.rs", "fn main() {}"),
        ],
    )?;
    let finished = cargo_nyquist(test, &["example", "shown", "-s", "--", "word"]).run()?.succeeded()?;
    expect_contains("stdout", &finished.stdout_text(), r#"["word"]"#)?;
    let profile = Profile::read(&test.path("profile.json.gz"))?;
    expect_measured(profile.total_share("shown::compute") > 0.5, "the example was not recorded")?;
    let finished = cargo_nyquist(test, &["example", "-s"]).run()?;
    expect_contains("stderr", &finished.stderr, "shown")?;
    expect_contains("stderr", &finished.stderr, "other")
}

fn bench(test: &Context<'_>) -> Verdict {
    let knows_option = format!("{COMPUTE} std::hint::black_box(\"profile-time\");");
    let benches =
        "[[bench]]\nname = \"own\"\nharness = false\n[[bench]]\nname = \"like_criterion\"\nharness = false\n";
    write(
        test,
        &[
            ("Cargo.toml", &manifest("demo", benches)),
            ("src/lib.rs", ""),
            ("benches/own.rs", &main_with(COMPUTE)),
            ("benches/like_criterion.rs", &main_with(&knows_option)),
        ],
    )?;
    let shown = |args: &[&str]| -> Result<String> {
        Ok(cargo_nyquist(test, &[&["bench", "-s"], args].concat()).run()?.succeeded()?.stdout_text())
    };
    expect_contains("own", &shown(&["--bench", "own", "sort"])?, r#"["--bench", "sort"]"#)?;
    let criterion = shown(&["--bench", "like_criterion", "sort", "--", "--noplot"])?;
    expect_contains(
        "like_criterion",
        &criterion,
        r#"["--bench", "--profile-time", "5", "sort", "--noplot"]"#,
    )?;
    let criterion = shown(&["--bench", "like_criterion", "--profile-time", "2"])?;
    expect_contains("like_criterion", &criterion, r#"["--bench", "--profile-time", "2"]"#)?;
    let profile = Profile::read(&test.path("profile.json.gz"))?;
    expect_measured(profile.total_share("like_criterion::compute") > 0.5, "the benchmark was not recorded")?;
    let finished = cargo_nyquist(test, &["bench", "-s"]).run()?;
    expect_eq("the status where there are two", finished.code(), 101)?;
    expect_contains("stderr", &finished.stderr, "like_criterion")
}

fn criterion(test: &Context<'_>) -> Verdict {
    let dependency = "[dev-dependencies]\ncriterion = { version = \"0.8\", default-features = false }\n[[bench]]\nname = \"sums\"\nharness = false\n";
    let source = format!(
        "{BUSY}\nuse criterion::{{Criterion, criterion_group, criterion_main}};\n\
         fn sums(c: &mut Criterion) {{\n    for name in [\"small\", \"large\"] {{\n        \
         c.bench_function(name, |b| b.iter(|| compute(std::hint::black_box(if name == \"small\" {{ 10 }} else {{ 5000 }}))));\n    }}\n}}\n\
         criterion_group!(all, sums);\ncriterion_main!(all);\n"
    );
    write(
        test,
        &[("Cargo.toml", &manifest("demo", dependency)), ("src/lib.rs", ""), ("benches/sums.rs", &source)],
    )?;
    if !cargo(test, &["fetch"]).run()?.status.success() {
        return skip("the registry of packages cannot be reached");
    }
    let finished =
        cargo_nyquist(test, &["bench", "large", "--profile-time", "2", "-s"]).run()?.succeeded()?;
    let all = format!("{}{}", finished.stdout_text(), finished.stderr);
    expect_contains("what Criterion says", &all, "Profiling for 2.0000 s")?;
    expect(!all.contains("Collecting"), "Criterion analysed")?;
    expect(!all.contains("small"), "the other benchmark ran")?;
    let profile = Profile::read(&test.path("profile.json.gz"))?;
    let (share, total) = (profile.total_share("sums::compute"), profile.total());
    // On a busy machine, the program gets less than two seconds of CPU time.
    expect_measured(share > 0.9 && total > 200.0, format_args!("compute has {share:.3} of {total} samples"))
}

fn one_test(test: &Context<'_>) -> Verdict {
    let tests = r#"#[test]
fn deep() { println!("deep: {}", compute(400_000)); }
#[test]
fn deep_nesting() { println!("nesting: {}", compute(400_000)); }
#[test]
#[ignore]
fn slow() { println!("slow: {}", compute(400_000)); }
#[test]
fn failing() { panic!("on purpose"); }"#;
    write(
        test,
        &[
            ("Cargo.toml", &manifest("demo", "[[test]]\nname = \"own_harness\"\nharness = false\n")),
            ("src/lib.rs", &format!("{BUSY}\n{tests}")),
            ("tests/outside.rs", "#[test]\nfn outside() { println!(\"outside\"); }\n"),
            (
                "tests/own_harness.rs",
                "fn main() { println!(\"own harness {:?}\", std::env::args().nth(1)); }\n",
            ),
        ],
    )?;
    let shown = |args: &[&str]| -> Result<String> {
        Ok(cargo_nyquist(test, &[&["test", "-s"], args].concat()).run()?.succeeded()?.stdout_text())
    };
    let exact = shown(&["deep"])?;
    expect(exact.contains("deep: ") && !exact.contains("nesting: "), "not the test of that name alone ran")?;
    let profile = Profile::read(&test.path("profile.json.gz"))?;
    expect_measured(profile.total_share("demo::deep") > 0.5, "the test was not recorded")?;
    expect_contains("a part of a name", &shown(&["nest"])?, "nesting: ")?;
    expect_contains("an ignored test", &shown(&["slow"])?, "slow: ")?;
    expect_contains("another file", &shown(&["outside"])?, "outside")?;
    expect_contains("another harness", &shown(&["own_harn"])?, "own harness None")?;
    let failed = cargo_nyquist(test, &["test", "failing", "-s"]).run()?;
    expect_eq("the status of a test that fails", failed.code(), 101)?;
    let ambiguous = cargo_nyquist(test, &["test", "ee", "-s"]).run()?;
    expect_contains("stderr", &ambiguous.stderr, "deep_nesting (in demo (the library))")?;
    let none = cargo_nyquist(test, &["test", "nothing_like_it", "-s"]).run()?;
    expect_eq("the status where there is none", none.code(), 101)?;
    expect_contains("stderr", &none.stderr, "no test's name contains `nothing_like_it`")
}

fn frame_pointers(test: &Context<'_>) -> Verdict {
    const FLAG: &str = "-Cforce-frame-pointers=yes";
    let script = r#"fn main() { let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap(); println!("cargo::rustc-env=FLAGS={}", flags.replace('\x1f', "|")); }"#;
    write(
        test,
        &[
            ("Cargo.toml", &manifest("demo", "")),
            ("src/main.rs", "fn main() { println!(\"{}\", env!(\"FLAGS\")); }"),
            ("build.rs", script),
        ],
    )?;
    let host = host(test)?;
    let variable = format!("CARGO_TARGET_{}_RUSTFLAGS", host.to_uppercase().replace('-', "_"));
    let build = "[build]\nrustflags = [\"--cfg\", \"build_flag\"]\n";
    let text = "[build]\nrustflags = \"--cfg build_flag\"\n";
    let triple = format!("[target.{host}]\nrustflags = [\"--cfg\", \"triple_flag\"]\n");
    let family = "[target.'cfg(target_os = \"linux\")']\nrustflags = \"--cfg family_flag\"\n";
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("", &[]),
        (build, &[]),
        (text, &[]),
        (&triple, &[]),
        (family, &[]),
        (&format!("{build}{triple}{family}"), &[]),
        (build, &[("RUSTFLAGS", "--cfg from_variable")]),
        (
            &triple,
            &[("CARGO_ENCODED_RUSTFLAGS", "--cfg\u{1f}from_encoded"), ("RUSTFLAGS", "--cfg not_taken")],
        ),
        (build, &[(&variable, "--cfg of_triple")]),
        (build, &[("CARGO_BUILD_RUSTFLAGS", "--cfg of_build")]),
        ("", &[("CARGO_BUILD_RUSTFLAGS", "--cfg of_build")]),
    ];
    for (config, variables) in cases {
        write(test, &[(".cargo/config.toml", config)])?;
        let flags = |call: Invocation<'_>| -> Result<Vec<String>> {
            let call = variables.iter().fold(call, |call, (name, value)| call.env(name, *value));
            let text = call.run()?.succeeded()?.stdout_text();
            Ok(text.trim().split('|').filter(|flag| !flag.is_empty()).map(str::to_owned).collect())
        };
        let expected = flags(cargo(test, &["run", "--release", "-q"]))?;
        let mut found = flags(cargo_nyquist(test, &["--frame-pointers", "-s", "-q"]))?;
        let what = format!("{config:?} with {variables:?}");
        expect(
            found.iter().any(|flag| flag == FLAG),
            format_args!("{what}: the flag is missing: {found:?}"),
        )?;
        found.retain(|flag| flag != FLAG);
        expect_eq(&what, found, expected)?;
    }
    Ok(())
}

/// The configuration of the workspace, that of the home folder, and variables.
type RunnerCase<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

/// Cargo merges the configuration of all these places, and refuses to merge a string with an array.
fn runners(test: &Context<'_>) -> Verdict {
    let says =
        "fn main() { println!(\"{:?} {:?}\", std::env::args().nth(1), std::env::var(\"WRAPPED\").ok()); }";
    write(test, &[("Cargo.toml", &manifest("demo", "")), ("src/main.rs", says)])?;
    let host = host(test)?;
    let variable = format!("CARGO_TARGET_{}_RUNNER", host.to_uppercase().replace('-', "_"));
    let text = format!("[target.{host}]\nrunner = \"env WRAPPED=text\"\n");
    let array = format!("[target.{host}]\nrunner = [\"env\", \"WRAPPED=array\"]\n");
    let family = "[target.'cfg(all())']\nrunner = \"env WRAPPED=family\"\n";
    let families = format!("{family}[target.'cfg(unix)']\nrunner = [\"env\"]\nrustflags = \"--cfg a\"\n");
    let target = format!("[build]\ntarget = \"{host}\"\n");
    let by_variable = [(variable.as_str(), "env WRAPPED=variable")];
    let cases: &[RunnerCase<'_>] = &[
        (&text, "", &[]),
        (&array, "", &[]),
        (family, "", &[]),
        (&families, "", &[]),
        (&format!("{target}{text}{family}"), "", &[]),
        (&format!("{target}{family}"), &text, &[]),
        (&target, &array, &[]),
        (&target, &array, &by_variable),
        (&target, &text, &by_variable),
        ("", "", &by_variable),
        (family, "", &[("CARGO_BUILD_TARGET", &host)]),
    ];
    for (workspace, home, variables) in cases {
        write(test, &[(".cargo/config.toml", workspace), ("home/config.toml", home)])?;
        let call = cargo_nyquist(test, &["-s", "-q", "--frame-pointers", "--", "--own"]);
        let call = call.env("CARGO_HOME", test.path("home").display().to_string());
        let call = variables.iter().fold(call, |call, (name, value)| call.env(name, *value));
        let shown = call.run()?.succeeded()?.stdout_text();
        let what = format!("{workspace:?}, {home:?}, {variables:?}");
        expect_contains(&what, &shown, "Some(\"--own\") None")?;
    }
    Ok(())
}

fn host(test: &Context<'_>) -> Result<String> {
    let shown = cargo(test, &["-vV"]).run()?.succeeded()?.stdout_text();
    let host = shown.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("cargo says no host")?.to_owned())
}

fn warnings(test: &Context<'_>) -> Verdict {
    write(test, &[("Cargo.toml", &manifest("demo", "")), ("src/main.rs", "fn main() {}")])?;
    let printed = |call: Invocation<'_>| -> Result<String> { Ok(call.run()?.succeeded()?.stderr) };
    let good = printed(cargo_nyquist(test, &["-s"]))?;
    expect(!good.contains("warning"), format_args!("a good build is warned of: {good}"))?;
    let slow = printed(cargo_nyquist(test, &["-s", "--profile", "dev"]))?;
    expect_contains("stderr", &slow, "without optimisation")?;
    expect_contains("stderr", &slow, "[profile.dev]\n  opt-level = 3")?;
    let bare = printed(cargo_nyquist(test, &["-s"]).env("RUSTFLAGS", "-Cstrip=symbols"))?;
    expect_contains("stderr", &bare, "no debug info")?;
    expect_contains("stderr", &bare, "debug = \"limited\"")
}
