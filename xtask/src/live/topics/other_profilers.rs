//! Files that other profilers write, read by nyquist: their own tools must show the same.

use serde_json::Value;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, expect_measured, skip};
use super::formats::{annotated, has, reported_weight};
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("perf_script_text_is_read", perf_script),
    Test::new("a_cpu_profile_of_node_is_read", node),
    Test::new("a_heap_profile_of_node_is_read", node_heap),
    Test::new("a_profile_of_cprofile_is_read", python),
    Test::new("a_profile_of_dhat_is_read", dhat),
    Test::new("a_cpu_profile_of_go_is_read", go_profile),
    Test::new("a_heap_profile_of_go_as_text_is_read", go_text),
    Test::new("a_recording_of_java_is_read", java_recording),
    Test::new("a_trace_that_chromium_made_is_read", chromium_trace).in_pairs(SHARES),
    Test::new("a_profile_that_firefox_made_is_read", firefox),
    Test::new("a_file_of_callgrind_is_read", callgrind_file),
];

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
    let args = ["record", "-q", "-e", "cpu-clock:u", "-g", "-o", &data, "--", &shares, "300"];
    if !test.program("perf").args(&args).run()?.status.success() {
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
    let args = ["--cpu-prof", "--cpu-prof-dir", &folder, "--cpu-prof-name", "x.cpuprofile", "-e", program];
    test.program("node").args(&args).run()?.succeeded()?;
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
    let args =
        ["--heap-prof", "--heap-prof-dir", &folder, "--heap-prof-name", "x.heapprofile", "-e", program];
    test.program("node").args(&args).run()?.succeeded()?;
    let file = test.path("x.heapprofile").display().to_string();
    let folded = test.nyquist(&["export", "--format", "folded", &file]).run()?.succeeded()?.stdout_text();
    let retained = folded.lines().filter(|line| line.contains(";keep "));
    let bytes: u64 = retained.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum();
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
    let printed =
        test.program("valgrind").args(&["--tool=dhat", &target, &shares, "5"]).run()?.succeeded()?.stderr;
    // `==7== Total:     1,024 bytes in 1 blocks`
    let total = printed.lines().find_map(|line| line.split_once("Total:")?.1.trim().split(' ').next());
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
    let args = ["run", &source.display().to_string(), &profile];
    test.program("go").args(&args).env("GOCACHE", cache).run()?.succeeded()?;
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
    let args = ["run", &source.display().to_string(), &pprof, &text];
    test.program("go").args(&args).env("GOCACHE", cache).run()?.succeeded()?;
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
    let source = crate::paths::root().join("workloads/Jit.java").display().to_string();
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
    let args = ["import", "-s", "-q", "--event", "alloc", "-o", &imported, &file];
    test.nyquist(&args).run()?.succeeded()?;
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
    let args =
        ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"];
    let running = test
        .program("chromium")
        .args(&args)
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
    let args = ["--headless", "--profile", &folder.display().to_string(), "--screenshot", &picture]
        .map(str::to_owned);
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let running = test
        .program(program)
        .args(&args)
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
    let ask = |args: &[&str]| -> Result<Value, Stop> {
        let text = test.nyquist(&["report", "--json", &file]).args(args).run()?.succeeded()?.stdout_text();
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
