//! `nyquist export`, read by the tools that the formats are for; and their own files, read by nyquist.

use serde_json::Value;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, skip};
use super::harness::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("folded_counts_sum_to_the_report", folded).quick().parallel(),
    Test::new("exports_are_read_back_with_their_functions", read_back).parallel(),
    Test::new("pprof_shows_the_same_functions", go_pprof).parallel(),
    Test::new("perf_script_text_is_read", perf_script).parallel(),
    Test::new("a_cpu_profile_of_node_is_read", node).parallel(),
    Test::new("a_closed_pipe_is_no_error", closed_pipe).parallel(),
    Test::new("what_is_no_profile_says_so", no_profile).quick().parallel(),
];

/// The weight of all samples as the report has it.
fn reported_weight(test: &Context<'_>, file: &str) -> Result<u64, Stop> {
    let text = test.nyquist(&["report", "--json", file]).run()?.succeeded()?.stdout_text();
    let json: Value = serde_json::from_str(&text)?;
    json["weight"].as_u64().ok_or_else(|| Stop::Failed(format!("no weight in the report: {text}")))
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
    let weight = reported_weight(test, &file)?;
    for name in ["x.pb.gz", "x.folded", "x.speedscope.json", "x.perf", "x.json.gz", "x.trace.json"] {
        let out = test.path(name).display().to_string();
        test.nyquist(&["export", &file, "-o", &out]).run()?.succeeded()?;
        let table = test.nyquist(&["report", &out]).run()?.succeeded()?.stdout_text();
        for function in ["alpha", "beta", "gamma_"] {
            expect_contains(name, &table, function)?;
        }
        // A trace has no weights, only times from a sample to the next.
        if name != "x.trace.json" {
            expect_eq(name, reported_weight(test, &out)?, weight)?;
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

/// Whether a program can be run here.
fn has(test: &Context<'_>, program: &str, argument: &str) -> bool {
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
    expect_eq("the functions that lead", names, vec!["alpha", "beta", "gamma_"])?;
    let raw = test.program("go").args(&["tool", "pprof", "-raw", &out]).run()?.succeeded()?.stdout_text();
    expect_contains("pprof -raw", &raw, "samples/count cpu/nanoseconds[dflt]")?;
    expect_contains("pprof -raw", &raw, "thread:[shares]")
}

fn perf_script(test: &Context<'_>) -> Verdict {
    if !has(test, "perf", "--version") {
        return skip("perf is not installed");
    }
    let (data, text) = (test.path("perf.data").display().to_string(), test.path("perf.txt"));
    let shares = test.workload("shares").display().to_string();
    let words = ["record", "-q", "-e", "cpu-clock:u", "-g", "-o", &data, "--", &shares, "300"];
    if !test.program("perf").args(&words).run()?.status.success() {
        return skip("perf cannot record here");
    }
    let script = test.program("perf").args(&["script", "-i", &data]).run()?.succeeded()?;
    std::fs::write(&text, &script.stdout)?;
    let file = text.display().to_string();
    let table = test.nyquist(&["report", &file]).run()?.succeeded()?.stdout_text();
    let heads = script.stdout_text().lines().filter(|line| line.contains("cpu-clock")).count() as u64;
    expect_eq("samples", reported_weight(test, &file)?, heads)?;
    expect_contains("the report", &table, "alpha")
}

fn node(test: &Context<'_>) -> Verdict {
    if !has(test, "node", "--version") {
        return skip("node is not installed");
    }
    let program = "function busy(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i); return s; } \
        const end = Date.now() + 400; while (Date.now() < end) busy(100000);";
    let folder = test.path("").display().to_string();
    let words = ["--cpu-prof", "--cpu-prof-dir", &folder, "--cpu-prof-name", "x.cpuprofile", "-e", program];
    test.program("node").args(&words).run()?.succeeded()?;
    let file = test.path("x.cpuprofile").display().to_string();
    let table = test.nyquist(&["report", &file]).run()?.succeeded()?.stdout_text();
    expect_contains("the report", &table, "busy")
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
    let trace = test.path("x.etl");
    std::fs::write(&trace, [0_u8, 0, 1, 0, 0, 0, 0, 0])?;
    let finished = test.nyquist(&["report"]).path(&trace).run()?;
    expect_contains("the error", &finished.stderr, "cannot be read yet")
}
