//! `nyquist export`, read by the tools for these formats; and files of those tools, read by nyquist.

use serde_json::Value;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, expect_measured, skip};
use super::harness::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("folded_counts_sum_to_the_report", folded).quick().parallel(),
    Test::new("exports_are_read_back_with_their_functions", read_back).parallel(),
    Test::new("pprof_shows_the_same_functions", go_pprof).parallel(),
    Test::new("perf_script_text_is_read", perf_script).parallel(),
    Test::new("mangled_names_are_read_as_they_were_written", mangled).quick().parallel(),
    Test::new("a_cpu_profile_of_node_is_read", node).parallel(),
    Test::new("a_heap_profile_of_node_is_read", node_heap).parallel(),
    Test::new("a_profile_of_cprofile_is_read", python).parallel(),
    Test::new("a_profile_of_dhat_is_read", dhat).parallel(),
    Test::new("a_cpu_profile_of_go_is_read", go_profile).parallel(),
    Test::new("a_heap_profile_of_go_as_text_is_read", go_text).parallel(),
    Test::new("a_recording_of_java_is_read", java_recording).parallel(),
    Test::new("a_trace_that_chromium_made_is_read", chromium_trace),
    Test::new("a_profile_that_firefox_made_is_read", firefox),
    Test::new("callgrind_shows_the_same_costs", callgrind).parallel(),
    Test::new("a_file_of_callgrind_is_read", callgrind_file).parallel(),
    Test::new("compressed_files_are_read_as_they_were", compressed).parallel(),
    Test::new("a_closed_pipe_is_no_error", closed_pipe).parallel(),
    Test::new("what_is_no_profile_says_so", no_profile).quick().parallel(),
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
    let said = test.nyquist(&["report"]).path(&cut).run()?;
    expect(said.code() != 0, "a file that is cut off at once is read")?;
    expect_contains("what is said", &said.stderr, "cut.json.xz")
}

/// The weight of all samples in the report.
fn reported_weight(test: &Context<'_>, file: &str) -> Result<u64, Stop> {
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
    let mut leading = vec!["alpha", "beta", "gamma_"];
    leading
        .sort_by(|one, next| recorded.profile.self_share(next).total_cmp(&recorded.profile.self_share(one)));
    expect_eq("the functions that lead", names, leading)?;
    let raw = test.program("go").args(&["tool", "pprof", "-raw", &out]).run()?.succeeded()?.stdout_text();
    expect_contains("pprof -raw", &raw, "samples/count cpu/nanoseconds[dflt]")?;
    expect_contains("pprof -raw", &raw, "thread:[shares]")
}

/// The cost of a function in the output of `callgrind_annotate`. The function's name follows its file.
fn annotated(test: &Context<'_>, file: &str, function: &str, inclusive: &str) -> Result<u64, Stop> {
    let inclusive = format!("--inclusive={inclusive}");
    let words = ["--threshold=100", "--auto=no", &inclusive, file];
    let text = test.program("callgrind_annotate").args(&words).run()?.succeeded()?.stdout_text();
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

/// Files of callgrind itself: the costs of the functions are those that callgrind's own tool prints.
fn callgrind_file(test: &Context<'_>) -> Verdict {
    if !has(test, "valgrind", "--version") {
        return skip("valgrind is not installed");
    }
    let (out, shares) =
        (test.path("x.out").display().to_string(), test.workload("shares").display().to_string());
    let target = format!("--callgrind-out-file={out}");
    test.program("valgrind").args(&["-q", "--tool=callgrind", &target, &shares, "5"]).run()?.succeeded()?;
    let json = test.nyquist(&["report", "--json", &out]).run()?.succeeded()?.stdout_text();
    let json: Value = serde_json::from_str(&json)?;
    let sum = total_of(&out)? as f64;
    for function in ["alpha", "beta", "gamma_"] {
        let mut rows = json["functions"].as_array().into_iter().flatten();
        let row = rows.find(|row| row["function"] == function);
        for (share, inclusive) in [("self_share", "no"), ("total_share", "yes")] {
            let ours = row.and_then(|row| row[share].as_f64()).unwrap_or(0.0);
            let theirs = annotated(test, &out, function, inclusive)? as f64 / sum;
            expect(
                (ours - theirs).abs() < 0.001,
                format_args!("{function} has {ours}, by callgrind_annotate {theirs}"),
            )?;
        }
    }
    Ok(())
}

/// The sum in the last line of a callgrind file.
fn total_of(file: &str) -> Result<u64, Stop> {
    let text = std::fs::read_to_string(file)?;
    let total = text.lines().rev().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok());
    total.ok_or_else(|| Stop::Failed("the file has no totals".to_owned()))
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

fn node_heap(test: &Context<'_>) -> Verdict {
    if !has(test, "node", "--version") {
        return skip("node is not installed");
    }
    let program = "function keep(n) { const a = []; for (let i = 0; i < n; i++) a.push({x: i, s: 'n' + i}); return a; } \
        globalThis.kept = keep(300000);";
    let folder = test.path("").display().to_string();
    let words =
        ["--heap-prof", "--heap-prof-dir", &folder, "--heap-prof-name", "x.heapprofile", "-e", program];
    test.program("node").args(&words).run()?.succeeded()?;
    let file = test.path("x.heapprofile").display().to_string();
    let folded = test.nyquist(&["export", "--format", "folded", &file]).run()?.succeeded()?.stdout_text();
    let kept = folded.lines().filter(|line| line.contains(";keep "));
    let bytes: u64 = kept.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum();
    expect(bytes > 5_000_000, format_args!("keep has {bytes} bytes of\n{folded}"))
}

fn python(test: &Context<'_>) -> Verdict {
    if !has(test, "python3", "--version") {
        return skip("python3 is not installed");
    }
    let (source, out) = (test.path("busy.py"), test.path("x.pstats").display().to_string());
    let program =
        "def busy():\n    return sum(i * i for i in range(1000000))\ndef main():\n    busy()\nmain()\n";
    std::fs::write(&source, program)?;
    let source = source.display().to_string();
    test.program("python3").args(&["-m", "cProfile", "-o", &out, &source]).run()?.succeeded()?;
    let script = "import pstats, sys\n\
        rows = pstats.Stats(sys.argv[1]).stats.items()\n\
        print(sum(int(ct * 1000) for (_, _, name), (_, _, _, ct, _) in rows if name == 'main'))";
    let theirs = test.program("python3").args(&["-c", script, &out]).run()?.succeeded()?.stdout_text();
    let theirs: u64 = theirs.trim().parse().map_err(|_| Stop::Failed(format!("no time: {theirs}")))?;
    let folded = test.nyquist(&["export", "--format", "folded", &out]).run()?.succeeded()?.stdout_text();
    let json = test.nyquist(&["report", "--json", &out]).run()?.succeeded()?.stdout_text();
    let json: Value = serde_json::from_str(&json)?;
    let interval = json["interval_ns"].as_u64().unwrap_or(1);
    let of_main = folded.lines().filter(|line| line.contains(";main;") || line.contains(";main "));
    let ours: u64 = of_main.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum();
    let ours = ours * interval / 1_000_000;
    expect(ours.abs_diff(theirs) <= 1, format_args!("main has {ours} ms, by pstats {theirs} ms"))
}

fn dhat(test: &Context<'_>) -> Verdict {
    if !has(test, "valgrind", "--version") {
        return skip("valgrind is not installed");
    }
    let (out, shares) =
        (test.path("x.json").display().to_string(), test.workload("shares").display().to_string());
    let target = format!("--dhat-out-file={out}");
    let said =
        test.program("valgrind").args(&["--tool=dhat", &target, &shares, "5"]).run()?.succeeded()?.stderr;
    // `==7== Total:     1,024 bytes in 1 blocks`
    let total = said.lines().find_map(|line| line.split_once("Total:")?.1.trim().split(' ').next());
    let total = total.map(|total| total.replace(',', "").parse::<u64>().unwrap_or(0)).unwrap_or_default();
    let folded = test.nyquist(&["export", "--format", "folded", &out]).run()?.succeeded()?.stdout_text();
    let bytes: u64 = folded.lines().filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum();
    expect_eq("the bytes", bytes, total)
}

/// The time of a function, computed from one of its shares.
fn reported_ms(test: &Context<'_>, file: &str, function: &str, share: &str) -> Result<u64, Stop> {
    let json = test.nyquist(&["report", "--json", file]).run()?.succeeded()?.stdout_text();
    let json: Value = serde_json::from_str(&json)?;
    let mut rows = json["functions"].as_array().into_iter().flatten();
    let share = rows.find(|row| row["function"] == function).and_then(|row| row[share].as_f64());
    let time = share.unwrap_or(0.0) * json["cpu_ns"].as_f64().unwrap_or(0.0);
    Ok((time / 1e6).round() as u64)
}

/// Files of Go's own profiler: pprof, written by the producer that defined the format.
fn go_profile(test: &Context<'_>) -> Verdict {
    if !has(test, "go", "version") {
        return skip("go is not installed");
    }
    let (source, profile) = (test.path("busy.go"), test.path("busy.pb.gz").display().to_string());
    let program = "package main\n\
        import (\"os\"; \"runtime/pprof\"; \"time\")\n\
        //go:noinline\n\
        func busy() (sum int) { for i := 0; i < 1000000; i++ { sum = sum*31 + i }; return }\n\
        func main() {\n\
        file, _ := os.Create(os.Args[1])\n\
        pprof.StartCPUProfile(file)\n\
        for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); { busy() }\n\
        pprof.StopCPUProfile()\n\
        file.Close() }\n";
    std::fs::write(&source, program)?;
    let cache = test.path("cache").display().to_string();
    let words = ["run", &source.display().to_string(), &profile];
    test.program("go").args(&words).env("GOCACHE", cache).run()?.succeeded()?;
    let top = test.program("go").args(&["tool", "pprof", "-top", &profile]).run()?.succeeded()?.stdout_text();
    let expected = top.lines().find(|row| row.ends_with("main.busy")).unwrap_or_default();
    let self_ms = reported_ms(test, &profile, "main.busy", "self_share")?;
    let of_pprof = expected.split_whitespace().next().unwrap_or_default();
    expect_eq("main.busy's own time", format!("{self_ms}ms"), of_pprof.to_owned())
}

/// Go's heap profile as text, compared with the same profile in the format that has replaced it.
fn go_text(test: &Context<'_>) -> Verdict {
    if !has(test, "go", "version") {
        return skip("go is not installed");
    }
    let source = test.path("heap.go");
    let (text, pprof) =
        (test.path("heap.txt").display().to_string(), test.path("heap.pb.gz").display().to_string());
    let program = "package main\n\
        import (\"os\"; \"runtime\"; \"runtime/pprof\")\n\
        var keep [][]byte\n\
        //go:noinline\n\
        func hold(size int) { keep = append(keep, make([]byte, size)) }\n\
        func main() {\n\
        runtime.MemProfileRate = 4096\n\
        for i := 0; i < 2000; i++ { hold(5000) }\n\
        runtime.GC(); runtime.GC()\n\
        for place, name := range os.Args[1:] {\n\
        file, _ := os.Create(name); pprof.Lookup(\"heap\").WriteTo(file, place); file.Close() } }\n";
    std::fs::write(&source, program)?;
    let cache = test.path("cache").display().to_string();
    let words = ["run", &source.display().to_string(), &pprof, &text];
    test.program("go").args(&words).env("GOCACHE", cache).run()?.succeeded()?;
    let held = |file: &str| -> Result<u64, Stop> {
        let json =
            test.nyquist(&["report", "--json", "--limit", "0", file]).run()?.succeeded()?.stdout_text();
        let json: Value = serde_json::from_str(&json)?;
        let mut rows = json["functions"].as_array().into_iter().flatten();
        let row = rows.find(|row| row["function"] == "main.hold");
        let share = row.and_then(|row| row["total_share"].as_f64()).unwrap_or(0.0);
        Ok((share * 1000.0).round() as u64)
    };
    let (of_text, of_pprof) = (held(&text)?, held(&pprof)?);
    expect(of_text > 500, format_args!("main.hold has {of_text} thousandths"))?;
    expect(of_text.abs_diff(of_pprof) <= 20, format_args!("{of_text} and {of_pprof} thousandths"))
}

/// Files of the JDK's own recorder. The number of execution samples is the one that its tool counts, and
/// other events keep their names.
fn java_recording(test: &Context<'_>) -> Verdict {
    if !has(test, "java", "-version") || !has(test, "jfr", "--version") {
        return skip("java is not installed");
    }
    let file = test.path("java.jfr").display().to_string();
    let source = crate::root().join("workloads/Jit.java").display().to_string();
    let recording = format!("-XX:StartFlightRecording=filename={file},settings=profile");
    test.program("java").args(&[&recording, &source]).run()?.succeeded()?;
    let summary = test.program("jfr").args(&["summary", &file]).run()?.succeeded()?.stdout_text();
    let count = |event: &str| {
        let row = summary.lines().find(|row| row.split_whitespace().next() == Some(event));
        row.and_then(|row| row.split_whitespace().nth(1)).and_then(|count| count.parse::<u64>().ok())
    };
    expect_eq("samples", Some(reported_weight(test, &file)?), count("jdk.ExecutionSample"))?;
    let table = test.nyquist(&["report", &file]).run()?.succeeded()?.stdout_text();
    expect_contains("the report", &table, "Jit.fibonacci")?;
    let imported = test.path("allocations.json.gz").display().to_string();
    let words = ["import", "-s", "-q", "--event", "alloc", "-o", &imported, &file];
    test.nyquist(&words).run()?.succeeded()?;
    let table = test.nyquist(&["report", &imported]).run()?.succeeded()?.stdout_text();
    expect_contains("the report of allocations", &table, "jdk.ObjectAllocationSample")
}

/// A trace with V8's CPU profiles. A page that computes for a second by the clock takes as long in the
/// profile.
fn chromium_trace(test: &Context<'_>) -> Verdict {
    if !has(test, "chromium", "--version") {
        return skip("chromium is not installed");
    }
    let (page, trace) = (test.path("page.html"), test.path("trace.json").display().to_string());
    std::fs::write(&page, format!("<script>{BUSY_PAGE}</script>"))?;
    let categories = "-*,devtools.timeline,disabled-by-default-v8.cpu_profiler,__metadata";
    let words =
        ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"];
    let running = test
        .program("chromium")
        .args(&words)
        .args(&[&format!("--user-data-dir={}", test.path("profile").display())])
        .args(&[&format!("--trace-startup={categories}"), &format!("--trace-startup-file={trace}")])
        .args(&["--trace-startup-format=json", "--trace-startup-duration=0"])
        .args(&[&format!("--screenshot={}", test.path("page.png").display())])
        .args(&[&format!("file://{}", page.display())])
        .start()?;
    running.wait()?;
    if !std::path::Path::new(&trace).exists() {
        return skip("chromium has written no trace here");
    }
    let total_ms = reported_ms(test, &trace, "busy_in_the_page", "total_share")?;
    expect_measured((800..1300).contains(&total_ms), format_args!("busy_in_the_page took {total_ms} ms"))
}

/// Computes for a second by the clock of the page.
const BUSY_PAGE: &str = "function busy_in_the_page(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i); return s; } \
    const end = performance.now() + 1000; while (performance.now() < end) busy_in_the_page(100000);";

/// The profile that Firefox writes of itself at its end. It has several processes, JavaScript and native
/// code, and markers.
fn firefox(test: &Context<'_>) -> Verdict {
    let Some(program) =
        ["firefox-esr", "firefox"].into_iter().find(|program| has(test, program, "--version"))
    else {
        return skip("firefox is not installed");
    };
    let (page, profile, folder) = (test.path("page.html"), test.path("firefox.json"), test.path("profile"));
    std::fs::write(&page, format!("<script>{BUSY_PAGE}</script>"))?;
    std::fs::create_dir_all(&folder)?;
    let (home, picture) = (test.path("").display().to_string(), test.path("page.png").display().to_string());
    let words = ["--headless", "--profile", &folder.display().to_string(), "--screenshot", &picture]
        .map(str::to_owned);
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let running = test
        .program(program)
        .args(&words)
        .args(&[&format!("file://{}", page.display())])
        .env("HOME", home)
        .env("MOZ_PROFILER_STARTUP", "1")
        .env("MOZ_PROFILER_STARTUP_FEATURES", "js,stackwalk,cpu")
        .env("MOZ_PROFILER_SHUTDOWN", profile.display().to_string())
        .start()?;
    running.wait()?;
    if !profile.exists() {
        return skip("firefox has written no profile of itself here");
    }
    let file = profile.display().to_string();
    let ask = |words: &[&str]| -> Result<Value, Stop> {
        let text = test.nyquist(&["report", "--json", &file]).args(words).run()?.succeeded()?.stdout_text();
        Ok(serde_json::from_str(&text)?)
    };
    let names = |json: &Value, list: &str, member: &str| -> Vec<String> {
        let rows = json[list].as_array().into_iter().flatten();
        rows.filter_map(|row| Some(row[member].as_str()?.to_owned())).collect()
    };
    let threads = ask(&["--threads"])?;
    let mut processes = names(&threads, "threads", "pid");
    processes.sort();
    processes.dedup();
    expect(processes.len() > 1, format_args!("the processes are {processes:?}"))?;
    expect(
        names(&threads, "threads", "thread").iter().any(|name| name == "GeckoMain"),
        format_args!("{threads}"),
    )?;
    let functions = ask(&["--limit", "0"])?;
    let named = names(&functions, "functions", "function");
    let has_page = named.iter().any(|name| name.starts_with("busy_in_the_page"));
    expect(has_page, format_args!("no function of the page among {}", named.len()))?;
    expect(
        named.iter().any(|name| name.starts_with("__libc_start_call_main")),
        "no native function has a name",
    )?;
    let cpu = functions["cpu_ns"].as_u64().unwrap_or(0);
    let duration = functions["duration_ns"].as_u64().unwrap_or(0);
    expect(cpu > 100_000_000, format_args!("{cpu} ns of CPU time in {duration} ns"))?;
    let markers = names(&ask(&["--markers", "--limit", "0"])?, "markers", "marker");
    expect(markers.len() > 20, format_args!("the markers are {markers:?}"))
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
    let folder = test.path("x.trace");
    std::fs::create_dir(&folder)?;
    let finished = test.nyquist(&["report"]).path(&folder).run()?;
    expect_eq("the status", finished.code(), 1)?;
    expect_contains("the error", &finished.stderr, "only an export of it can be read")?;
    let command = format!("xcrun xctrace export --input '{}'", folder.display());
    expect_contains("the error", &finished.stderr, &command)
}
