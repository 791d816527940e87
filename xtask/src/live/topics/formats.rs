//! `nyquist export`, read by the tools for these formats and by nyquist; and files that are no profiles.

use serde_json::Value;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, skip};
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("folded_counts_sum_to_the_report", folded).quick(),
    Test::new("exports_are_read_back_with_their_functions", read_back),
    Test::new("pprof_shows_the_same_functions", go_pprof),
    Test::new("mangled_names_are_read_as_they_were_written", mangled).quick(),
    Test::new("callgrind_shows_the_same_costs", callgrind),
    Test::new("compressed_files_are_read_as_they_were", compressed),
    Test::new("a_closed_pipe_is_no_error", closed_pipe),
    Test::new("what_is_no_profile_says_so", no_profile).quick(),
];

/// Profiles, recordings and texts can be read with every common compression, and from a pipe.
fn compressed(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "300"]).run_well()?;
    let file = recorded.path.display().to_string();
    let weight = reported_weight(test, &file)?;
    for name in ["x.json", "x.data", "x.perf"] {
        let plain = test.path(name).display().to_string();
        test.nyquist(&["export", &file, "-o", &plain]).run()?.succeeded()?;
        let weight = if name == "x.json" { weight } else { reported_weight(test, &plain)? };
        for (program, extension) in [("gzip", "gz"), ("xz", "xz"), ("bzip2", "bz2"), ("zstd", "zst")] {
            if !has(test, program, "--version") {
                return skip(format!("{program} is not installed"));
            }
            test.program(program).args(&["-k", "-q", "-f", &plain]).run()?.succeeded()?;
            let packed = format!("{plain}.{extension}");
            expect_eq(&packed, reported_weight(test, &packed)?, weight)?;
            let line = format!("cat {packed} | \"$0\" report --json -");
            let nyquist = test.nyquist_path().display().to_string();
            let text = test.program("sh").args(&["-c", &line, &nyquist]).run()?.succeeded()?.stdout_text();
            let json: Value = serde_json::from_str(&text)?;
            expect_eq(&line, json["weight"].as_u64(), Some(weight))?;
        }
    }
    let cut = test.path("cut.json.xz");
    let whole = std::fs::read(test.path("x.json.xz"))?;
    std::fs::write(&cut, &whole[..64])?;
    let printed = test.nyquist(&["report"]).path(&cut).run()?;
    expect(printed.code() != 0, "a file that is cut off at once is read")?;
    expect_contains("what is said", &printed.stderr, "cut.json.xz")
}

/// The weight of all samples in the report.
pub(super) fn reported_weight(test: &Context<'_>, file: &str) -> Result<u64, Stop> {
    reported(test, file).map(|(weight, _)| weight)
}

/// The weight in a file's report, in samples and in nanoseconds.
fn reported(test: &Context<'_>, file: &str) -> Result<(u64, u64), Stop> {
    let text = test.nyquist(&["report", "--json", file]).run()?.succeeded()?.stdout_text();
    let json: Value = serde_json::from_str(&text)?;
    let number = |key: &str| json[key].as_u64();
    let weight = number("weight").ok_or_else(|| Stop::Failed(format!("no weight in the report: {text}")))?;
    Ok((weight, weight * number("interval_ns").unwrap_or_default()))
}

fn folded(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "300"]).run_well()?;
    let file = recorded.path.display().to_string();
    let text = test.nyquist(&["export", "--format", "folded", &file]).run()?.succeeded()?.stdout_text();
    let counts =
        text.lines().map(|line| line.rsplit_once(' ').and_then(|(_, count)| count.parse::<u64>().ok()));
    let sum: Option<u64> = counts.sum();
    expect_eq("the sum of all lines", sum, Some(reported_weight(test, &file)?))?;
    expect(
        text.lines().any(|line| line.starts_with("shares;") && line.contains(";alpha ")),
        format_args!("no alpha: {text}"),
    )
}

fn read_back(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "300"]).run_well()?;
    let file = recorded.path.display().to_string();
    let (weight, time) = reported(test, &file)?;
    for name in [
        "x.pb.gz",
        "x.otlp",
        "x.pftrace",
        "x.folded",
        "x.speedscope.json",
        "x.perf",
        "x.json.gz",
        "x.trace.json",
        "x.callgrind",
    ] {
        let out = test.path(name).display().to_string();
        test.nyquist(&["export", &file, "-o", &out]).run()?.succeeded()?;
        let table = test.nyquist(&["report", &out]).run()?.succeeded()?.stdout_text();
        for function in ["alpha", "beta", "gamma_"] {
            expect_contains(name, &table, function)?;
        }
        let read = reported(test, &out)?;
        match name {
            // A trace has no weights. It has only times from one sample to the next.
            "x.trace.json" => {}
            // Costs are times, and not numbers of samples.
            "x.callgrind" => expect_eq(name, read.1, time)?,
            _ => expect_eq(name, read.0, weight)?,
        }
        let imported = test.path("imported.json.gz").display().to_string();
        test.nyquist(&["import", "-s", "-o", &imported, &out]).run()?.succeeded()?;
        let of_pipe = format!("cat '{out}' | '{}' report -", test.nyquist_path().display());
        let of_pipe = test.program("sh").args(&["-c", &of_pipe]).run()?.succeeded()?.stdout_text();
        let of_import = test.nyquist(&["report", &imported]).run()?.succeeded()?.stdout_text();
        for function in ["alpha", "beta", "gamma_"] {
            expect_contains(&format!("{name} through a pipe"), &of_pipe, function)?;
            expect_contains(&format!("{name} imported"), &of_import, function)?;
        }
    }
    Ok(())
}

/// Whether this machine can run a program.
pub(super) fn has(test: &Context<'_>, program: &str, argument: &str) -> bool {
    test.program(program).args(&[argument]).run().is_ok_and(|finished| finished.status.success())
}

fn go_pprof(test: &Context<'_>) -> Verdict {
    if !has(test, "go", "version") {
        return skip("go is not installed");
    }
    let recorded = test.record(&["shares", "300"]).run_well()?;
    let (file, out) = (recorded.path.display().to_string(), test.path("x.pb.gz").display().to_string());
    test.nyquist(&["export", &file, "-o", &out]).run()?.succeeded()?;
    let top = test.program("go").args(&["tool", "pprof", "-top", &out]).run()?.succeeded()?.stdout_text();
    let rows = top.lines().skip_while(|line| !line.trim_start().starts_with("flat")).skip(1);
    let names: Vec<_> = rows.filter_map(|row| row.split_whitespace().nth(5)).take(3).collect();
    let mut leading = vec!["alpha", "beta", "gamma_"];
    leading
        .sort_by(|one, next| recorded.profile.self_share(next).total_cmp(&recorded.profile.self_share(one)));
    expect_eq("the functions that lead", names, leading)?;
    let raw = test.program("go").args(&["tool", "pprof", "-raw", &out]).run()?.succeeded()?.stdout_text();
    expect_contains("pprof -raw", &raw, "samples/count cpu/nanoseconds[dflt]")?;
    expect_contains("pprof -raw", &raw, "thread:[shares]")
}

/// The cost of a function in the output of `callgrind_annotate`. The function's name follows its file.
pub(super) fn annotated(
    test: &Context<'_>,
    file: &str,
    function: &str,
    inclusive: &str,
) -> Result<u64, Stop> {
    let inclusive = format!("--inclusive={inclusive}");
    let args = ["--threshold=100", "--auto=no", &inclusive, file];
    let text = test.program("callgrind_annotate").args(&args).run()?.succeeded()?.stdout_text();
    // `1,234 (5.6%)  file:function [object]`
    let is_of = |line: &&str| {
        let name = line.split(" [").next().unwrap_or_default();
        name.rsplit_once(':').is_some_and(|(_, name)| name.trim() == function)
    };
    let cost = text.lines().find(is_of).and_then(|line| line.split_whitespace().next());
    cost.and_then(|cost| cost.replace(',', "").parse().ok())
        .ok_or_else(|| Stop::Failed(format!("{function} is not in what callgrind_annotate says:\n{text}")))
}

fn callgrind(test: &Context<'_>) -> Verdict {
    // `callgrind_annotate --version` ends with status 255.
    if !has(test, "valgrind", "--version") {
        return skip("valgrind is not installed");
    }
    let recorded = test.record(&["shares", "300"]).run_well()?;
    let (file, out) =
        (recorded.path.display().to_string(), test.path("callgrind.out.1").display().to_string());
    test.nyquist(&["export", &file, "-o", &out]).run()?.succeeded()?;
    let json = test.nyquist(&["report", "--json", &file]).run()?.succeeded()?.stdout_text();
    let json: Value = serde_json::from_str(&json)?;
    let interval = json["interval_ns"].as_u64().unwrap_or(0);
    let ours = |function: &str, amount: &str| {
        let mut rows = json["functions"].as_array().into_iter().flatten();
        let row = rows.find(|row| row["function"] == function);
        row.and_then(|row| row[amount].as_u64()).unwrap_or(0) * interval
    };
    for function in ["alpha", "beta", "gamma_"] {
        expect_eq(function, annotated(test, &out, function, "yes")?, ours(function, "total"))?;
        expect_eq(function, annotated(test, &out, function, "no")?, ours(function, "self"))?;
    }
    expect_eq("main", annotated(test, &out, "main", "yes")?, ours("main", "total"))?;
    expect_eq("the weight that is read again", reported_weight(test, &out)? > 0, true)
}

/// Mangled names in perf's text and in folded stacks are demangled.
fn mangled(test: &Context<'_>) -> Verdict {
    let (cpp, rust) = ("_ZNSt6vectorIiSaIiEE9push_backEOi", "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE");
    let perf = format!("a 7 1.000000: 250000 cpu-clock: \n\t 10 {cpp}+0x1 (/a)\n\t 20 {rust}+0x2 (/a)\n\n");
    for (name, text) in [("x.perf", perf), ("x.folded", format!("{rust};{cpp} 3\n"))] {
        let file = test.path(name);
        std::fs::write(&file, text)?;
        let table = test.nyquist(&["report", "--full-names"]).path(&file).run()?.succeeded()?.stdout_text();
        expect_contains(name, &table, "std::vector<int, std::allocator<int> >::push_back(int&&)")?;
        expect_contains(name, &table, "core::fmt::Formatter::pad")?;
    }
    Ok(())
}

fn closed_pipe(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "100"]).run_well()?;
    let command = format!(
        "set -o pipefail; {} export {} --format perf-script | head -n 1",
        test.nyquist_path().display(),
        recorded.path.display()
    );
    let finished = test.program("bash").args(&["-c", &command]).run()?.succeeded()?;
    expect(finished.stderr.is_empty(), format_args!("it said: {}", finished.stderr))
}

fn no_profile(test: &Context<'_>) -> Verdict {
    let file = test.path("x.txt");
    std::fs::write(&file, "no profile at all\n")?;
    let finished = test.nyquist(&["report"]).path(&file).run()?;
    expect_eq("the status", finished.code(), 1)?;
    expect_contains("the error", &finished.stderr, "this is not a profile")?;
    expect_contains("the hint", &finished.stderr, "docs/formats.md lists them all")?;
    let folder = test.path("x.trace");
    std::fs::create_dir(&folder)?;
    let finished = test.nyquist(&["report"]).path(&folder).run()?;
    expect_eq("the status", finished.code(), 1)?;
    expect_contains("the error", &finished.stderr, "only an export of it can be read")?;
    let command = format!("xcrun xctrace export --input '{}'", folder.display());
    expect_contains("the error", &finished.stderr, &command)
}
